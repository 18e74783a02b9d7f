"""`regraph eval run`: tasks × strategies × models × samples at one budget, resumable.

The campaign decides what is run and in which order; a *solver* runs one search. A search's id follows from its cell and
the campaign's terms, so that a killed campaign finds the search it was in the middle of in the graph and goes on with
it: no sample is begun twice and no candidate is judged twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cudaeval.results import Results, Sample, Terms
from regraph_db.records import Attempt, SearchStatus, content_id

if TYPE_CHECKING:
    from regraph_db.store import GraphStore
    from search.generators import Generator
    from search.outcome import SearchOutcome
    from search.settings import SearchSettings
    from verify import Judge, Task


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


#: Runs the search of a cell to its end, going on with it where it was begun before.
Solver = Callable[[Cell], "SearchOutcome"]


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

    ``progress`` gets each sample with its place and the number of cells.
    """
    known = {sample.key for sample in results.samples}
    ran = 0
    for place, cell in enumerate(wanted, 1):
        if cell.key in known:
            continue
        sample = sample_of(cell, solver(cell))
        results.add(sample)
        ran += 1
        if progress is not None:
            progress(sample, place, len(wanted))
    return ran


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
    )


def _curve(attempts: Sequence[Attempt]) -> tuple[tuple[int, float], ...]:
    points: list[tuple[int, float]] = []
    for calls, attempt in enumerate(attempts, 1):
        passed = attempt.verdict is not None and attempt.verdict.passed
        if passed and attempt.speedup is not None and (not points or attempt.speedup > points[-1][1]):
            points.append((calls, attempt.speedup))
    return tuple(points)


class SearchSolver:
    """Runs cells with the search package: one judge, one store, each model opened once and kept while it is in use."""

    def __init__(self, store: GraphStore, judge: Judge, settings: SearchSettings) -> None:
        self._store = store
        self._judge = judge
        self._settings = settings
        self._model: tuple[str, Generator] | None = None

    def __call__(self, cell: Cell) -> SearchOutcome:
        """Open the cell's search or go on with it, spend its budget, and conclude it."""
        from search.hardware import gpu_text
        from search.run import finish, open_search, work
        from search.seconds import Stopwatch

        generator = self._generator(cell.model)
        watch = Stopwatch()
        search = open_search(
            self._store,
            cell.task,
            strategy=cell.strategy,
            model=generator.name,
            level=cell.terms.level,
            settings=self._settings.model_copy(update={"budget": cell.terms.budget}),
            seed=cell.seed,
            gpu=gpu_text(self._judge),
            search_id=cell.search,
        )
        runner = None
        if search.status is not SearchStatus.FINISHED:
            self._store.reclaim()
            runner = work(self._store, search, cell.task, generator, self._judge, watch=watch)
        return finish(self._store, search.id, cell.task, self._judge, watch, runner)

    def _generator(self, model: str) -> Generator:
        from search.generators import open_generator

        if self._model is None or self._model[0] != model:
            self.close()
            self._model = (model, open_generator(model, self._settings))
        return self._model[1]

    def close(self) -> None:
        """Let go of the model."""
        if self._model is not None:
            self._model[1].close()
            self._model = None
