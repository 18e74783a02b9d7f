"""What the judge says of every step of every trajectory: compiled by nvcc, run and checked at the functional level
against the reference, which is compiled and run for it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from cudaeval import TASKS, TRAJECTORIES, shipped
from regraph_db.cli import regraph
from regraph_db.records import Level, VerdictKind
from verify import Judge

NAMES = shipped.names()
#: Steps that the CPU level cannot run, by task and step number, with the reason.
UNSUPPORTED = tomllib.loads((TRAJECTORIES / "unsupported.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge() as one:
        yield one


def test_few_steps_are_beyond_the_cpu_level() -> None:
    listed = [(name, int(step)) for name, steps in UNSUPPORTED.items() for step in steps]
    total = sum(len(shipped.read_trajectories(shipped.trajectory_file(name))[0].steps) for name in NAMES)
    assert len(listed) < 0.15 * total
    assert all(reason for steps in UNSUPPORTED.values() for reason in steps.values())


@pytest.mark.nvcc
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_every_step_passes(name: str, judge: Judge) -> None:
    task, trajectory = shipped.load_one(name)
    verdicts = [judge.submit(task, step.code, Level.FUNCTIONAL) for step in trajectory.steps]
    for number, future in enumerate(verdicts, 1):
        verdict = future.result()
        unsupported = str(number) in UNSUPPORTED.get(name, {})
        wanted = VerdictKind.UNSUPPORTED if unsupported else VerdictKind.PASSED
        assert verdict.verdict is wanted, f"step {number}: {verdict.verdict}: {verdict.reason}"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_every_task_is_sound(name: str) -> None:
    done = CliRunner().invoke(regraph, ["task", "check", str(TASKS / name), "--json"])
    assert done.exit_code == 0, done.output
