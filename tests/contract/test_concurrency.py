"""Many processes on one graph: no increment lost, one graph, no half-merged trajectory, nothing lost by a kill."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from graph_samples import started
from graph_worker import overlapping

from regraph_db.store import GraphStore

WORKER = Path(__file__).with_name("graph_worker.py")
PROCESSES = 8


@pytest.fixture
def start(environment: dict[str, str]) -> Callable[..., subprocess.Popen[str]]:
    """Start a worker on the test's store."""

    def one(*arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, str(WORKER), *map(str, arguments)]
        return subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)

    return one


Start = Callable[..., "subprocess.Popen[str]"]


def wait(workers: list[subprocess.Popen[str]]) -> None:
    for worker in workers:
        worker.communicate()
    assert [worker.returncode for worker in workers] == [0] * len(workers)


@pytest.mark.parametrize("each", [40, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.timeout(900)
def test_no_increment_of_eight_processes_is_lost(store: GraphStore, start: Start, each: int) -> None:
    started(store, budget=10**6)
    wait([start("increment", each) for _ in range(PROCESSES)])
    total = PROCESSES * each
    edges = {(e.source, e.target): e for e in store.snapshot("s").edges}
    for edge in (edges["root", "a"], edges["a", "b"]):
        assert (edge.visits, edge.value_sum, edge.value_sq_sum, edge.in_flight) == (total, total / 2, total / 4, 0)
    assert (store.search("s").calls, store.search("s").reserved) == (total, 0)
    assert len(list(store.attempts("s"))) == total
    assert store.check() == []


@pytest.mark.timeout(600)
def test_eight_processes_merge_to_the_same_graph_as_one(
    store: GraphStore, start: Start, tmp_path: Path, kind: str
) -> None:
    wait([start("merge", seed) for seed in range(PROCESSES)])
    together = (store.transitions(), store.techniques(), store.transitions(without_task="dot"), store.counts())
    assert {t.id for t in store.trajectories()} == {t.id for t in overlapping(60)}
    assert store.check() == []
    from regraph_db.opening import open_store
    from regraph_db.settings import Settings

    with open_store(Settings(), url=f"sqlite:///{tmp_path}/one.db", create=True) as one:
        one.merge_trajectories(overlapping(60))
        assert (one.transitions(), one.techniques(), one.transitions(without_task="dot"), one.counts()) == together


@pytest.mark.timeout(600)
def test_readers_see_no_half_merged_trajectory(store: GraphStore, start: Start) -> None:
    writers = [start("pairs", 40) for _ in range(3)]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        examples = {(t.before, t.after): t.statistics.examples for t in store.transitions()}
        assert examples.get(("init", "tiling")) == examples.get(("tiling", "unrolling"))
        counts = store.counts()
        assert (counts.steps, counts.examples) == (2 * counts.trajectories, 2 * counts.trajectories)
        assert all(len(t.steps) == 2 for t in store.trajectories())
        reads += 1
    wait(writers)
    assert reads
    assert store.counts().trajectories == 120


@pytest.mark.parametrize("kills", [30, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.timeout(900)
def test_a_kill_loses_nothing_acknowledged_and_leaves_nothing_half_written(
    store: GraphStore, start: Start, kills: int
) -> None:
    started(store, budget=10**6)
    worker = start("crash", kills, kills)
    output, _ = worker.communicate()
    done = json.loads(output)
    assert worker.returncode == 0
    assert done["trajectories"]
    assert store.known_trajectories(done["trajectories"]).keys() == set(done["trajectories"])
    attempts = {a.rollout for a in store.attempts("s")}
    assert set(done["rollouts"]) <= attempts
    # At most the one rollout that each killed process was writing was finished without being acknowledged.
    assert len(attempts) - len(done["rollouts"]) <= kills
    edges = {(e.source, e.target): e for e in store.snapshot("s").edges}
    assert edges["root", "a"].visits == edges["a", "b"].visits == store.search("s").calls == len(attempts)
    assert {problem.invariant for problem in store.check()} <= {"dead_lease"}
    time.sleep(0.6)
    store.reclaim()
    assert [e.in_flight for e in store.snapshot("s").edges] == [0, 0, 0]
    assert store.search("s").reserved == 0
    assert store.check() == []
