"""What the shipped trajectories reach, task by task: the table of `docs/cudaeval.md`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cudaeval import shipped
from cudaeval.metrics import TIERS


@dataclass(frozen=True)
class Entry:
    """One task with its trajectory; figures are ``None`` until it is measured."""

    task: str
    tier: str
    split: str
    title: str
    steps: int
    speedup: float | None = None  #: the fastest step against the sequential reference on one core
    seconds: float | None = None  #: of that step
    bound_share: float | None = None  #: of that step
    best_step: int | None = None  #: from 1
    failed: int = 0  #: steps that the judge did not pass
    gpu: str = ""
    stale: str = ""  #: why the measurement does not count

    def document(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)

    def line(self) -> str:
        """One line for a terminal."""
        figures = "not measured"
        if self.stale:
            figures = f"stale: {self.stale}"
        elif self.speedup is not None:
            figures = f"{self.speedup:9.1f}x  {_share(self.bound_share):>5} of the bound  (step {self.best_step})"
        return f"{self.task:24} {self.tier:7} {self.split:6} {self.steps:2} steps  {figures}"


def entries(folder: Path) -> list[Entry]:
    """Every trajectory in ``folder``, by tier and name."""
    found = [_entry(name, folder) for name in shipped.names(folder)]
    return sorted(found, key=lambda entry: (TIERS.index(entry.tier), entry.task))


def _entry(name: str, folder: Path) -> Entry:
    task, trajectory = shipped.load_one(name, folder)
    entry = Entry(task.name, task.tier, task.split, task.title, len(trajectory.steps))
    measured = shipped.read_measured(shipped.measured_file(name, folder))
    if measured is None:
        return entry
    stale = shipped.staleness(measured, trajectory, task)
    best = measured.best
    if stale or best is None:
        return Entry(*_head(entry), stale=stale, failed=_failed(measured), gpu=measured.gpu)
    return Entry(
        *_head(entry),
        speedup=best.speedup.median if best.speedup is not None else None,
        seconds=best.seconds,
        bound_share=best.bound_share,
        best_step=measured.steps.index(best) + 1,
        failed=_failed(measured),
        gpu=measured.gpu,
    )


def _head(entry: Entry) -> tuple[str, str, str, str, int]:
    return entry.task, entry.tier, entry.split, entry.title, entry.steps


def _failed(measured: shipped.Measured) -> int:
    return sum(step.verdict != "passed" for step in measured.steps)


def markdown(found: Iterable[Entry]) -> str:
    """The table in Markdown."""
    lines = [
        "| task | tier | split | steps | best speedup | time | of the bound | best step |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for entry in found:
        speed, time, step = "–", "–", "–"
        if entry.speedup is not None and entry.seconds is not None:
            speed, time, step = f"{entry.speedup:.1f}×", f"{entry.seconds * 1e6:.1f} µs", str(entry.best_step)
        lines.append(
            f"| `{entry.task}` — {entry.title} | {entry.tier} | {entry.split} | {entry.steps} | {speed} | {time} "
            f"| {_share(entry.bound_share)} | {step} |"
        )
    return "\n".join(lines) + "\n"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"
