"""How a search scales with its runners, when writing takes a fixed time: 1, 2, 4 and 8 processes on one store.

``python benchmarks/search_runners.py [--store URL] [--latency 0.5] [--calls 16]``. One JSON line. Each runner gets
``calls`` calls of the budget; the generator sleeps instead of writing and the judge answers at once, so that what is
lost is lost in the store and the core. Without ``--store`` it is a temporary SQLite file; the searches are deleted at
the end. Every run checks that no call, visit or attempt was lost.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import multiprocessing.synchronize
import sys
import tempfile
import time
import uuid
from concurrent.futures import Future
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from regraph_db.opening import open_store
from regraph_db.records import Interval, Level, Step, Trajectory, Verdict, VerdictKind
from regraph_db.settings import load
from regraph_db.store import GraphStore
from search.generators import Answer, Generator, Prompt, Sampling
from search.run import open_search, work
from search.settings import SearchSettings
from verify import Task, load_task

TASK = "saxpy"
TECHNIQUES = 12


class Sleeping(Generator):
    """Writes after a fixed time."""

    def __init__(self, seconds: float) -> None:
        self.name = "sleeping"
        self._seconds = seconds

    def generate(self, prompt: Prompt, sampling: Sampling) -> Answer:
        time.sleep(self._seconds)
        return Answer(f"suitable: yes\n```cuda\n__global__ void f{sampling.seed}() {{}}\n```\n")


class Instant:
    """Passes everything at once."""

    def submit(
        self,
        task: Task | None,
        source: str,
        level: Level | None = None,
        *,
        baseline: str | None = None,
        fresh: bool = False,
    ) -> Future[Verdict]:
        done: Future[Verdict] = Future()
        speedup = 1.0 + len(source) % 7
        done.set_result(
            Verdict(
                verdict=VerdictKind.PASSED,
                level=Level.GPU,
                speedup=Interval(median=speedup, low=speedup, high=speedup),
            )
        )
        return done


def labour(url: str, search: str, stream: str, latency: float, gate: multiprocessing.synchronize.Barrier) -> None:
    with open_store(load(), url=url) as store:
        gate.wait()
        work(store, store.search(search), load_task(TASK), Sleeping(latency), Instant(), stream=stream)
        gate.wait()


def seconds_of(store: GraphStore, url: str, runners: int, calls: int, latency: float) -> float:
    """Wall-clock seconds of one search by ``runners`` processes. Raises ``AssertionError`` when something was lost."""
    settings = SearchSettings(budget=calls * runners, overlap=1, step_cap=4)
    record = open_search(
        store, load_task(TASK), strategy="mcgs", model="sleeping", level=Level.GPU, settings=settings, seed=runners
    )
    context = multiprocessing.get_context("spawn")
    gate = context.Barrier(runners + 1)
    crew = [
        context.Process(target=labour, args=(url, record.id, str(number), latency, gate)) for number in range(runners)
    ]
    for process in crew:
        process.start()
    gate.wait()
    began = time.monotonic()
    gate.wait()
    seconds = time.monotonic() - began
    for process in crew:
        process.join()
    after = store.search(record.id)
    lost = (after.calls, after.reserved, len(list(store.attempts(record.id)))) != (after.budget, 0, after.budget)
    flying = any(edge.in_flight for edge in store.snapshot(record.id).edges)
    store.delete_search(record.id)
    if lost or flying:
        raise SystemExit(f"{runners} runners lost an update: {after}")
    return seconds


def prepared(store: GraphStore) -> None:
    """A ring of techniques with chords, from tasks of its own."""
    names = [f"benchmark technique {k}" for k in range(TECHNIQUES)]
    store.merge_trajectories(
        [
            Trajectory(
                task=f"benchmark {start} {stride}",
                author="benchmark",
                steps=tuple(
                    Step(method=names[(start + k * stride) % TECHNIQUES], code=f"int step_{k};") for k in range(4)
                ),
            )
            for start in range(TECHNIQUES)
            for stride in (1, 2, 5)
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="URL of a store; its knowledge gains 36 trajectories of the benchmark")
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--calls", type=int, default=16)
    parser.add_argument("--runners", type=int, action="append")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.store or f"sqlite:///{folder}/{uuid.uuid4().hex}.db"
        with open_store(load(), url=url, create=True) as store:
            prepared(store)
            rates = {
                runners: options.calls * runners / seconds_of(store, url, runners, options.calls, options.latency)
                for runners in options.runners or (1, 2, 4, 8)
            }
    first = min(rates)
    print(
        json.dumps(
            {
                "benchmark": "search_runners",
                "figures": {
                    "store": url.partition("://")[0],
                    "latency": options.latency,
                    **{f"calls a second, {runners} runners": round(rate, 3) for runners, rate in rates.items()},
                },
                "ratios": {f"{runners} / {first}": round(rate / rates[first], 3) for runners, rate in rates.items()},
            }
        )
    )


if __name__ == "__main__":
    main()
