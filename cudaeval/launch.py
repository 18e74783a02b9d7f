"""What `regraph eval run` does between its flags and the campaign: settings, tasks, store, judge."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from cudaeval import TASKS
from cudaeval.campaign import cells, run
from cudaeval.metrics import TIERS
from cudaeval.results import Results, Sample, Terms
from cudaeval.solver import Post, copy_base, fingerprint, solve
from regraph_db.errors import EnvironmentFault, InputError
from regraph_db.opening import open_store
from regraph_db.records import Level
from regraph_db.settings import load, section
from search.generators.opening import LANGCHAIN
from search.settings import SearchSettings
from verify import Judge, Task, list_tasks, load_task
from verify.judge import best_level
from verify.plan import timed_cases
from verify.settings import VerifySettings

#: Settings of a search that stand in the terms themselves, or that change how fast it runs and not what it finds.
_APART = {"budget", "mode", "threads", "gpu_layers", "lease", "generator_seconds", "retries", "failures"}


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
    named = {name_of(model): model for model in models}
    jobs = chosen["jobs"]
    verify = section("verify", VerifySettings)
    gpus = chosen["gpus"] or (verify.gpu,)
    verify = verify.model_copy(update={"gpu": gpus[0]})
    level = Level(chosen["level"] or verify.level or best_level(verify))
    graphs = out.with_suffix(".graphs").absolute()
    post = Post(graphs, settings.model_copy(update={"threads": settings.threads_each(jobs)}), verify, named)
    with open_store(shared) as store:
        known = fingerprint(store, post.graphs)
    terms = Terms(
        budget=settings.budget,
        level=level,
        seed=chosen["seed"],
        graph=known,
        mode=settings.mode,
        settings=changed(settings),
    )
    wanted = list(cells(tasks, chosen["strategies"], list(named), chosen["samples"], terms))
    with Results(out, terms) as results:
        with open_store(shared) as store:
            copy_base(store, post.graphs)
        if level is Level.GPU and jobs > 1:
            time_references(tasks, verify)
        return run(wanted, results, lambda missing: solve(missing, post, gpus, jobs), progress), len(wanted)


def name_of(model: str) -> str:
    """What results call a model: the same file has the same name wherever it lies, another one another.

    Raises :class:`EnvironmentFault` for a file that cannot be read.
    """
    if model.startswith(LANGCHAIN):
        return model
    file = Path(model).expanduser()
    try:
        with file.open("rb") as stream:
            return f"{file.name}@{hashlib.file_digest(stream, 'sha256').hexdigest()[:8]}"
    except OSError as error:
        raise EnvironmentFault(
            f"the model cannot be read: {error.strerror}.", where=model, fix="Give the path of a GGUF file."
        ) from None


def time_references(tasks: Sequence[Task], verify: VerifySettings) -> None:
    """Time the sequential references, which speedups are relative to, before other jobs load the machine."""
    with Judge(verify) as judge:
        for task in tasks:
            for sets in timed_cases(task, verify):
                judge.references.seconds(task, sets[0])


def changed(settings: SearchSettings) -> dict[str, Any]:
    """The settings that are not as the mode has them by default."""
    default = SearchSettings.model_validate({"mode": settings.mode})
    return settings.model_dump(
        mode="json",
        exclude=_APART
        | {name for name in SearchSettings.model_fields if getattr(settings, name) == getattr(default, name)},
    )


def select(names: Sequence[str], tier: str | None, split: str) -> list[Task]:
    """The tasks named, or the shipped ones of ``split``; of one tier where it is given.

    Shipped ones come from each tier in turn, so that a campaign that ends early has seen all of them.
    """
    if names:
        found = [load_task(name) for name in names]
    else:
        shipped = [task for task in list_tasks() if task.folder.parent == TASKS and task.split == split]
        by_tier = [[task for task in shipped if task.tier == each] for each in TIERS]
        found = [task for turn in zip_longest(*by_tier) for task in turn if task is not None]
    found = [task for task in found if tier in (None, task.tier)]
    if not found:
        raise InputError("no task is left to run.", fix="Look at TASK, --tier and --split.")
    return found
