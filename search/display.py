"""What a person sees while a search runs: a live panel on a terminal, plain lines elsewhere; both on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from regraph_db.figures import figure
from regraph_db.records import Level
from search.outcome import SPEED_NOTES
from search.progress import Progress, Watcher

if TYPE_CHECKING:
    from rich.table import Table

#: Columns of the bar of spent calls.
_BAR = 24
#: How what was said of attempts is coloured; any other verdict is a failure of the candidate.
_STYLES = {"passed": "green", "unsuitable": "dim", "unchanged": "dim", "failed": "red", "harness_error": "red"}
#: Times a second that the panel is drawn.
REFRESHES = 2


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
        if not progress.own_calls:
            return
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

    began = time.monotonic()
    seen: list[Progress] = []

    def table() -> Table:
        return _table(title, seen[0] if seen else Progress(0), level, time.monotonic() - began)

    # The same object comes every time, so it is kept from the first call on, and drawn as it stands.
    with Live(get_renderable=table, console=Console(stderr=True), refresh_per_second=REFRESHES, transient=True):
        yield lambda progress: None if seen else seen.append(progress)


def _table(title: str, progress: Progress, level: Level, seconds: float) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    calls = max(progress.calls, progress.own_calls)
    rate = f", {60 * progress.own_calls / seconds:.1f} a minute" if progress.own_calls else ""
    spent = Table.grid(padding=(0, 2))
    spent.add_row(
        ProgressBar(total=progress.budget, completed=calls, width=_BAR),
        Text(f"{calls} of {progress.budget}{rate}, {_clock(seconds)}"),
    )
    best = Text(_speed(progress, level), style="bold green" if progress.best else "")
    if progress.best_path:
        best.append(f", by {' → '.join(progress.best_path)}", style="not bold")
    counts = Text(", ").join(
        Text(f"{count} {said}", style=_STYLES.get(said, "yellow")) for said, count in progress.verdicts.most_common()
    )
    table = Table.grid(padding=(0, 2))
    table.title = Text(title, style="bold")
    table.title_justify = "left"
    for name, content in (
        ("calls", spent),
        ("best so far", best),
        ("verdicts", counts),
        ("path", Text(" → ".join(progress.path))),
        ("now", Text(_now(progress))),
        ("note", Text(progress.note, style="yellow")),
    ):
        if content:
            table.add_row(Text(name, style="dim"), content)
    return table


def _now(progress: Progress) -> str:
    writing = progress.writing and f"the model writes: {progress.writing}"
    return "; ".join(filter(None, (writing, progress.doing)))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


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
