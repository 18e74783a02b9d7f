"""The judge's cores: one for each thing that computes, all of them for a time that is measured on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Cores:
    """``count`` permits. Who holds one must not ask for another."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._free = count
        self._changed = threading.Condition()
        self._wanted_whole = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold one core; waits while all are in use or somebody waits for the whole machine."""
        with self._changed:
            self._changed.wait_for(lambda: self._free >= 1 and not self._wanted_whole)
            self._free -= 1
        try:
            yield
        finally:
            self._give(1)

    @contextmanager
    def all(self) -> Iterator[None]:
        """Hold every core, so that nothing of this judge disturbs a measured time."""
        with self._changed:
            self._wanted_whole += 1
            self._changed.wait_for(lambda: self._free == self._count)
            self._wanted_whole -= 1
            self._free = 0
        try:
            yield
        finally:
            self._give(self._count)

    def _give(self, count: int) -> None:
        with self._changed:
            self._free += count
            self._changed.notify_all()
