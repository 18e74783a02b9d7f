"""What a person sees while a search runs: a live panel on a terminal, plain lines elsewhere; both on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from regraph_db.records import Level
from search.figures import figure
from search.outcome import SPEED_NOTES
from search.progress import Progress, Watcher, said_of

if TYPE_CHECKING:
    from rich.table import Table

#: Seconds between two looks at the panel.
_REFRESH = 0.2


@contextmanager
def watching(title: str, level: Level, *, quiet: bool = False) -> Iterator[Watcher | None]:
    """A watcher for :class:`search.runner.SearchRunner`; ``quiet`` shows nothing."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _panel(title, level) as watcher:
            yield watcher
    else:
        yield _Lines(level)


class _Lines:
    """One line for each new best, and one every tenth call."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._best: str | None = None
        self._note = ""

    def __call__(self, progress: Progress) -> None:
        best = progress.best.id if progress.best else None
        if progress.note and progress.note != self._note:
            self._note = progress.note
            self._say(f"note: {progress.note}")
        if best != self._best:
            self._best = best
            self._say(f"call {progress.own_calls}: new best, {_speed(progress, self._level)}, by {_path(progress)}")
        elif progress.own_calls % 10 == 0:
            self._say(
                f"call {progress.own_calls} of {progress.budget}: {_counts(progress)}; "
                f"best {_speed(progress, self._level)}"
            )

    def _say(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


@contextmanager
def _panel(title: str, level: Level) -> Iterator[Watcher]:
    from rich.console import Console
    from rich.live import Live

    began = last = time.monotonic()
    with Live(console=Console(stderr=True), refresh_per_second=4, transient=True) as live:

        def watch(progress: Progress) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _REFRESH:
                last = now
                live.update(_table(title, progress, level, now - began))

        yield watch


def _table(title: str, progress: Progress, level: Level, seconds: float) -> Table:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.title = title
    table.title_justify = "left"
    rate = 60 * progress.own_calls / seconds if seconds else 0.0
    calls = max(progress.calls, progress.own_calls)
    for name, text in (
        ("best so far", _speed(progress, level)),
        ("calls", f"{calls} of {progress.budget}, {rate:.0f} a minute"),
        ("verdicts", _counts(progress)),
        ("path", _path(progress)),
        ("latest", said_of(progress.latest) if progress.latest else ""),
        ("note", progress.note),
    ):
        if text:
            table.add_row(f"[bold]{name}[/bold]", text)
    return table


def _speed(progress: Progress, level: Level) -> str:
    best = progress.best
    if best is None:
        return "no correct kernel yet"
    if best.speedup is None:
        return f"correct ({SPEED_NOTES.get(level, 'speed not known')})"
    return f"{figure(best.speedup)}x" + (" (modelled)" if level is Level.MODELLED else "")


def _counts(progress: Progress) -> str:
    return ", ".join(f"{count} {name}" for name, count in progress.verdicts.most_common())


def _path(progress: Progress) -> str:
    return " → ".join(progress.path) or "one prompt"
