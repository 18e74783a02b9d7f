"""Several runners on one search, killed at random moments."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from search_doubles import FakeJudge, Scripted

from regraph_db.records import Level, Search
from regraph_db.store import GraphStore
from search.outcome import conclude, outcome_of
from search.run import open_search, work
from search.settings import SearchSettings
from verify import Task

BUDGET = 80


def opened(store: GraphStore, task: Task) -> Search:
    settings = SearchSettings(budget=BUDGET, lease=1.0)
    return open_search(store, task, strategy="mcgs", model="scripted", level=Level.GPU, settings=settings, seed=4)


def worker(url: str, search: str, stream: str) -> subprocess.Popen[bytes]:
    here = Path(__file__).parent
    argv = [sys.executable, str(here / "search_worker.py"), url, search, stream]
    return subprocess.Popen(argv, cwd=here)


@pytest.mark.slow
def test_killed_runners_cost_their_unfinished_rollouts_and_nothing_else(
    store: GraphStore, store_url: str, task: Task
) -> None:
    record = opened(store, task)
    rng = Random(7)
    stream, best = 0, 0.0
    crew = []
    for _ in range(200):
        crew = [process for process in crew if process.poll() is None]
        while len(crew) < 2 and store.search(record.id).calls < BUDGET * 0.6:
            crew.append(worker(store_url, record.id, str(stream)))
            stream += 1
        if store.search(record.id).calls >= BUDGET * 0.6:
            break
        time.sleep(rng.uniform(0.5, 2.5))
        if crew:
            victim = crew[rng.randrange(len(crew))]
            victim.kill()
            victim.wait()
        seen = max((a.speedup or 0.0 for a in store.attempts(record.id)), default=0.0)
        assert seen >= best, "the best kernel was lost"
        best = seen
    for process in crew:
        process.kill()
        process.wait()
    work(store, store.search(record.id), task, Scripted(), FakeJudge(), stream="last")
    after = store.search(record.id)
    assert (after.calls, after.reserved) == (BUDGET, 0)
    snapshot = store.snapshot(record.id)
    assert all(edge.in_flight == 0 for edge in snapshot.edges)
    attempts = list(store.attempts(record.id))
    assert len({attempt.id for attempt in attempts}) == len(attempts) == BUDGET
    assert max(a.speedup or 0.0 for a in attempts) >= best > 0
    assert store.check() == []
    outcome = conclude(store, record.id, task, FakeJudge(), SearchSettings(), seconds=dict)
    assert outcome.best is not None
    assert outcome.best.speedup == max(a.speedup or 0.0 for a in attempts)


@pytest.mark.slow
def test_runners_share_one_budget(store: GraphStore, store_url: str, task: Task) -> None:
    record = opened(store, task)
    crew = [worker(store_url, record.id, str(stream)) for stream in range(3)]
    assert [process.wait(timeout=120) for process in crew] == [0, 0, 0]
    outcome = outcome_of(store, record.id)
    assert outcome.calls == len(outcome.attempts) == BUDGET
    assert len(store.runners(record.id)) == 3
    assert store.check() == []
