"""Where the seconds of a search went."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident


class Stopwatch:
    """Counts each wall-clock second once: as ``generate`` while the model writes, whatever goes on beside it, else as
    what the thread that made the watch is busy with or waits for. Parts nest; the inner one counts."""

    def __init__(self) -> None:
        self.parts = {"generate": 0.0, "verify": 0.0, "store": 0.0, "search": 0.0, "wait": 0.0}
        self._began = self._since = time.monotonic()
        self._thread = get_ident()
        self._busy_with: list[str] = []
        self._writing = False
        self._lock = Lock()

    @contextmanager
    def measuring(self, part: str) -> Iterator[None]:
        """Count the seconds of the block as ``part``, where the model does not write. Blocks of other threads than the
        watch's own are not counted."""
        if get_ident() != self._thread:
            yield
            return
        with self._lock:
            self._settle()
            self._busy_with.append(part)
        try:
            yield
        finally:
            with self._lock:
                self._settle()
                self._busy_with.pop()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The model writes during the block, in whichever thread."""
        with self._lock:
            self._settle()
            self._writing = True
        try:
            yield
        finally:
            with self._lock:
                self._settle()
                self._writing = False

    def report(self) -> dict[str, float]:
        """Seconds by part, and in all since the watch was made."""
        with self._lock:
            self._settle()
            seconds = {**self.parts, "total": self._since - self._began}
        return {part: round(value, 6) for part, value in seconds.items()}

    def _settle(self) -> None:
        """Count the seconds since the last change."""
        now = time.monotonic()
        if self._writing:
            self.parts["generate"] += now - self._since
        elif self._busy_with:
            self.parts[self._busy_with[-1]] += now - self._since
        self._since = now
