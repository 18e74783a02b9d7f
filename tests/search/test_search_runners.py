"""Several runners on one search, killed at random moments, in both stores."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from search_doubles import FakeJudge, Scripted

from regraph_db.records import Level, Search
from regraph_db.store import GraphStore
from search.outcome import conclude, outcome_of
from search.run import open_search, work
from search.settings import SearchSettings
from verify import Task

HERE = Path(__file__).parent
BUDGET = 60


def opened(store: GraphStore, task: Task) -> Search:
    settings = SearchSettings(budget=BUDGET, lease=1.0, step_cap=4)
    return open_search(store, task, strategy="mcgs", model="scripted", level=Level.GPU, settings=settings, seed=4)


def worker(*words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, str(HERE / "search_worker.py"), *words]
    return subprocess.Popen(argv, cwd=HERE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("seed", [7, pytest.param(8, marks=pytest.mark.slow), pytest.param(9, marks=pytest.mark.slow)])
def test_killed_runners_cost_their_unfinished_rollouts_and_nothing_else(
    any_store: GraphStore, any_url: str, task: Task, seed: int
) -> None:
    store = any_store
    record = opened(store, task)
    crash = worker("crash", any_url, record.id, str(seed))
    told = json.loads(crash.communicate(timeout=500)[0])
    assert crash.returncode == 0
    assert told["kills"] >= 6
    assert told["best"] > 0
    work(store, store.search(record.id), task, Scripted(), FakeJudge(), stream="last")
    after = store.search(record.id)
    assert (after.calls, after.reserved) == (BUDGET, 0)
    snapshot = store.snapshot(record.id)
    assert all(edge.in_flight == 0 for edge in snapshot.edges)
    attempts = list(store.attempts(record.id))
    assert len({attempt.id for attempt in attempts}) == len(attempts) == BUDGET
    assert sum(edge.visits for edge in snapshot.edges) >= sum(a.reward is not None for a in attempts)
    best = max(a.speedup or 0.0 for a in attempts)
    assert best >= told["best"]
    assert store.check() == []
    outcome = conclude(store, record.id, task, FakeJudge(), SearchSettings(), seconds=dict)
    assert outcome.best is not None
    assert outcome.best.speedup == best


@pytest.mark.slow
def test_runners_share_one_budget(any_store: GraphStore, any_url: str, task: Task) -> None:
    record = opened(any_store, task)
    crew = [worker("work", any_url, record.id, str(stream)) for stream in range(3)]
    assert [process.wait(timeout=120) for process in crew] == [0, 0, 0]
    outcome = outcome_of(any_store, record.id)
    assert outcome.calls == len(outcome.attempts) == BUDGET
    assert len(any_store.runners(record.id)) == 3
    assert any_store.check() == []
