"""What a search waits for: select's snapshot and finishing a rollout, as the knowledge grows.

    python benchmarks/store_search.py --store sqlite:////tmp/bench.db --examples 100 10000 100000
    python benchmarks/store_search.py --store bolt://localhost:7687      (REGRAPH_NEO4J_PASSWORD in the environment)

The store grows to each number of examples in turn, so use one that holds nothing of worth; it prints one line a size,
and a last one with the ratios between the largest and the smallest. ``begin`` and ``finish`` are the two transactions
of a rollout of three edges and three attempts; ``example`` chooses among the examples of one transition, whose number
is printed too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import uuid
from collections.abc import Callable
from typing import Any

from store_merge import STEPS, trajectory

from regraph_db.opening import open_store
from regraph_db.records import (
    Attempt,
    EdgeReturn,
    ExploredEdge,
    Level,
    Rollout,
    RolloutResult,
    Runner,
    Search,
    State,
    TaskReference,
    Verdict,
    VerdictKind,
)
from regraph_db.settings import load
from regraph_db.store import GraphStore

#: Techniques of the benchmark's search: a root and this many others, each reached from two.
STATES = 40


def milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def summary(name: str, values: list[float]) -> dict[str, float]:
    """The median and the 95th percentile of milliseconds."""
    return {f"{name}_p50_ms": statistics.median(values), f"{name}_p95_ms": statistics.quantiles(values, n=20)[-1]}


def opened(store: GraphStore) -> str:
    identity = uuid.uuid4().hex
    task = TaskReference(name="saxpy", hash="0")
    store.open_search(Search(id=identity, task=task, level=Level.GPU, budget=10**9), State(id="0", technique="init"))
    states = [State(id=str(n), technique=f"technique {n}") for n in range(1, STATES + 1)]
    edges = [ExploredEdge(source=str(n // 2), target=str(n)) for n in range(1, STATES + 1)]
    edges += [ExploredEdge(source=str(n), target=str(n % STATES + 1)) for n in range(1, STATES + 1)]
    store.expand(identity, "0", states, edges)
    store.join(Runner(id=f"runner {identity}", search=identity))
    return identity


def rollout(store: GraphStore, search: str) -> tuple[float, float]:
    """Milliseconds of beginning and of finishing one rollout of three edges and three attempts."""
    identity = uuid.uuid4().hex
    path = (("0", "1"), ("1", "2"), ("2", "4"))
    begun = milliseconds(
        lambda: store.begin_rollout(Rollout(id=identity, search=search, runner=f"runner {search}", path=path, calls=3))
    )
    attempts = tuple(
        Attempt(
            id=f"{identity} {index}",
            search=search,
            rollout=identity,
            target=target,
            code="out[i] = a * x[i] + y[i];\n" * 40,
            verdict=Verdict(verdict=VerdictKind.PASSED),
            speedup=1.5,
        )
        for index, (_, target) in enumerate(path)
    )
    returns = tuple(EdgeReturn(source=source, target=target, value=1.5) for source, target in path)
    result = RolloutResult(rollout=identity, search=search, returns=returns, attempts=attempts, calls=3)
    return begun, milliseconds(lambda: store.finish_rollout(result))


def measure(store: GraphStore, repeat: int, unmeasured: int) -> dict[str, Any]:
    search = opened(store)
    for _ in range(unmeasured):
        rollout(store, search)
        store.snapshot(search)
        store.examples("init", "technique 1", like="x")
    pairs = [rollout(store, search) for _ in range(repeat)]
    first = next(t for t in store.transitions("init", without_task="task 1"))
    figures: dict[str, Any] = {
        **summary("snapshot", [milliseconds(lambda: store.snapshot(search)) for _ in range(repeat)]),
        **summary("begin", [begun for begun, _ in pairs]),
        **summary("finish", [finished for _, finished in pairs]),
        **summary(
            "transitions",
            [milliseconds(lambda: store.transitions("init", without_task="task 1")) for _ in range(repeat)],
        ),
        **summary(
            "example",
            [milliseconds(lambda: store.examples("init", first.after, like="out[i] = x[i];")) for _ in range(repeat)],
        ),
        "examples_of_the_transition": first.statistics.examples,
    }
    store.delete_search(search)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="The store's part of a search, as the knowledge grows.")
    parser.add_argument("--store", required=True)
    parser.add_argument("--examples", type=int, nargs="+", default=[100, 10_000, 100_000])
    parser.add_argument("--repeat", type=int, default=200)
    given = parser.parse_args()
    kind = given.store.partition(":")[0]
    measured = []
    with open_store(load(), url=given.store, create=True) as store:
        for wanted in sorted(given.examples):
            while (missing := wanted - store.counts().examples) > 0:
                count = min(200, (missing + STEPS - 1) // STEPS)
                store.merge_trajectories([trajectory(number) for number in range(count)])
            # The first calls pay for opening connections, for the server's plans and for its compiler, which goes on
            # for a thousand rollouts of a fresh server.
            unmeasured = given.repeat if measured else max(given.repeat, 1000)
            figures = {"store": kind, "examples": wanted, **measure(store, given.repeat, unmeasured)}
            measured.append(figures)
            print(json.dumps({"benchmark": "store_search", "figures": figures, "ratios": {}}), flush=True)
    first, last = measured[0], measured[-1]
    names = [name for name in first if name.endswith(("_p50_ms", "_p95_ms"))]
    ratios = {name: last[name] / first[name] for name in names}
    figures = {"store": kind, "smallest": first["examples"], "largest": last["examples"]}
    print(json.dumps({"benchmark": "store_search_growth", "figures": figures, "ratios": ratios}))


if __name__ == "__main__":
    main()
