"""The file that a campaign writes: JSON lines, a header and one line a finished sample (`docs/campaign-format.md`).

A line is written, flushed and synchronised as a whole; a line that a kill cut short is dropped when the file is opened
again, and its sample is run again.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import Field, ValidationError

from regraph_db.errors import InputError
from regraph_db.records import Count, Level, Record, Speedup

VERSION = 1


class Terms(Record):
    """What all samples of one file share; samples under other terms may not be mixed in."""

    version: int = VERSION
    budget: int = Field(gt=0)  #: generator calls of one sample
    level: Level  #: what speedups rest on: ``gpu`` measured, ``modelled`` modelled, ``functional`` not known
    seed: int = 0  #: sample ``i`` of a task is searched with seed + i
    graph: str = "unknown"  #: a fingerprint of what the graph knew when the campaign began
    mode: str = "graph"
    settings: dict[str, Any] = Field(default_factory=dict)  #: of the search, where they are not the mode's defaults

    def differences(self, other: Terms) -> list[str]:
        """In which words ``other`` differs from these, e.g. ``budget 40, not 60``."""
        mine, others = self._flat(), other._flat()
        names = dict.fromkeys([*mine, *others])
        return [
            f"{name} {others.get(name, 'default')}, not {mine.get(name, 'default')}"
            for name in names
            if mine.get(name) != others.get(name)
        ]

    def _flat(self) -> dict[str, Any]:
        return {**self.model_dump(mode="json", exclude={"settings"}), **self.settings}


class Sample(Record):
    """One search on one task: one line of the file."""

    task: str
    tier: str
    split: str
    strategy: str
    model: str
    sample: Count
    search: str  #: its id in the graph
    calls: Count  #: generator calls spent
    solved: bool
    speedup: Speedup | None = None  #: of the best correct kernel, in the level's kind of speed
    bound_share: float | None = None
    path: tuple[str, ...] = ()  #: the techniques that led to it
    verdicts: dict[str, Count] = Field(default_factory=dict)  #: how often each was given
    seconds: dict[str, float] = Field(default_factory=dict)  #: by part: generate, verify, store, search, total
    curve: tuple[tuple[int, float], ...] = ()  #: (calls, best speedup so far) wherever the best changed
    gpu: str = ""  #: what the answer was timed on, or whose time was modelled
    date: datetime | None = None  #: when the search had ended

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.task, self.strategy, self.model, self.sample


def read(file: Path) -> tuple[Terms, list[Sample]]:
    """The terms and samples of a finished or unfinished campaign.

    Raises :class:`InputError` that names file and line; a last line without its end is skipped.
    """
    terms: Terms | None = None
    samples = []
    for number, line, _ in _whole_lines(file):
        where = f"{file}:{number}"
        try:
            document = json.loads(line)
            if number == 1:
                terms = Terms.model_validate(document["campaign"])
            else:
                samples.append(Sample.model_validate(document))
        except (ValueError, KeyError, TypeError) as error:
            field = ""
            if isinstance(error, ValidationError):
                field = ", field `" + ".".join(str(part) for part in error.errors()[0]["loc"]) + "`"
            raise InputError(
                "no line of a campaign.", where=where + field, fix="See docs/campaign-format.md."
            ) from None
    if terms is None:
        raise InputError("no campaign in it.", where=str(file))
    return terms, samples


def _whole_lines(file: Path) -> Iterator[tuple[int, str, int]]:
    """Number, text and end offset of each line that was written whole."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}.", where=str(file)) from None
    end = 0
    for number, line in enumerate(content.splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            return
        end += len(line)
        yield number, line.decode("utf-8", "replace"), end


class Results:
    """A campaign's file, open for appending; a context manager. One process writes it at a time."""

    def __init__(self, file: Path, terms: Terms) -> None:
        """Open ``file`` and go on with it, or begin it.

        Raises :class:`InputError` when it was begun on other terms, or when another process writes it.
        """
        self.samples: list[Sample] = []
        file.parent.mkdir(parents=True, exist_ok=True)
        self._stream = file.open("ab")
        try:
            self._lock(file)
            end = max((end for _, _, end in _whole_lines(file)), default=0)
            if end:
                known, self.samples = read(file)
                if known != terms:
                    raise InputError(
                        f"this campaign was begun on other terms: {'; '.join(terms.differences(known))}.",
                        where=str(file),
                        fix="Give the same options, or another file.",
                    )
            self._stream.truncate(end)
            if not end:
                self._write({"campaign": terms.model_dump(mode="json")})
        except BaseException:
            self._stream.close()
            raise

    def _lock(self, file: Path) -> None:
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                "another `regraph eval run` writes it.", where=str(file), fix="Wait for it, or give another file."
            ) from None

    def add(self, sample: Sample) -> None:
        """Write ``sample``; it is on the disk when this returns."""
        self._write(sample.model_dump(mode="json"))
        self.samples.append(sample)

    def _write(self, document: object) -> None:
        self._stream.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def __enter__(self) -> Results:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
