"""Where the seconds of a search went."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident


class Stopwatch:
    """Adds up wall-clock seconds by part. Only the thread that made it is counted; parts nest, the inner one counts."""

    def __init__(self) -> None:
        self.parts = {"generate": 0.0, "verify": 0.0, "store": 0.0, "search": 0.0}
        self._began = time.monotonic()
        self._thread = get_ident()
        self._stack: list[tuple[str, float]] = []

    @contextmanager
    def measuring(self, part: str) -> Iterator[None]:
        """Count the seconds of the block as ``part``, and not as the part around it."""
        if get_ident() != self._thread:
            yield
            return
        now = time.monotonic()
        if self._stack:
            outer, since = self._stack[-1]
            self.parts[outer] += now - since
        self._stack.append((part, now))
        try:
            yield
        finally:
            now = time.monotonic()
            part, since = self._stack.pop()
            self.parts[part] += now - since
            if self._stack:
                self._stack[-1] = (self._stack[-1][0], now)

    def report(self) -> dict[str, float]:
        """Seconds by part, and in all since the watch was made."""
        return {**{k: round(v, 6) for k, v in self.parts.items()}, "total": round(time.monotonic() - self._began, 6)}
