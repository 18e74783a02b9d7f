"""A search as a folder: the kernel, the path step by step with diffs, the evidence, the settings. Enough to rerun it
and to review it in a pull request."""

from __future__ import annotations

import difflib
import json
import re
from pathlib import Path

from regraph_db.errors import InputError
from regraph_db.figures import figure
from regraph_db.records import Attempt, Search
from search.outcome import BestKernel, SearchOutcome

_UNSAFE = re.compile(r"[^a-z0-9]+")


def export(outcome: SearchOutcome, search: Search, folder: Path) -> list[Path]:
    """Write ``folder`` (made if it is not there; what a former export wrote is replaced) and return what was written.

    ``kernel.cu`` and ``path/`` only where a correct kernel was found. Raises :class:`InputError` when it cannot be
    written.
    """
    try:
        return _export(outcome, search, folder)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}.", where=str(folder)) from None


def _export(outcome: SearchOutcome, search: Search, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for old in (folder / "path").glob("[0-9][0-9]-*"):  # a longer path of a former search would stand among these
        old.unlink()
    files = {
        "search.json": json.dumps(
            {**outcome.document(), "settings": search.settings, "task_hash": search.task.hash},
            indent=2,
            ensure_ascii=False,
        )
        + "\n",
        "attempts.jsonl": "".join(attempt.model_dump_json() + "\n" for attempt in outcome.attempts),
        "start.cu": search.start_code,
    }
    best = outcome.best
    if best is not None:
        files["kernel.cu"] = best.code
        files["evidence.json"] = best.verdict.model_dump_json(indent=2) + "\n"
        files["README.md"] = _page(outcome, best, search)
        before, former = search.start_code, "start.cu"
        for number, step in enumerate(best.steps, 1):
            name = f"path/{number:02}-{_UNSAFE.sub('-', (step.technique or outcome.strategy).lower()).strip('-')}"
            files[f"{name}.cu"] = step.code
            files[f"{name}.diff"] = diff(before, step.code, former, f"{name}.cu")
            before, former = step.code, f"{name}.cu"
    written = []
    for relative, text in files.items():
        path = folder / relative
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def diff(before: str, after: str, name_before: str, name_after: str) -> str:
    """A unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), name_before, name_after, lineterm="")
    return "".join(line + "\n" for line in lines)


def _page(outcome: SearchOutcome, best: BestKernel, search: Search) -> str:
    verdict = best.verdict
    speed = f"{figure(best.speedup)} times the baseline" if best.speedup is not None else "not known"
    if verdict.speedup is not None and best.speedup is not None:
        speed += f" (95 % interval {figure(verdict.speedup.low)} to {figure(verdict.speedup.high)})"
    own = " --from start.cu" if search.settings.get("start") == "kernel" else ""
    lines = [
        f"# {outcome.task}: {outcome.strategy}",
        "",
        f"- Verdict: {verdict.verdict}, level {verdict.level}",
        f"- Speed: {speed}",
        *(f"- Note: {note}" for note in outcome.notes),
        f"- Model: {outcome.model}, seed {outcome.seed}, {outcome.calls} of {outcome.budget} calls",
        f"- GPU: {verdict.evidence.gpu or 'none'}; nvcc {verdict.evidence.nvcc or 'unknown'}",
        f"- Again: `regraph search run {outcome.task} --model {outcome.model.partition('#')[0]} --strategy "
        f"{outcome.strategy} --mode {search.settings.get('mode', 'graph')} --budget {outcome.budget} --seed "
        f"{outcome.seed} --level {outcome.level}{own}`, with the settings in `search.json`",
        "",
        "| step | technique | verdict | speedup |",
        "| --- | --- | --- | --- |",
        *(_row(number, step) for number, step in enumerate(best.steps, 1)),
    ]
    return "\n".join(lines) + "\n"


def _row(number: int, step: Attempt) -> str:
    speed = figure(step.speedup) if step.speedup is not None else "not known"
    said = str(step.verdict.verdict) if step.verdict else step.outcome
    return f"| {number} | {step.technique or 'one prompt'} | {said} | {speed} |"
