"""Verdicts measured before: ``NAME.measured.json`` beside a trajectory file, as ``regraph eval measure`` writes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ingest.reading import STDIN
from regraph_db.errors import InputError
from regraph_db.records import Evidence, Verdict, content_id

if TYPE_CHECKING:
    from verify import Task

SUFFIX = ".measured.json"


def code_hash(code: str) -> str:
    """How a measurement names the code that it measured."""
    return hashlib.sha256(code.encode()).hexdigest()


def workload(task: Task) -> str:
    """How a measurement names what was timed: the task's signature, reference and timed sizes."""
    return content_id("workload", task.signature, task.reference, task.sizes.timed)


class Measured:
    """The measured verdicts of one file, by the hash of the code, for one workload."""

    def __init__(self, workload: str, verdicts: Mapping[str, Verdict]) -> None:
        self._workload = workload
        self._verdicts = verdicts

    def verdicts(self, task: Task, codes: Sequence[str]) -> list[Verdict | None]:
        """The verdict of exactly each code on exactly this task's workload, ``None`` where that was not measured."""
        if workload(task) != self._workload:
            return [None] * len(codes)
        return [self._verdicts.get(code_hash(code)) for code in codes]


def find_measured(name: str) -> Measured | None:
    """The measurements beside the trajectory file ``name``; ``None`` without any.

    Raises :class:`InputError` when the file is there and is not one that ``regraph eval measure`` wrote.
    """
    if name == STDIN:
        return None
    path = Path(name)
    beside = path.with_name(path.name.removesuffix(".gz").removesuffix(".jsonl") + SUFFIX)
    if not beside.is_file():
        return None
    try:
        document = json.loads(beside.read_text("utf-8"))
        return Measured(document["workload"], dict(_verdicts(document)))
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise InputError(
            f"holds no measurements: {str(error).splitlines()[0]}.",
            where=str(beside),
            fix="Write it anew with `regraph eval measure`, or remove it.",
        ) from None


def _verdicts(document: Any) -> Iterator[tuple[str, Verdict]]:
    evidence = Evidence.model_validate(
        {
            name: document[name]
            for name in ("gpu", "driver", "nvcc", "flags", "host", "sizes", "date")
            if name in document
        }
    )
    for step in document["steps"]:
        yield (
            step["code"],
            Verdict(
                verdict=step["verdict"],
                level=step["level"],
                reason=step.get("reason", ""),
                speedup=step.get("speedup"),
                candidate_seconds=step.get("seconds"),
                baseline_seconds=step.get("reference_seconds"),
                baseline="reference" if step.get("reference_seconds") is not None else "",
                bound_share=step.get("bound_share"),
                unstable=step.get("unstable", False),
                evidence=evidence.model_copy(update={"samples": step.get("samples", 0)}),
            ),
        )
