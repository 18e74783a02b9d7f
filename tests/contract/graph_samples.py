"""Small records for the store's tests, and how a store is opened in a child process."""

from __future__ import annotations

import os
from collections.abc import Sequence

from regraph_db.opening import open_store
from regraph_db.records import (
    Attempt,
    Evidence,
    ExploredEdge,
    Level,
    Runner,
    Search,
    State,
    Step,
    TaskReference,
    Trajectory,
    Verdict,
    VerdictKind,
)
from regraph_db.settings import Settings
from regraph_db.store import GraphStore


def passed(seconds: float, *, baseline: float = 8.0, gpu: str = "H200") -> Verdict:
    """A verdict measured on a GPU."""
    return Verdict(
        verdict=VerdictKind.PASSED,
        level=Level.GPU,
        candidate_seconds=seconds,
        baseline_seconds=baseline,
        baseline="reference",
        evidence=Evidence(gpu=gpu, nvcc="13.0.88", flags=("-O3",), sizes=({"n": 1024},)),
    )


FAILED = Verdict(verdict=VerdictKind.WRONG_RESULT, level=Level.FUNCTIONAL, reason="y[3] is 2.0, should be 4.0")


def trajectory(
    *methods: str, task: str = "saxpy", author: str = "a person", verdicts: Sequence[Verdict | None] = ()
) -> Trajectory:
    """One step a method, each with a code of its own."""
    judged = [*verdicts, *[None] * (len(methods) - len(verdicts))]
    steps = tuple(
        Step(think=f"why {m}", method=m, detail=f"how {m}", code=f"void {task}() {{ /* {i} {m} */ }}", verdict=v)
        for i, (m, v) in enumerate(zip(methods, judged, strict=True))
    )
    return Trajectory(task=task, author=author, function=task, source=f"void {task}() {{ for }}", steps=steps)


def search(identity: str = "s", *, budget: int = 100, level: Level = Level.GPU, task: str = "saxpy") -> Search:
    return Search(
        id=identity,
        task=TaskReference(name=task, hash="0" * 32),
        level=level,
        budget=budget,
        start_code="void saxpy() { for }",
        settings={"epsilon": 0.1, "names": ["é", "x"]},
    )


def started(store: GraphStore, identity: str = "s", *, budget: int = 100, level: Level = Level.GPU) -> Search:
    """A search of three states, root → a → b and root → b, with one runner."""
    opened = store.open_search(search(identity, budget=budget, level=level), State(id="root", technique="init"))
    states = [State(id="a", technique="tiling"), State(id="b", technique="unrolling")]
    edges = [
        ExploredEdge(source="root", target="a", prior=2.0),
        ExploredEdge(source="root", target="b", prior=1.0),
        ExploredEdge(source="a", target="b", prior=0.5),
    ]
    store.expand(identity, "root", states, edges)
    store.join(Runner(id=f"runner of {identity}", search=identity, host="here", pid=1))
    return opened


def attempt(
    identity: str, rollout: str, *, search: str = "s", target: str = "a", speedup: float | None = 2.0
) -> Attempt:
    """A passed attempt; with no speedup it is one of a level that measures none."""
    return Attempt(
        id=identity,
        search=search,
        rollout=rollout,
        source="root",
        target=target,
        technique="tiling",
        code=f"void saxpy() {{ /* {identity} */ }}",
        verdict=Verdict(verdict=VerdictKind.PASSED, level=Level.FUNCTIONAL),
        reward=speedup,
        speedup=speedup,
    )


def open_from_environment() -> GraphStore:
    """The store that a test hands to its child processes in TEST_STORE and TEST_PASSWORD."""
    settings = Settings(neo4j_password=os.environ["TEST_PASSWORD"], store_timeout=120)
    return open_store(settings, url=os.environ["TEST_STORE"])
