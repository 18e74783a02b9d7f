"""What `regraph eval run` does between its flags and the campaign: settings, tasks, store, judge."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cudaeval import TASKS
from cudaeval.campaign import SearchSolver, cells, run
from cudaeval.results import Results, Sample, Terms
from regraph_db.errors import EnvironmentFault, InputError
from regraph_db.records import Level
from regraph_db.settings import load, section
from regraph_db.store import open_store
from search.settings import SearchSettings
from verify import Judge, Task, list_tasks, load_task
from verify.settings import VerifySettings


def launch(
    names: Sequence[str], out: Path, chosen: dict[str, Any], progress: Callable[[Sample, int, int], None]
) -> tuple[int, int]:
    """Run a campaign with the command's flags; samples run now, and samples that it has in all.

    Raises :class:`InputError` when no task is left to run, :class:`EnvironmentFault` without a model.
    """
    shared = load({"store": chosen["store"]})
    settings = section("search", SearchSettings, {"budget": chosen["budget"], "mode": chosen["mode"]})
    models = list(chosen["models"]) or [model for model in (shared.model,) if model]
    if not models:
        raise EnvironmentFault("no model is named.", fix="Give --model FILE.gguf or --model langchain:PROVIDER/NAME.")
    tasks = select(names, chosen["tier"], chosen["split"])
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(open_store(shared))
        judge = stack.enter_context(Judge(section("verify", VerifySettings, {"gpu": chosen["gpu"]})))
        level = Level(chosen["level"] or judge.best_level)
        terms = Terms(budget=settings.budget, level=level, seed=chosen["seed"], mode=settings.mode)
        results = stack.enter_context(Results(out, terms))
        solver = stack.enter_context(contextlib.closing(SearchSolver(store, judge, settings)))
        wanted = list(cells(tasks, chosen["strategies"], models, chosen["samples"], terms))
        return run(wanted, results, solver, progress), len(wanted)


def select(names: Sequence[str], tier: str | None, split: str) -> list[Task]:
    """The tasks named, or the shipped ones of ``split``; of one tier where it is given."""
    if names:
        found = [load_task(name) for name in names]
    else:
        found = [task for task in list_tasks() if task.folder.parent == TASKS and task.split == split]
    found = [task for task in found if tier in (None, task.tier)]
    if not found:
        raise InputError("no task is left to run.", fix="Look at TASK, --tier and --split.")
    return found
