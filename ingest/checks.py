"""Checks of a draft: what is wrong is named by its field, and a trajectory that passes can be merged as it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ingest.reading import Draft
from ingest.settings import IngestSettings
from regraph_db.errors import InputError, NotFound
from regraph_db.names import normalise
from regraph_db.records import ROOT, Step, Trajectory

_FIELDS = ("task", "author", "function", "source", "steps", "search")
_STEP_FIELDS = ("think", "method", "detail", "code")
#: Characters of a name: techniques, tasks, functions and authors are keys of the graph.
_NAME_LIMIT = 200

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_C_FUNCTION = re.compile(r'extern\s+"C"\s+(?:\{\s*)?(?:[\w:*&]+\s+)+\**(\w+)\s*\(')
_FUNCTION = re.compile(r"^[ \t]*((?:[\w:<>*&]+[ \t]+)+\**)(\w+)\s*\([^;{}]*\)\s*\{", re.MULTILINE)
_NO_FUNCTION = {"if", "for", "while", "switch", "return", "else", "catch", "do"}


class KnownTask(Protocol):
    """What the checks read of a task (``verify.Task``)."""

    @property
    def name(self) -> str: ...
    @property
    def function(self) -> str: ...
    @property
    def reference(self) -> str: ...


class Rejected(Exception):
    """A draft that no graph should hold; the message says why, by field."""


@dataclass
class Tasks:
    """Looks tasks up by name or folder, once each.

    An unknown one is an error only where ``required``: a trajectory may come from a task that is not here.
    """

    required: bool = False
    _known: dict[str, KnownTask | None] = field(default_factory=dict)
    _names: frozenset[str] | None = None

    def find(self, name: str) -> KnownTask | None:
        """The task, or ``None`` for no name or an unknown one. Raises :class:`Rejected` for an unknown one that is
        needed."""
        if not name:
            return None
        if name not in self._known:
            from verify import load_task, task_names

            if self._names is None:
                self._names = task_names()
            if not self.required and name not in self._names and not _is_folder(name):
                # Of ten thousand tasks that are not here none is looked for, nor one like it.
                self._known[name] = None
                return None
            try:
                self._known[name] = load_task(name)
            except NotFound as error:
                if self.required:
                    raise Rejected(f"task: {error}") from None
                self._known[name] = None
            except InputError as error:
                raise Rejected(f"task: {error}") from None
        return self._known[name]


def _is_folder(name: str) -> bool:
    try:
        return "/" in name or Path(name).is_dir()
    except OSError:  # too long for a folder's name
        return False


def check(
    draft: Draft, settings: IngestSettings, tasks: Tasks, *, task: str = "", author: str = ""
) -> tuple[Trajectory, KnownTask | None]:
    """The draft as a trajectory, with its task when that is known; raises :class:`Rejected`.

    ``task`` and ``author`` stand in where the draft names none. Function and source of a known task come from the task.
    """
    fields = draft.fields
    if draft.strict:
        _refuse_unknown(fields, _FIELDS, "")
    known = tasks.find(_text(fields, "task", "", _NAME_LIMIT) or task)
    steps = fields.get("steps")
    if not isinstance(steps, list):
        raise Rejected("steps: missing" if steps is None else "steps: not a list")
    if not steps:
        raise Rejected("steps: empty")
    if len(steps) > settings.step_limit:
        raise Rejected(f"steps: {len(steps)} of them; the limit is {settings.step_limit}")
    checked = tuple(_step(step, i, settings, draft.strict) for i, step in enumerate(steps))
    source = known.reference if known else _text(fields, "source", "", settings.code_limit)
    function = known.function if known else _text(fields, "function", "", _NAME_LIMIT)
    _changing(checked, source)
    trajectory = Trajectory(
        task=known.name if known else _text(fields, "task", "", _NAME_LIMIT) or task,
        author=_text(fields, "author", "", _NAME_LIMIT) or author,
        function=_kept_function(function, checked, source),
        source=source,
        steps=checked,
        search=_text(fields, "search", "", _NAME_LIMIT),
    )
    return trajectory, known


def _step(step: Any, index: int, settings: IngestSettings, strict: bool) -> Step:
    place = f"steps[{index}]"
    if not isinstance(step, Mapping):
        raise Rejected(f"{place}: not an object")
    if strict:
        _refuse_unknown(step, _STEP_FIELDS, f"{place}.")
    method = _text(step, "method", place, _NAME_LIMIT).strip()
    code = _text(step, "code", place, settings.code_limit)
    if not re.search(r"\w", method):
        raise Rejected(f"{place}.method: empty")
    if normalise(method) == ROOT:
        raise Rejected(f"{place}.method: `{ROOT}` is the name of the graph's root")
    if not code.strip():
        raise Rejected(f"{place}.code: empty")
    return Step(
        think=_text(step, "think", place, settings.text_limit),
        method=method,
        detail=_text(step, "detail", place, settings.text_limit),
        code=code,
    )


def _text(fields: Mapping[str, Any], name: str, place: str, limit: int) -> str:
    """The field's text; "" where it is absent or null."""
    value = fields.get(name)
    path = f"{place}.{name}" if place else name
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Rejected(f"{path}: not a text but {type(value).__name__}")
    if len(value) > limit:
        raise Rejected(f"{path}: {len(value):,} characters; the limit is {limit:,}")
    if "\x00" in value:
        raise Rejected(f"{path}: holds a NUL byte")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Rejected(f"{path}: holds half of a surrogate pair, which is no character") from None
    return value


def _refuse_unknown(fields: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for name in fields:
        if name not in known:
            raise Rejected(f"{place}{name}: unknown field; there are {', '.join(known)}")


def bare(code: str) -> str:
    """Code without comments and without the differences of layout."""
    return re.sub(r"\s+", " ", _COMMENT.sub(" ", code)).strip()


def _changing(steps: tuple[Step, ...], source: str) -> None:
    before = bare(source)
    for i, step in enumerate(steps):
        after = bare(step.code)
        if after == before:
            raise Rejected(f"steps[{i}].code: the same as before the step")
        before = after


def _kept_function(function: str, steps: tuple[Step, ...], source: str) -> str:
    """The function's name, which every step keeps. Where none is given, the one that all steps define."""
    codes = [_COMMENT.sub(" ", step.code) for step in steps]
    if function:
        for i, code in enumerate(codes):
            if not re.search(rf"\b{re.escape(function)}\s*\(", code):
                raise Rejected(f"steps[{i}].code: the function `{function}` is gone; every step keeps its name")
        return function
    definitions = [_defined(code) for code in ([_COMMENT.sub(" ", source)] if source else []) + codes]
    kept = [name for name in definitions[0] if all(name in rest for rest in definitions[1:])]
    if not kept:
        raise Rejected("steps: no function keeps its name through all steps; give the trajectory's `function`")
    return kept[0]


def _defined(code: str) -> list[str]:
    """Names of host functions defined in ``code``: those with C linkage first, kernels and device functions left
    out."""
    linked = _C_FUNCTION.findall(code)
    others = [name for kind, name in _FUNCTION.findall(code) if name not in _NO_FUNCTION and not _on_device(kind)]
    return list(dict.fromkeys([*linked, *reversed(others)]))


def _on_device(kind: str) -> bool:
    return "__global__" in kind or "__device__" in kind
