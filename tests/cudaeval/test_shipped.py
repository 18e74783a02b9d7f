"""The shipped tasks and trajectories: counts, splits, formats, and what is kept of measurements and mutants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudaeval import TASKS, TRAJECTORIES, catalogue, caught, shipped
from cudaeval.metrics import TIERS
from cudaeval.mutate import check, mutants, read_harmless
from cudaeval.splits import split_of
from regraph_db import page_marks
from verify import Judge, list_tasks, load_task

NAMES = shipped.names()
#: The problems of CUDA-LLM (arXiv 2506.09092), by the task that holds each.
CUDA_LLM = {
    "sigmoid",
    "matmul",
    "max_pool3d",
    "layer_norm",
    "conv2d",
    "multihead_self_attention",
    "mse",
    "transpose",
    "reverse",
    "relu",
    "topk",
    "sorting",
    "matrix_copy",
    "reduction",
    "dot_product",
    "prefix_sum",
    "cross_entropy",
    "monte_carlo_integration",
    "histogram",
    "ordinary_least_squares",
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as one:
        yield one


def test_there_are_twenty_tasks_a_tier_and_a_trajectory_for_each() -> None:
    tasks = [task for task in list_tasks() if task.folder.parent == TASKS]
    counts = Counter(task.tier for task in tasks)
    assert all(counts[tier] >= 20 for tier in TIERS), counts
    assert sorted(task.name for task in tasks) == NAMES
    assert set(NAMES) >= CUDA_LLM and len(CUDA_LLM) == 20


def test_the_split_is_the_seeded_one_and_spreads_over_the_tiers() -> None:
    tasks = [load_task(name) for name in NAMES]
    assert {task.name: task.split for task in tasks} == {task.name: split_of(task.name) for task in tasks}
    tests = Counter(task.tier for task in tasks if task.split == "test")
    assert sum(tests.values()) >= 20 and all(tests[tier] >= 6 for tier in TIERS), tests


def test_there_are_250_steps_and_methods_in_free_text() -> None:
    steps = [step for name in NAMES for step in shipped.read_trajectories(shipped.trajectory_file(name))[0].steps]
    assert len(steps) >= 250
    assert all(step.think.strip() and step.detail.strip() for step in steps)
    assert len({step.method.lower() for step in steps}) > 100, "relabelling has nothing to do"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_holds_one_trajectory_of_its_task(name: str) -> None:
    (trajectory,) = shipped.read_trajectories(shipped.trajectory_file(name))
    assert trajectory.task == name and trajectory.author
    codes = [step.code for step in trajectory.steps]
    assert len(set(codes)) == len(codes), "a step changes nothing"


@pytest.mark.parametrize("name", NAMES)
def test_a_measurement_speaks_of_the_code_that_stands_there(name: str) -> None:
    measured = shipped.read_measured(shipped.measured_file(name))
    assert measured is not None, f"run `regraph eval measure {name}` on a machine with a GPU"
    (trajectory,) = shipped.read_trajectories(shipped.trajectory_file(name))
    assert shipped.staleness(measured, trajectory, load_task(name)) == ""


def test_at_least_ten_trajectories_end_above_half_of_the_bound() -> None:
    shares = [entry.bound_share or 0.0 for entry in catalogue.entries(TRAJECTORIES)]
    assert sum(share > 0.5 for share in shares) >= 10


def test_the_page_shows_what_was_measured() -> None:
    page = Path(__file__).parents[2] / "docs" / "cudaeval.md"
    text = page.read_text(encoding="utf-8")
    shown = page_marks.replaced(text, "trajectories", catalogue.markdown(catalogue.entries(TRAJECTORIES)))
    assert shown == text, "regraph eval trajectories --update docs/cudaeval.md"
    shown = page_marks.replaced(text, "mutants", caught.markdown(caught.read().tasks, read_harmless()))
    assert shown == text, "regraph eval mutate --keep --update docs/cudaeval.md"


def test_every_harmless_mutant_still_exists_and_has_a_reason() -> None:
    for each in read_harmless():
        (trajectory,) = shipped.read_trajectories(shipped.trajectory_file(each.task))
        sizes = [parameter.name for parameter in load_task(each.task).parameters if parameter.kind == "size"]
        found = mutants(each.task, each.step, trajectory.steps[each.step - 1].code, sizes)
        hashes = {shipped.code_hash(m.code) for m in found if (m.operator, m.line) == (each.operator, each.line)}
        assert each.code in hashes, f"{each.task} step {each.step} line {each.line}: {each.operator}"
        assert len(each.reason) > 10


def test_the_tests_of_every_task_catch_almost_every_broken_kernel() -> None:
    kept, harmless = caught.read(), read_harmless()
    for name in NAMES:
        task, trajectory = shipped.load_one(name)
        entry = kept.tasks.get(name)
        fresh = entry is not None and entry.workload == caught.workload(task, [step.code for step in trajectory.steps])
        assert entry is not None and fresh, f"run `regraph eval mutate {name} --keep --update docs/cudaeval.md`"
        assert sum(caught.tally({name: entry}, harmless)) >= 5, f"{name}: too few mutants"
    right, wrong = caught.tally(kept.tasks, harmless)
    assert right / (right + wrong) >= 0.98


@pytest.mark.nvcc
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["saxpy", "mse", "transpose"])
def test_broken_kernels_are_caught(name: str, judge: Judge) -> None:
    # A sample of what `regraph eval mutate` does: an easy edge, a reduction and a shared tile.
    (trajectory,) = shipped.read_trajectories(shipped.trajectory_file(name))
    codes = [step.code for step in trajectory.steps]
    found = check(load_task(name), codes, judge, count=3, seed=1, harmless=read_harmless())
    assert found.caught + len(found.survivors) == 3
    assert not found.survivors, [f"{m.task} step {m.step} line {m.line}: {m.operator}" for m in found.survivors]
