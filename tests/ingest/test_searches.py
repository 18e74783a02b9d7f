"""What a search found goes into the graph as a trajectory of the model that wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from ingest.searches import found_trajectory
from regraph_db.cli import regraph
from regraph_db.errors import InputError, NotFound
from regraph_db.records import (
    Attempt,
    Interval,
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
from regraph_db.store import GraphStore


def attempt(
    name: str,
    parent: str | None,
    speedup: float,
    kind: VerdictKind = VerdictKind.PASSED,
    technique: str = "loop unrolling",
) -> Attempt:
    verdict = Verdict(verdict=kind, level=Level.GPU, speedup=Interval(median=speedup, low=speedup, high=speedup))
    code = f'extern "C" void saxpy(float a, const float* x, float* y, int n) {{ /* {name} */ }}'
    return Attempt(
        id=name,
        search="s1",
        rollout="r1",
        technique=technique,
        parent=parent,
        code=code,
        verdict=verdict,
        speedup=speedup,
    )


def search_with(store: GraphStore, *attempts: Attempt, best: str | None = None) -> None:
    record = Search(
        id="s1",
        task=TaskReference(name="saxpy", hash="h"),
        level=Level.GPU,
        model="small.gguf",
        budget=10,
        start_code="start",
    )
    store.open_search(record, State(id="root", technique="init"))
    store.join(Runner(id="runner", search="s1"))
    store.begin_rollout(Rollout(id="r1", search="s1", runner="runner", path=(), calls=5))
    store.finish_rollout(RolloutResult(rollout="r1", search="s1", attempts=attempts, calls=len(attempts)))
    store.finish_search("s1", best_attempt=best, summary={})


def test_the_path_to_the_answer_becomes_a_trajectory(store: GraphStore) -> None:
    chain = (
        attempt("a", None, 2.0, technique="shared memory tiling"),
        attempt("b", "a", 1.5),
        attempt("c", "a", 9.0, VerdictKind.WRONG_RESULT),
    )
    search_with(store, *chain, attempt("d", "b", 4.0), best="d")
    found = found_trajectory(store, "s1")
    assert found is not None
    assert [step.method for step in found.steps] == ["shared memory tiling", "loop unrolling", "loop unrolling"]
    assert (found.task, found.author, found.source, found.search) == ("saxpy", "small.gguf", "start", "s1")
    assert all(step.verdict is not None and step.verdict.passed for step in found.steps)


@pytest.mark.parametrize(
    "attempts", [(), (attempt("a", None, 0.8),), (attempt("a", None, 5.0, VerdictKind.WRONG_RESULT),)]
)
def test_a_search_that_found_nothing_faster_teaches_nothing(store: GraphStore, attempts: tuple[Attempt, ...]) -> None:
    search_with(store, *attempts)
    assert found_trajectory(store, "s1") is None


def test_a_search_without_techniques_is_refused(store: GraphStore) -> None:
    search_with(store, attempt("a", None, 3.0, technique=""))
    with pytest.raises(InputError, match="name no techniques"):
        found_trajectory(store, "s1")


def test_an_unknown_search(store: GraphStore) -> None:
    with pytest.raises(NotFound):
        found_trajectory(store, "nothing")


def test_through_the_command_line_once(store: GraphStore) -> None:
    search_with(store, attempt("a", None, 3.0), best="a")

    def add() -> dict[str, Any]:
        result = CliRunner().invoke(
            regraph, ["ingest", "add", "--search", "s1", "--verify", "none", "--store", store.url, "--json"]
        )
        assert result.exit_code == 0, (result.output, result.exception)
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    assert add()["merged"] == 1 and add()["duplicates"] == 1
    (kept,) = store.trajectories()
    assert (kept.function, kept.search) == ("saxpy", "s1")
