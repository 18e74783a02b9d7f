"""`regraph eval report`: what campaigns found, as tables for a terminal, as JSON and as Markdown.

Several files may be reported together when they share budget, level and mode. Speed is shown by its kind: measured,
modelled, or not at all; kinds are never put into one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cudaeval.metrics import ALL, TIERS, Estimate, Summary, TaskSamples, summarise
from cudaeval.results import Sample, Terms, read
from regraph_db.errors import InputError
from regraph_db.records import Level

if TYPE_CHECKING:
    from rich.table import Table

#: How the speedups of each level are called.
SPEED_KINDS = {Level.GPU: "measured", Level.MODELLED: "modelled, not measured"}


@dataclass(frozen=True)
class Line:
    """One strategy with one model: its figures by tier and its mean best-so-far curve."""

    strategy: str
    model: str
    samples: int
    summaries: dict[str, Summary]  #: by tier, and ``all``
    curve: tuple[tuple[int, float], ...]  #: (calls, mean best speedup so far); unsolved counts 0


@dataclass(frozen=True)
class Report:
    """Everything that a report shows."""

    terms: Terms
    k: int
    tasks: int
    lines: tuple[Line, ...]  #: best first, by speedup@k over all tasks (pass@k where speed is not known)
    samples: tuple[Sample, ...]

    @property
    def speed(self) -> str:
        """The kind of the speedups; empty when none is known."""
        return SPEED_KINDS.get(self.terms.level, "")


def load(files: Sequence[Path]) -> tuple[Terms, list[Sample]]:
    """The samples of ``files`` together. Raises :class:`InputError` when they were made on different terms."""
    terms, samples = read(files[0])
    for file in files[1:]:
        other, more = read(file)
        if (other.budget, other.level, other.mode) != (terms.budget, terms.level, terms.mode):
            raise InputError(
                f"made with budget {other.budget}, level {other.level}, mode {other.mode}; {files[0]} with budget "
                f"{terms.budget}, level {terms.level}, mode {terms.mode}.",
                where=str(file),
                fix="Report them apart.",
            )
        samples += more
    return terms, samples


def build(
    terms: Terms, samples: Sequence[Sample], k: int = 1, *, tier: str | None = None, split: str | None = None
) -> Report:
    """The report of ``samples``, of one tier or split where asked for. Raises :class:`InputError` when none is left."""
    wanted = [s for s in samples if tier in (None, s.tier) and split in (None, s.split)]
    if not wanted:
        raise InputError("no finished sample to report.", fix="Look at the options --tier and --split, or run more.")
    groups: dict[tuple[str, str], list[Sample]] = {}
    for sample in wanted:
        groups.setdefault((sample.strategy, sample.model), []).append(sample)
    lines = [
        Line(strategy, model, len(group), summarise(by_task(group), k), mean_curve(group, terms.budget))
        for (strategy, model), group in groups.items()
    ]
    lines.sort(key=lambda line: (_worth(line.summaries[ALL]), line.strategy, line.model), reverse=True)
    return Report(terms, k, len({s.task for s in wanted}), tuple(lines), tuple(wanted))


def _worth(summary: Summary) -> float:
    figure = summary.speedup_at_k or summary.pass_at_k
    return figure.value if figure is not None else 0.0


def by_task(samples: Iterable[Sample]) -> list[TaskSamples]:
    """The samples of one strategy and model, gathered by task."""
    groups: dict[tuple[str, str], list[Sample]] = {}
    for sample in samples:
        groups.setdefault((sample.task, sample.tier), []).append(sample)
    found = []
    for (task, tier), group in sorted(groups.items()):
        solved = [s for s in group if s.solved]
        speedups = [s.speedup for s in solved if s.speedup is not None]
        found.append(
            TaskSamples(
                task=task,
                tier=tier,
                failed=len(group) - len(solved),
                correct=len(solved),
                # One correct sample without a figure leaves the task's speed unknown.
                speedups=tuple(speedups) if len(speedups) == len(solved) else (),
                bound_shares=tuple(s.bound_share for s in solved if s.bound_share is not None),
            )
        )
    return found


def mean_curve(samples: Sequence[Sample], budget: int) -> tuple[tuple[int, float], ...]:
    """After each call the mean over samples of the best speedup so far, 0 before the first correct kernel."""
    if not any(s.curve for s in samples):
        return ()
    totals = [0.0] * (budget + 1)
    for sample in samples:
        best, points = 0.0, dict(sample.curve)
        for calls in range(budget + 1):
            best = points.get(calls, best)
            totals[calls] += best
    return tuple((calls, total / len(samples)) for calls, total in enumerate(totals))


# -- forms ------------------------------------------------------------------------------------------------------------


def document(report: Report) -> dict[str, Any]:
    """The report as one JSON document."""
    return {
        "campaign": report.terms.model_dump(mode="json"),
        "speed": report.speed or None,
        "k": report.k,
        "tasks": report.tasks,
        "strategies": [
            {
                "strategy": line.strategy,
                "model": line.model,
                "samples": line.samples,
                "tiers": {tier: asdict(summary) for tier, summary in line.summaries.items()},
                "curve": [list(point) for point in line.curve],
            }
            for line in report.lines
        ],
    }


_FIGURES = ("pass@{k}", "speedup@{k}", "solved only", "geo. mean", "fast_1", "fast_2", "bound")


def columns(report: Report) -> list[str]:
    """The headings of every table."""
    return ["strategy", "model", "tasks", *(figure.format(k=report.k) for figure in _FIGURES)]


def rows(report: Report, tier: str) -> list[list[str]]:
    """One row a strategy and model that has tasks of ``tier``, as text."""
    found = []
    for line in report.lines:
        summary = line.summaries.get(tier)
        if summary is None:
            continue
        found.append(
            [
                line.strategy,
                Path(line.model).name,
                f"{summary.solved}/{summary.tasks}",
                _share(summary.pass_at_k),
                _ratio(summary.speedup_at_k),
                _ratio(summary.solved_speedup_at_k),
                _ratio(summary.geometric_mean),
                _percent(summary.fast_1),
                _percent(summary.fast_2),
                _percent(summary.bound_share),
            ]
        )
    return found


def tiers(report: Report) -> list[str]:
    """The tiers that have a row, and ``all`` last."""
    return [tier for tier in (*TIERS, ALL) if any(tier in line.summaries for line in report.lines)]


def notes(report: Report) -> list[str]:
    """What a reader must know of the figures."""
    speed = f"Speedups are {report.speed}." if report.speed else "Speed was not measured at this level."
    return [
        f"Budget {report.terms.budget} generator calls a sample, level {report.terms.level}, mode {report.terms.mode}.",
        f"{speed} speedup@{report.k} counts a failed sample as 0; `solved only` leaves failed samples out, as the "
        "ReGraphT paper does.",
        "In brackets: 95 % bootstrap intervals over tasks.",
    ]


def markdown(report: Report) -> str:
    """The report as Markdown."""
    parts = ["# CUDAEval report", "", *(f"{note}  " for note in notes(report))]
    for tier in tiers(report):
        heading = columns(report)
        parts += ["", f"## {tier}", "", _cells(heading), _cells(["---"] * len(heading))]
        parts += [_cells(row) for row in rows(report, tier)]
    return "\n".join(parts) + "\n"


def _cells(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def tables(report: Report) -> list[Table]:
    """The report as tables for a terminal, one a tier."""
    from rich.table import Table

    found = []
    for tier in tiers(report):
        table = Table(title=tier, title_justify="left")
        for index, heading in enumerate(columns(report)):
            table.add_column(heading, justify="left" if index < 2 else "right", no_wrap=index != 1)
        for row in rows(report, tier):
            table.add_row(*row)
        found.append(table)
    return found


def _ratio(figure: Estimate | None) -> str:
    return "–" if figure is None else f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"


def _share(figure: Estimate | None) -> str:
    return "–" if figure is None else f"{figure.value:.1%} [{figure.low:.0%}, {figure.high:.0%}]"


def _percent(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:.0%}"
