"""The journal of a run: which trajectories were judged with which verdicts, so that a killed run goes on where it
stood."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from regraph_db.errors import EnvironmentFault
from regraph_db.records import Verdict, content_id


class Journal:
    """An append-only file of verified trajectories, removed when the run is whole.

    With ``resume`` what it holds is taken as it stands; without, it starts anew. One line is one trajectory, so that
    a kill between two writes loses at most the last one, which is then judged again.
    """

    def __init__(self, folder: Path, run: Sequence[object], *, resume: bool, write: bool = True) -> None:
        """``run``: what makes this run (store, file, level …); another run has another journal."""
        self.path = folder / "ingest" / f"{content_id('journal', *map(str, run))}.jsonl"
        self._offsets: dict[str, int] = {}
        self._stream: IO[bytes] | None = None
        if not write:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.path.open("a+b" if resume else "w+b")
            if resume:
                self._scan(self._stream)
        except OSError as error:
            raise EnvironmentFault(
                f"the journal cannot be written: {error.strerror}.",
                where=str(self.path),
                fix="Set the setting `cache` to a folder that is yours.",
            ) from None

    def _scan(self, stream: IO[bytes]) -> None:
        stream.seek(0)
        end = 0
        while line := stream.readline():
            if not line.endswith(b"\n"):
                break
            try:
                self._offsets[json.loads(line)["id"]] = end
            except (ValueError, KeyError, TypeError):
                break
            end += len(line)
        stream.truncate(end)  # what a kill cut short

    def find(self, trajectory: str) -> list[Verdict] | None:
        """The verdicts of the judged steps of the trajectory with this id, or ``None``."""
        offset = self._offsets.get(trajectory)
        if offset is None or self._stream is None:
            return None
        self._stream.seek(offset)
        return [Verdict.model_validate(each) for each in json.loads(self._stream.readline())["verdicts"]]

    def add(self, trajectory: str, verdicts: Sequence[Verdict]) -> None:
        """Keep the verdicts; when it returns, a kill of this process loses them no more."""
        if self._stream is None or trajectory in self._offsets:
            return
        line = json.dumps(
            {"id": trajectory, "verdicts": [v.model_dump(mode="json", exclude_defaults=True) for v in verdicts]}
        )
        self._offsets[trajectory] = self._stream.seek(0, 2)
        self._stream.write(line.encode() + b"\n")
        self._stream.flush()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is None:
            return
        self._stream.close()
        if kind is None:
            self.path.unlink(missing_ok=True)
