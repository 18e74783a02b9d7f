"""A model's raw answer: a JSON list of steps in a fenced block, with the usual damage repaired and every repair
recorded."""

from __future__ import annotations

import json
import re
from typing import Any

import json_repair

from ingest.reading.draft import Draft, Rejection

_FENCE = re.compile(r"```[ \t]*(?:json5?|jsonc)?[ \t]*\r?\n(.*?)(?:\n[ \t]*```|\Z)", re.DOTALL | re.IGNORECASE)
#: Lists of steps under these names are what an answer may wrap its steps in.
_WRAPPERS = ("steps", "trajectory", "process", "optimization_steps")
_ACTIONS_SHOWN = 5
#: Characters of a text that is still repaired; an answer of 8192 tokens has some 30,000.
_REPAIRED = 500_000
#: What no answer holds and takes the repair minutes: brackets in brackets in brackets.
_NESTED = re.compile(r'(?:[\[{][\s"]*){64}')


def read_answer(text: str, where: str) -> Draft | Rejection:
    """The trajectory in one answer. ``text`` may hold prose around the block, or the bare JSON."""
    if len(text) > _REPAIRED and not _is_json(text):
        reason = f"not JSON, and its {len(text):,} characters are too many to be repaired; the limit is {_REPAIRED:,}"
        return Rejection(where, reason, text[:2000])
    repairs: list[str] = []
    block, around = _block(text)
    if around:
        repairs.append("text around the JSON left out")
    value, actions = loads(block)
    repairs.extend(actions)
    if isinstance(value, dict):
        steps = next((value[name] for name in _WRAPPERS if isinstance(value.get(name), list)), None)
        if steps is None and {"method", "code"} <= value.keys():
            steps = [value]
        fields: dict[str, Any] = {
            name: value[name] for name in ("task", "author", "function", "source") if name in value
        }
    else:
        steps, fields = value, {}
    if not isinstance(steps, list) or not any(isinstance(step, dict) for step in steps):
        return Rejection(where, "the answer holds no JSON list of steps", text[:2000])
    kept = [step for step in steps if isinstance(step, dict)]
    if len(kept) < len(steps):
        repairs.append(f"{len(steps) - len(kept)} list entries that are no steps left out")
    return Draft(where, {**fields, "steps": kept}, tuple(repairs), strict=False)


def loads(text: str) -> tuple[Any, tuple[str, ...]]:
    """``text`` as JSON, and what was repaired to read it; ``None`` when nothing can be made of it."""
    try:
        return json.loads(text), ()
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(text, strict=False), ("raw control characters in strings accepted",)
    except (ValueError, RecursionError):
        pass
    if len(text) > _REPAIRED or _NESTED.search(text):
        return None, ()
    try:
        repaired: Any = json_repair.loads(text, logging=True, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None, ()
    value, log = repaired if isinstance(repaired, tuple) else (repaired, [])
    actions = list(dict.fromkeys(str(entry.get("text", entry)) for entry in log if isinstance(entry, dict)))
    if len(actions) > _ACTIONS_SHOWN:
        actions = [*actions[:_ACTIONS_SHOWN], f"{len(actions) - _ACTIONS_SHOWN} more repairs"]
    return value, tuple(actions) or ("JSON repaired",)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def _block(text: str) -> tuple[str, bool]:
    """The JSON part of an answer, and whether other text stood around it."""
    stripped = text.strip()
    if stripped[:1] in ("[", "{"):
        return stripped, False
    blocks = [match for match in _FENCE.finditer(text) if match.group(1).lstrip()[:1] in ("[", "{")]
    if blocks:
        # Code inside the JSON may itself hold a fence line; then the last closing bracket of the answer is the
        # better end.
        start = blocks[0].start(1)
        best = max(blocks, key=lambda match: len(match.group(1))).group(1)
        if best.rstrip()[-1:] in ("]", "}"):
            return best, len(best.strip()) + 12 < len(stripped)
        # Without a closing fence the answer was cut: its last step is repaired as far as it goes, and not left out
        # here.
        closed = text.rstrip().endswith("```") or not best.endswith(text[-20:])
        return (_to_last_bracket(text[start:]) if closed else text[start:]), True
    start = min((i for i in (text.find("[\n"), text.find("[{"), text.find("{")) if i >= 0), default=-1)
    return (_to_last_bracket(text[start:]), True) if start >= 0 else (stripped, False)


def _to_last_bracket(text: str) -> str:
    end = max(text.rfind("]"), text.rfind("}"))
    return text[: end + 1] if end >= 0 else text
