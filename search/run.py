"""A whole search: open it, work on it, conclude it. The library face is :func:`run_search`."""

from __future__ import annotations

import os
import platform
import uuid
from typing import Any

from regraph_db.errors import InputError
from regraph_db.records import ROOT, Level, Runner, Search, SearchStatus, State, TaskReference
from regraph_db.store import GraphStore
from search.candidates import Judging, Workshop
from search.generators import Generator
from search.outcome import SearchOutcome, conclude, outcome_of
from search.progress import Progress, Watcher
from search.runner import SearchRunner
from search.seconds import Stopwatch
from search.settings import SearchSettings
from search.strategies import Ground, strategy_named
from search.timed_store import timed
from verify import Task

#: Kept in a search's settings beside those of :class:`SearchSettings`.
_START, _GPU, _BASELINE_SECONDS = "start", "gpu", "baseline_seconds"


def check_graph(store: GraphStore, task: Task, strategy: str) -> None:
    """Raise :class:`InputError` when the graph gives ``strategy`` nothing to begin with, or it is unknown."""
    if not strategy_named(strategy).needs_transitions:
        return
    if not any(transition.before == ROOT for transition in store.transitions(without_task=task.name)):
        raise InputError(
            f"the graph knows no technique to begin with (no transition out of `{ROOT}` from another task).",
            where=store.url,
            fix="Bring trajectories in with `regraph ingest add FILE…`.",
        )


def open_search(
    store: GraphStore,
    task: Task,
    *,
    strategy: str,
    model: str,
    level: Level,
    settings: SearchSettings,
    seed: int = 0,
    start_code: str | None = None,
    gpu: str = "",
    baseline_seconds: float | None = None,
    search_id: str | None = None,
) -> Search:
    """Write a new search into the store. ``start_code`` is the user's own kernel, which then is the baseline too;
    ``gpu`` is the text about the GPU that FSR's prompts carry.

    Raises :class:`InputError` as :func:`check_graph` does, with nothing written."""
    check_graph(store, task, strategy)
    search = Search(
        id=search_id or uuid.uuid4().hex,
        task=TaskReference(name=task.name, hash=task.hash),
        strategy=strategy,
        level=level,
        settings={
            **settings.model_dump(mode="json"),
            _START: "kernel" if start_code else "reference",
            _GPU: gpu,
            _BASELINE_SECONDS: baseline_seconds,
        },
        model=model,
        seed=seed,
        budget=settings.budget,
        start_code=start_code or task.reference,
    )
    return store.open_search(search, State(id=ROOT, technique=ROOT))


def settings_of(search: Search) -> SearchSettings:
    """The settings that a search was opened with."""
    return SearchSettings.model_validate(
        {k: v for k, v in search.settings.items() if k not in (_START, _GPU, _BASELINE_SECONDS)}
    )


def baseline_of(search: Search) -> str | None:
    """The kernel that speed is compared with; ``None`` is the sequential reference."""
    return search.start_code if search.settings.get(_START) == "kernel" else None


def check_task(search: Search, task: Task) -> None:
    """Raise :class:`InputError` when ``task`` is no longer the one that the search began with."""
    if (search.task.name, search.task.hash) != (task.name, task.hash):
        raise InputError(
            f"the task `{task.name}` is not the one that this search began with (its files changed).",
            where=f"search {search.id}",
            fix="Start a new search with `regraph search run`.",
        )


def work(
    store: GraphStore,
    search: Search,
    task: Task,
    generator: Generator,
    judge: Judging,
    *,
    stream: str = "0",
    watch: Stopwatch | None = None,
    watcher: Watcher | None = None,
) -> SearchRunner:
    """Join a search as one runner, and work until its budget is spent."""
    check_task(search, task)
    settings = settings_of(search)
    watch = watch or Stopwatch()
    counted = timed(store, watch)
    ground = Ground(counted, search, task, settings, gpu=str(search.settings.get(_GPU, "")))
    workshop = Workshop(
        search,
        task,
        generator,
        judge,
        settings,
        Progress(search.budget, search.calls),
        watch,
        baseline=baseline_of(search),
        baseline_seconds=search.settings.get(_BASELINE_SECONDS),
    )
    runner = SearchRunner(
        counted,
        search,
        strategy_named(search.strategy)(ground),
        workshop,
        settings,
        runner=Runner(
            id=uuid.uuid4().hex, search=search.id, host=platform.node(), pid=os.getpid(), lease=settings.lease
        ),
        stream=stream,
        watcher=watcher,
    )
    runner.run()
    return runner


def finish(
    store: GraphStore, search: str, task: Task, judge: Judging, watch: Stopwatch, runner: SearchRunner | None = None
) -> SearchOutcome:
    """Conclude a search whose budget is spent, or that stopped early. One that is finished already stays as it is."""
    record = store.search(search)
    if record.status is SearchStatus.FINISHED:
        return outcome_of(store, search)
    shortened = runner.workshop.shortened if runner else {}
    notes = [f"{left_out} in {count} prompts, which did not fit the context" for left_out, count in shortened.items()]
    if record.calls < record.budget:
        notes.append(
            f"stopped after {record.calls} of {record.budget} calls: nothing was left to try, or no gain any more"
        )
    return conclude(
        store,
        search,
        task,
        judge,
        settings_of(record),
        baseline=baseline_of(record),
        seconds=watch.report,
        notes=notes,
    )


def run_search(
    task: Task,
    *,
    generator: Generator,
    judge: Judging,
    store: GraphStore,
    strategy: str = "mcgs",
    settings: SearchSettings | None = None,
    seed: int = 0,
    budget: int | None = None,
    level: Level | None = None,
    start_code: str | None = None,
    gpu: str = "",
    progress: Watcher | None = None,
) -> SearchOutcome:
    """Search a kernel for ``task`` with one runner in this process.

    ``budget`` counts generator calls and overrides the settings; ``level`` defaults to the judge's best. The outcome's
    attempts stand in the order in which they were made (:func:`search.outcome.best_so_far` makes a curve of them).

    Raises :class:`InputError` for an unknown strategy or a graph without a transition to begin with (``mcgs``,
    ``random``), :class:`EnvironmentFault` when generator or judge fail several times in a row; the search then stays
    open in the store.
    """
    chosen = settings or SearchSettings.model_validate({})
    if budget is not None:
        chosen = chosen.model_copy(update={"budget": budget})
    found: Any = level or getattr(judge, "best_level", Level.FUNCTIONAL)
    store.expect_search()
    watch = Stopwatch()
    kernel = judge.submit(task, start_code, Level(found)).result() if start_code else None
    search = open_search(
        store,
        task,
        strategy=strategy,
        model=generator.name,
        level=Level(found),
        settings=chosen,
        seed=seed,
        start_code=start_code,
        gpu=gpu,
        baseline_seconds=kernel.modelled_seconds if kernel else None,
    )
    runner = work(store, search, task, generator, judge, watch=watch, watcher=progress)
    return finish(store, search.id, task, judge, watch, runner)
