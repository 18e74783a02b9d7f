"""Running the searches of a campaign, in this process or in several, each search on its own copy of the graph.

A search writes what it learnt into its graph. On one graph the second strategy would begin with what the first has
learnt, and a result would depend on the order of running. So the graph is copied once, when the campaign begins, into
``RUNS.graphs/base.db``, and every search works on a copy of that, which stays there as ``SEARCH.db`` to be looked at
(`regraph search show SEARCH --store sqlite:///…`) and to go on with after a kill. The store itself is only read.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import threading
from collections import abc
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from cudaeval.campaign import Cell, sample_of
from cudaeval.claims import ClaimingJudge
from cudaeval.results import Sample
from regraph_db.errors import InternalFault, RegraphError
from regraph_db.opening import open_store
from regraph_db.records import SearchStatus, content_id
from regraph_db.settings import load
from regraph_db.store import GraphStore
from search.generators import Generator, open_generator
from search.hardware import gpu_text
from search.run import finish, open_search, work
from search.seconds import Stopwatch
from search.settings import SearchSettings
from verify import Judge
from verify.settings import VerifySettings

if TYPE_CHECKING:
    from search.outcome import SearchOutcome

#: Searches that may fail one after the other before a campaign gives up.
FAILURES = 3


@dataclass(frozen=True)
class Post:
    """What a process that runs searches needs to know; it opens everything itself."""

    graphs: Path
    search: SearchSettings
    verify: VerifySettings
    models: Mapping[str, str]  #: what opens each model, by its name in the results

    def on(self, gpu: int) -> Post:
        """The same, on another GPU."""
        return replace(self, verify=self.verify.model_copy(update={"gpu": gpu}))


BASE = "base.db"


def fingerprint(store: GraphStore, graphs: Path) -> str:
    """Of what the campaign's searches know: the copy in ``graphs`` once there is one, else ``store``."""
    base = graphs / BASE
    if base.exists():
        with open_store(load(), url=f"sqlite:///{base}") as copy:
            return _fingerprint(copy)
    return _fingerprint(store)


def _fingerprint(store: GraphStore) -> str:
    # Sums of gains depend in their last digits on the order in which they were added.
    moves = sorted(
        (t.before, t.after, t.statistics.examples, f"{t.statistics.gain_sum:.6f}") for t in store.transitions()
    )
    return content_id("graph", moves, sorted(each.id for each in store.trajectories()))[:12]


def copy_base(store: GraphStore, graphs: Path) -> None:
    """Copy what ``store`` holds into ``graphs``, once: a campaign that goes on keeps the knowledge it began with."""
    base = graphs / BASE
    if base.exists():
        return
    graphs.mkdir(parents=True, exist_ok=True)
    part = graphs / "base.part"
    part.unlink(missing_ok=True)
    with open_store(load(), url=f"sqlite:///{part}", create=True) as copy:
        copy.load(store.dump())
    part.replace(base)


class Solver:
    """Runs one search after the other: one judge, each model opened once and kept while it is in use."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._judge = Judge(post.verify)
        self._claiming = ClaimingJudge(self._judge, post.graphs / "claims")
        self._model: tuple[str, Generator] | None = None

    def __call__(self, cell: Cell) -> Sample:
        """Open the cell's search or go on with it, spend its budget, and conclude it."""
        graph = self._post.graphs / f"{cell.search}.db"
        if not graph.exists():
            part = graph.with_suffix(".part")
            shutil.copyfile(self._post.graphs / BASE, part)
            part.replace(graph)
        with open_store(load(), url=f"sqlite:///{graph}") as store:
            return sample_of(cell, self._search(store, cell))

    def _search(self, store: GraphStore, cell: Cell) -> SearchOutcome:
        generator = self._generator(cell.model)
        watch = Stopwatch()
        search = open_search(
            store,
            cell.task,
            strategy=cell.strategy,
            model=generator.name,
            level=cell.terms.level,
            settings=self._post.search.model_copy(update={"budget": cell.terms.budget}),
            seed=cell.seed,
            gpu=gpu_text(self._judge),
            search_id=cell.search,
        )
        runner = None
        if search.status is not SearchStatus.FINISHED:
            store.reclaim()
            runner = work(store, search, cell.task, generator, self._claiming, watch=watch)
        return finish(store, search.id, cell.task, self._judge, watch, runner)

    def _generator(self, model: str) -> Generator:
        if self._model is None or self._model[0] != model:
            self._let_go()
            self._model = (model, open_generator(self._post.models[model], self._post.search))
        return self._model[1]

    def _let_go(self) -> None:
        if self._model is not None:
            self._model[1].close()
            self._model = None

    def __enter__(self) -> Solver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()
        self._claiming.close()
        self._judge.__exit__(kind, error, trace)


def solve(cells: Sequence[Cell], post: Post, gpus: Sequence[int], jobs: int) -> Iterator[Sample]:
    """The samples of ``cells`` as they are finished, ``jobs`` searches at a time, spread over ``gpus``.

    A search that fails is left for the next run, and the first failure is raised in the end; after three without a
    sample between them, or as many as there are jobs, at once.
    """
    failed: list[RegraphError] = []
    in_a_row = 0
    with contextlib.closing(_attempts(cells, post, gpus, min(jobs, len(cells)))) as attempts:
        for found in attempts:
            if isinstance(found, Sample):
                in_a_row = 0
                yield found
                continue
            failed.append(found)
            in_a_row += 1
            if in_a_row >= max(FAILURES, jobs):
                break
    if failed:
        raise failed[0]


def _attempts(
    cells: Sequence[Cell], post: Post, gpus: Sequence[int], jobs: int
) -> abc.Generator[Sample | RegraphError, None, None]:
    if jobs <= 1:
        with Solver(post.on(gpus[0])) as solver:
            for cell in cells:
                try:
                    yield solver(cell)
                except RegraphError as error:
                    yield error
        return
    context = multiprocessing.get_context("spawn")
    places: SimpleQueue[int] = context.SimpleQueue()
    for job in range(jobs):
        places.put(gpus[job % len(gpus)])
    leash, hold = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(post, places, leash))
    try:
        for future in as_completed([pool.submit(_solve, cell) for cell in cells]):
            try:
                yield future.result()
            except BrokenProcessPool:
                raise InternalFault(
                    "a process that ran searches died.", fix="Run the same command again: it goes on where this ended."
                ) from None
            except RegraphError as error:
                yield error
    except BaseException:
        hold.close()  # nobody waits for the searches under way: the next run goes on with them
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        hold.close()


_solver: Solver | None = None


def _begin(post: Post, places: SimpleQueue[int], leash: Connection) -> None:
    """The beginning of a process of the pool."""
    global _solver
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the campaign's own process says what an interruption means
    threading.Thread(target=_end_with, args=(leash,), daemon=True).start()
    _solver = Solver(post.on(places.get()))


def _end_with(leash: Connection) -> None:
    """End when the campaign lets go, or was killed: nothing may stay behind that holds a GPU."""
    leash.poll(None)
    os._exit(1)


def _solve(cell: Cell) -> Sample:
    assert _solver is not None
    return _solver(cell)
