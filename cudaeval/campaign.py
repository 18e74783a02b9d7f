"""`regraph eval run`: tasks × strategies × models × samples at one budget, resumable.

The campaign decides what is run and in which order; a *solver* (`cudaeval/solver.py`) runs the searches. A search's id
follows from its cell and the campaign's terms, so that a killed campaign finds the searches it was in the middle of and
goes on with them: no sample is begun twice and no candidate is judged twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudaeval.results import Results, Sample, Terms
from regraph_db.records import Attempt, content_id, now

if TYPE_CHECKING:
    from search.outcome import SearchOutcome
    from verify import Task


@dataclass(frozen=True)
class Cell:
    """One search to run."""

    task: Task
    strategy: str
    model: str
    sample: int
    terms: Terms

    @property
    def search(self) -> str:
        """The search's id: the same cell on the same terms and task is the same search."""
        terms = self.terms.model_dump(mode="json")
        return content_id("campaign", self.task.name, self.task.hash, self.strategy, self.model, self.sample, terms)

    @property
    def seed(self) -> int:
        return self.terms.seed + self.sample

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.task.name, self.strategy, self.model, self.sample


#: Runs the searches of cells to their ends, going on with those begun before; gives samples as they are finished.
Solver = Callable[[Sequence[Cell]], Iterable[Sample]]


def cells(
    tasks: Sequence[Task], strategies: Sequence[str], models: Sequence[str], samples: int, terms: Terms
) -> Iterator[Cell]:
    """Every cell, in the order of running: a model is opened once, and every task has a sample before any has two."""
    for model in models:
        for sample in range(samples):
            for task in tasks:
                for strategy in strategies:
                    yield Cell(task, strategy, model, sample, terms)


def run(
    wanted: Sequence[Cell], results: Results, solver: Solver, progress: Callable[[Sample, int, int], None] | None = None
) -> int:
    """Run what ``results`` does not hold yet and append it there; how many samples were run.

    ``progress`` gets each sample with the number of samples that are known now and of those that are wanted.
    """
    known = {sample.key for sample in results.samples}
    missing = [cell for cell in wanted if cell.key not in known]
    done = len(wanted) - len(missing)
    for ran, sample in enumerate(solver(missing), 1):
        results.add(sample)
        if progress is not None:
            progress(sample, done + ran, len(wanted))
    return len(missing)


def sample_of(cell: Cell, outcome: SearchOutcome) -> Sample:
    """What a finished search amounts to. The answer is the search's own: at level gpu its best kernels, timed again."""
    best = outcome.best
    return Sample(
        task=cell.task.name,
        tier=cell.task.tier,
        split=cell.task.split,
        strategy=cell.strategy,
        model=cell.model,
        sample=cell.sample,
        search=outcome.search,
        calls=outcome.calls,
        solved=best is not None,
        speedup=best.speedup if best is not None else None,
        bound_share=best.verdict.bound_share if best is not None else None,
        path=best.path if best is not None else (),
        verdicts=outcome.verdicts,
        seconds=outcome.seconds,
        curve=_curve(outcome.attempts),
        gpu=best.verdict.evidence.gpu if best is not None else "",
        date=now(),
    )


def _curve(attempts: Sequence[Attempt]) -> tuple[tuple[int, float], ...]:
    points: list[tuple[int, float]] = []
    for calls, attempt in enumerate(attempts, 1):
        passed = attempt.verdict is not None and attempt.verdict.passed
        if passed and attempt.speedup is not None and (not points or attempt.speedup > points[-1][1]):
            points.append((calls, attempt.speedup))
    return tuple(points)
