"""`regraph eval report`: what campaigns found, as tables for a terminal, as JSON and as Markdown.

Several files may be reported together when they differ in nothing but the seed. Speed is shown by its kind: measured,
modelled, or not at all; kinds are never put into one table.
"""

from __future__ import annotations

from collections import Counter
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
    left_out: tuple[str, ...] = ()  #: tasks that some line has not finished, so that nobody is compared on them

    @property
    def models(self) -> list[str]:
        return sorted({line.model for line in self.lines})

    def name(self, line: Line) -> str:
        """What a line is called: its strategy, with the model where there are several."""
        return line.strategy if len(self.models) == 1 else f"{line.strategy}, {Path(line.model).name}"

    def of(self, line: Line) -> list[Sample]:
        """The samples of one line."""
        return [each for each in self.samples if (each.strategy, each.model) == (line.strategy, line.model)]

    @property
    def speed(self) -> str:
        """The kind of the speedups; empty when none is known."""
        return SPEED_KINDS.get(self.terms.level, "")


def load(files: Sequence[Path]) -> tuple[Terms, list[Sample]]:
    """The samples of ``files`` together. Raises :class:`InputError` when they were made on different terms."""
    terms, samples = read(files[0])
    for file in files[1:]:
        other, more = read(file)
        differences = terms.model_copy(update={"seed": other.seed}).differences(other)
        if differences:
            raise InputError(
                f"other terms than those of {files[0]}: {'; '.join(differences)}.",
                where=str(file),
                fix="Report them apart.",
            )
        samples += more
    return terms, samples


def build(
    terms: Terms, samples: Sequence[Sample], k: int = 1, *, tier: str | None = None, split: str | None = None
) -> Report:
    """The report of ``samples``, of one tier or split where asked for.

    While a campaign runs, strategies have finished different tasks, some of them easy to speed up. All are compared on
    the tasks of which each has ``k`` samples; the others are named. Raises :class:`InputError` when none is left.
    """
    wanted = [s for s in samples if tier in (None, s.tier) and split in (None, s.split)]
    if not wanted:
        raise InputError("no finished sample to report.", fix="Look at the options --tier and --split, or run more.")
    counts = Counter((s.strategy, s.model, s.task) for s in wanted)
    pairs = {(strategy, model) for strategy, model, _ in counts}
    tasks = sorted({s.task for s in wanted})
    shared = {task for task in tasks if all(counts[(*pair, task)] >= k for pair in pairs)}
    if not shared:
        raise InputError(
            f"no task has {k} finished samples of every strategy and model yet.", fix="Run more, or report files apart."
        )
    groups: dict[tuple[str, str], list[Sample]] = {}
    kept = [s for s in wanted if s.task in shared]
    for sample in kept:
        groups.setdefault((sample.strategy, sample.model), []).append(sample)
    lines = [
        Line(strategy, model, len(group), summarise(by_task(group), k), mean_curve(group, terms.budget))
        for (strategy, model), group in groups.items()
    ]
    lines.sort(key=lambda line: (-_worth(line.summaries[ALL]), line.strategy, line.model))
    return Report(terms, k, len(shared), tuple(lines), tuple(kept), tuple(t for t in tasks if t not in shared))


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
        "left_out": list(report.left_out),
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


@dataclass(frozen=True)
class Section:
    """A table of the report, in words."""

    title: str
    headings: list[str]
    rows: list[list[str]]


def sections(report: Report) -> list[Section]:
    """Every table: one a tier, one by task, and what came of the calls."""
    return [*(_tier(report, tier) for tier in tiers(report)), _by_task(report), _calls(report)]


def _tier(report: Report, tier: str) -> Section:
    k = report.k
    headings = ["strategy", "solved", f"pass@{k}"]
    if report.speed:
        headings += [f"speedup@{k}", "solved only", "geo. mean", "fast_1", "fast_2", "bound"]
    rows = []
    for line in report.lines:
        summary = line.summaries.get(tier)
        if summary is None:
            continue
        alone = summary.tasks < 2
        row = [report.name(line), f"{summary.solved}/{summary.tasks}", _share(summary.pass_at_k, alone)]
        if report.speed:
            row += [
                _ratio(summary.speedup_at_k, alone),
                _ratio(summary.solved_speedup_at_k, alone),
                _ratio(summary.geometric_mean, alone),
                _percent(summary.fast_1),
                _percent(summary.fast_2),
                _percent(summary.bound_share),
            ]
        rows.append(row)
    return Section(f"Tier {tier}" if tier != ALL else "All tiers", headings, rows)


def _by_task(report: Report) -> Section:
    names = {(s.task, s.tier) for s in report.samples}
    rows = []
    for task, tier in sorted(names, key=lambda each: (TIERS.index(each[1]), each[0])):
        row = [task, tier]
        for line in report.lines:
            samples = [s for s in report.of(line) if s.task == task]
            solved = [s for s in samples if s.solved]
            speeds = [s.speedup or 0.0 for s in solved]
            row.append(
                _cell(sum(speeds) / len(samples) if report.speed and solved else None, len(solved), len(samples))
            )
        rows.append(row)
    title = "By task: mean speedup, failed = 0 (solved samples)" if report.speed else "By task: solved samples"
    return Section(title, ["task", "tier", *(report.name(line) for line in report.lines)], rows)


def _cell(speedup: float | None, solved: int, samples: int) -> str:
    share = f"{solved} of {samples}"
    if speedup is None:
        return share
    return f"{_number(speedup)}×" + (f" ({share})" if solved < samples else "")


def _calls(report: Report) -> Section:
    totals: Counter[str] = Counter()
    for sample in report.samples:
        totals.update(sample.verdicts)
    kinds = [kind for kind, _ in totals.most_common()]
    rows = []
    for line in report.lines:
        samples = report.of(line)
        counts: Counter[str] = Counter()
        for sample in samples:
            counts.update(sample.verdicts)
        calls = sum(s.calls for s in samples)
        spent = [sum(s.seconds.get(part, 0.0) for s in samples) / max(calls, 1) for part in ("generate", "verify")]
        shares = [_percent(counts[kind] / max(counts.total(), 1)) for kind in kinds]
        rows.append([report.name(line), str(calls), *shares, *(f"{seconds:.2f} s" for seconds in spent)])
    headings = ["strategy", "calls", *(kind.replace("_", " ") for kind in kinds), "generating", "judging"]
    return Section("What came of the calls, and seconds a call", headings, rows)


def tiers(report: Report) -> list[str]:
    """The tiers that have a row, and ``all`` last."""
    return [tier for tier in (*TIERS, ALL) if any(tier in line.summaries for line in report.lines)]


def notes(report: Report) -> list[str]:
    """What a reader must know of the figures."""
    terms = report.terms
    speed = f"Speedups are {report.speed}." if report.speed else "Speed was not measured at this level."
    settings = "".join(f", {name} {value}" for name, value in terms.settings.items())
    models = ", ".join(Path(model).name for model in report.models)
    found = [
        f"{len(report.samples)} searches on {report.tasks} tasks with {models}: "
        f"budget {terms.budget} generator calls a search, level {terms.level}, mode {terms.mode}{settings}."
    ]
    gpus = sorted({s.gpu for s in report.samples if s.gpu})
    dates = sorted({s.date.date().isoformat() for s in report.samples if s.date is not None})
    place = [*gpus, " to ".join(dict.fromkeys((dates[0], dates[-1])))] if dates else gpus
    found.append(" ".join([speed, *([f"{', '.join(place)}."] if place else [])]))
    if report.speed:
        found.append(
            f"speedup@{report.k} counts a failed search as 0; `solved only` leaves failed ones out, as the ReGraphT "
            "paper does, and so does the geometric mean. `bound` is the share of the GPU's limit."
        )
    found.append(
        "In brackets: 95 % bootstrap intervals over tasks; over few tasks, or all solved, they are too narrow."
    )
    if report.left_out:
        found.append(
            f"Left out, because not every strategy has {report.k} finished on them: {', '.join(report.left_out)}."
        )
    return found


def markdown(report: Report) -> str:
    """The report as Markdown."""
    parts = ["# CUDAEval report", "", *(f"- {note}" for note in notes(report))]
    for section in sections(report):
        rule = ["---", *("---:" for _ in section.headings[1:])]
        parts += ["", f"## {section.title}", "", _cells(section.headings), _cells(rule)]
        parts += [_cells(row) for row in section.rows]
    return "\n".join(parts) + "\n"


def _cells(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def tables(report: Report) -> list[Table]:
    """The report as tables for a terminal."""
    from rich.table import Table

    found = []
    for section in sections(report):
        table = Table(title=section.title, title_justify="left")
        for index, heading in enumerate(section.headings):
            table.add_column(heading, justify="right" if index else "left")
        for row in section.rows:
            table.add_row(*row)
        found.append(table)
    return found


def _ratio(figure: Estimate | None, alone: bool) -> str:
    if figure is None:
        return "–"
    low, high = _number(figure.low), _number(figure.high)
    return _number(figure.value) if alone else f"{_number(figure.value)} [{low}, {high}]"


def _number(value: float) -> str:
    """With three digits, as far as there are so many."""
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def _share(figure: Estimate | None, alone: bool) -> str:
    if figure is None:
        return "–"
    return f"{figure.value:.1%}" if alone else f"{figure.value:.1%} [{figure.low:.0%}, {figure.high:.0%}]"


def _percent(figure: float | None) -> str:
    return "–" if figure is None else f"{figure:.0%}"
