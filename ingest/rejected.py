"""What was not accepted: one line a rejection in ``FILE.rejected.jsonl``, beside the file it came from."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import IO

from ingest.reading import STDIN, Rejection
from regraph_db.errors import InputError

SUFFIX = ".rejected.jsonl"


def rejected_path(name: str) -> Path:
    """Where the rejections of the input ``name`` are written; those of standard input in the working folder."""
    if name == STDIN:
        return Path(f"stdin{SUFFIX}")
    path = Path(name)
    stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
    return path.with_name(stem + SUFFIX)


class Rejections:
    """Writes rejections as they come; the file is made anew with the first one, and a stale one is removed.

    Each line is ``{"where", "reason", "content"}``; ``content`` is what stood there, so that a mended line can be
    ingested.
    """

    def __init__(self, path: Path, *, write: bool = True) -> None:
        self.path = path
        self.count = 0
        self._write = write
        self._stream: IO[str] | None = None

    def add(self, rejection: Rejection) -> None:
        """Count and write one rejection."""
        self.count += 1
        if not self._write:
            return
        try:
            if self._stream is None:
                self._stream = self.path.open("w", encoding="utf-8", errors="replace")
            document = {"where": rejection.where, "reason": rejection.reason, "content": rejection.content}
            self._stream.write(json.dumps(document, default=str) + "\n")
            self._stream.flush()
        except OSError as error:
            raise InputError(
                f"rejections cannot be written: {error.strerror}.",
                where=str(self.path),
                fix="Make the folder writable.",
            ) from None

    def __enter__(self) -> Rejections:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()
        elif self._write and kind is None:
            try:
                self.path.unlink(missing_ok=True)
            except OSError:
                return
