"""``regraph ingest teach``: questions out, trajectories in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ingest.chat import open_chat
from ingest.merging import Run
from ingest.reading import Draft, Rejection
from ingest.teacher.asking import Limits, Spent, Teacher
from regraph_db.errors import InputError

REJECTED = Path("teacher.rejected.jsonl")


def teach(
    run: Run,
    names: Sequence[str],
    *,
    teacher: str | None,
    samples: int,
    workers: int | None,
    limits: Mapping[str, Any],
    out: Path | None,
) -> Spent:
    """Ask for ``samples`` trajectories of each task and ingest them through ``run``; what was spent.

    ``out`` gets every trajectory as it was taught, one a line, whether it is accepted later or not.
    """
    from verify import load_task

    settings = run.settings.model_copy(update={"workers": workers} if workers else {})
    spec = teacher or settings.teacher
    if spec is None:
        raise InputError(
            "no teacher is named.", fix="Give --teacher langchain:PROVIDER/NAME or FILE.gguf, or set `ingest.teacher`."
        )
    tasks = [load_task(name) for name in names]
    asking = Teacher(
        open_chat(spec, timeout=settings.timeout), settings, run.cache / "ingest" / "answers", limits=Limits(**limits)
    )
    run.drafts(_copied(asking.teach(tasks, samples), out), REJECTED, (spec, samples, run.level, *names))
    return asking.spent


def _copied(drafts: Iterator[Draft | Rejection], out: Path | None) -> Iterator[Draft | Rejection]:
    if out is None:
        yield from drafts
        return
    try:
        stream = out.open("a", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}.", where=str(out)) from None
    with stream:
        for draft in drafts:
            if isinstance(draft, Draft):
                kept = {name: draft.fields[name] for name in ("task", "author", "steps") if name in draft.fields}
                stream.write(json.dumps(kept) + "\n")
                stream.flush()
            yield draft
