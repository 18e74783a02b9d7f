"""The search half of the contract: budgets, rollouts exactly once, leases, roll-up."""

from __future__ import annotations

import time

import pytest
from graph_samples import attempt, search, started

from regraph_db.errors import InputError, NotFound
from regraph_db.records import (
    EdgeReturn,
    ExploredEdge,
    Level,
    Rollout,
    RolloutResult,
    Runner,
    SearchStatus,
    State,
)
from regraph_db.store import GraphStore

PATH = (("root", "a"), ("a", "b"))


def rollout(
    identity: str = "o", *, calls: int = 5, path: tuple[tuple[str, str], ...] = PATH, search: str = "s"
) -> Rollout:
    return Rollout(id=identity, search=search, runner=f"runner of {search}", path=path, calls=calls)


def result(
    identity: str = "o", *, values: tuple[float, ...] = (2.5, 1.5), calls: int = 3, attempts: int = 1
) -> RolloutResult:
    return RolloutResult(
        rollout=identity,
        search="s",
        returns=tuple(EdgeReturn(source=u, target=v, value=x) for (u, v), x in zip(PATH, values, strict=False)),
        attempts=tuple(attempt(f"{identity} {i}", identity) for i in range(attempts)),
        calls=calls,
    )


def flying(store: GraphStore) -> dict[tuple[str, str], int]:
    return {(e.source, e.target): e.in_flight for e in store.snapshot("s").edges if e.in_flight}


def test_opening_a_search_again_returns_the_stored_one(store: GraphStore) -> None:
    opened = started(store)
    again = store.open_search(search(budget=7), State(id="other", technique="init"))
    assert again == opened == store.search("s")
    assert store.snapshot("s").root == "root"


def test_a_snapshot_holds_states_and_edges_with_their_priors(store: GraphStore) -> None:
    started(store)
    snapshot = store.snapshot("s")
    assert {(s.id, s.technique, s.expanded) for s in snapshot.states} == {
        ("root", "init", True),
        ("a", "tiling", False),
        ("b", "unrolling", False),
    }
    assert {(e.source, e.target, e.prior) for e in snapshot.edges} == {
        ("root", "a", 2.0),
        ("root", "b", 1.0),
        ("a", "b", 0.5),
    }


def test_expanding_again_changes_no_sum(store: GraphStore) -> None:
    started(store)
    store.begin_rollout(rollout())
    store.finish_rollout(result())
    before = store.snapshot("s")
    store.expand(
        "s", "root", [State(id="a", technique="tiling", visits=9)], [ExploredEdge(source="root", target="a", visits=9)]
    )
    assert store.snapshot("s") == before


def test_a_rollout_is_in_flight_until_it_finishes_and_counts_once(store: GraphStore) -> None:
    started(store)
    assert store.begin_rollout(rollout()) == 5
    assert store.begin_rollout(rollout()) == 5
    assert flying(store) == {("root", "a"): 1, ("a", "b"): 1}
    assert store.search("s").reserved == 5
    assert store.finish_rollout(result()) is True
    assert store.finish_rollout(result(values=(100.0, 100.0))) is False
    assert flying(store) == {}
    edges = {(e.source, e.target): e for e in store.snapshot("s").edges}
    first = edges["root", "a"]
    assert (first.visits, first.value_sum, first.value_sq_sum, first.best, first.q) == (1, 2.5, 6.25, 2.5, 2.5)
    assert edges["root", "b"].visits == 0
    assert (store.search("s").calls, store.search("s").reserved) == (3, 0)


def test_the_budget_is_granted_once(store: GraphStore) -> None:
    started(store, budget=8)
    assert store.begin_rollout(rollout("o1")) == 5
    assert store.begin_rollout(rollout("o2")) == 3
    assert store.begin_rollout(rollout("o3")) == 0
    store.finish_rollout(result("o1", calls=2))
    assert store.begin_rollout(rollout("o4")) == 3
    with pytest.raises(NotFound):
        store.finish_rollout(result("o3"))


def test_a_failing_edge_takes_nothing_of_a_rollout(store: GraphStore) -> None:
    started(store)
    with pytest.raises(NotFound):
        store.begin_rollout(rollout(path=(("root", "a"), ("b", "root"))))
    assert flying(store) == {}
    store.begin_rollout(rollout())
    before = store.snapshot("s")
    bad = result().model_copy(
        update={
            "returns": (EdgeReturn(source="root", target="a", value=1.0), EdgeReturn(source="b", target="b", value=1.0))
        }
    )
    with pytest.raises(NotFound):
        store.finish_rollout(bad)
    assert store.snapshot("s") == before
    assert list(store.attempts("s")) == []


def test_refusals_and_node_counters_are_counted_apart_from_visits(store: GraphStore) -> None:
    started(store)
    store.begin_rollout(rollout())
    store.finish_rollout(
        RolloutResult(
            rollout="o",
            search="s",
            returns=(EdgeReturn(source="root", target="a", refusals=1),),
            returned_at_nodes=(("root", 1.0), ("a", 1.0), ("a", 0.5)),
        )
    )
    edges = {(e.source, e.target): e for e in store.snapshot("s").edges}
    assert (edges["root", "a"].visits, edges["root", "a"].refusals, edges["root", "a"].best) == (0, 1, None)
    assert {s.id: (s.visits, s.value_sum) for s in store.snapshot("s").states} == {
        "root": (1, 1.0),
        "a": (2, 1.5),
        "b": (0, 0.0),
    }


def test_states_and_edges_first_reached_by_a_rollout_come_with_it(store: GraphStore) -> None:
    started(store)
    store.begin_rollout(rollout(path=()))
    store.finish_rollout(
        RolloutResult(
            rollout="o",
            search="s",
            states=(State(id="c", technique="tensor cores", visits=5),),
            edges=(ExploredEdge(source="b", target="c", prior=0.25, visits=5),),
            returns=(EdgeReturn(source="b", target="c", value=-1.0),),
        )
    )
    edge = next(e for e in store.snapshot("s").edges if e.target == "c")
    assert (edge.prior, edge.visits, edge.value_sum, edge.best) == (0.25, 1, -1.0, -1.0)


def test_a_state_keeps_its_fastest_verified_code(store: GraphStore) -> None:
    started(store)
    for number, speedup in enumerate([2.0, 3.0, 3.0, 1.0]):
        store.begin_rollout(rollout(f"o{number}"))
        one = attempt(f"t{number}", f"o{number}", speedup=speedup)
        store.finish_rollout(RolloutResult(rollout=f"o{number}", search="s", attempts=(one,)))
    state = next(s for s in store.snapshot("s").states if s.id == "a")
    assert (state.best_attempt, state.best_speedup) == ("t1", 3.0)


def test_where_no_speed_is_measured_the_first_verified_code_is_kept(store: GraphStore) -> None:
    started(store, level=Level.FUNCTIONAL)
    store.begin_rollout(rollout())
    attempts = tuple(attempt(f"t{i}", "o", speedup=None) for i in range(2))
    store.finish_rollout(RolloutResult(rollout="o", search="s", attempts=attempts))
    state = next(s for s in store.snapshot("s").states if s.id == "a")
    assert (state.best_attempt, state.best_speedup) == ("t0", None)


def test_attempts_come_back_in_order_and_whole(store: GraphStore) -> None:
    started(store)
    written = []
    for number in range(3):
        store.begin_rollout(rollout(f"o{number}"))
        one = result(f"o{number}", attempts=3)
        store.finish_rollout(one)
        written += one.attempts
    assert list(store.attempts("s")) == written
    assert store.attempt(written[4].id) == written[4]
    with pytest.raises(NotFound):
        store.attempt("nobody")


def test_an_attempt_of_another_search_is_refused(store: GraphStore) -> None:
    started(store)
    store.begin_rollout(rollout())
    with pytest.raises(InputError):
        store.finish_rollout(RolloutResult(rollout="o", search="s", attempts=(attempt("t", "o", search="other"),)))


def test_a_dead_runners_rollouts_are_taken_back_and_late_work_is_kept(store: GraphStore) -> None:
    started(store)
    store.join(Runner(id="runner of s", search="s", lease=0.05))
    store.begin_rollout(rollout())
    assert {p.invariant for p in store.check()} <= {"dead_lease"}
    time.sleep(0.3)
    assert [p.invariant for p in store.check()] == ["dead_lease"]
    assert store.reclaim() == 1
    assert store.reclaim() == 0
    assert flying(store) == {}
    assert (store.search("s").calls, store.search("s").reserved) == (0, 0)
    assert store.begin_rollout(rollout()) == 0
    assert store.finish_rollout(result()) is False
    assert [a.id for a in store.attempts("s")] == ["o 0"]
    assert all(e.visits == 0 for e in store.snapshot("s").edges)


def test_a_heartbeat_keeps_a_lease(store: GraphStore) -> None:
    started(store)
    (before,) = store.runners("s")
    store.begin_rollout(rollout())
    store.heartbeat("runner of s")
    assert store.reclaim() == 0
    (after,) = store.runners("s")
    assert after.heartbeat_at >= before.heartbeat_at
    assert (after.host, after.pid, after.lease) == ("here", 1, 60.0)
    with pytest.raises(NotFound):
        store.heartbeat("nobody")


def test_a_finished_search_grants_nothing_until_it_is_extended(store: GraphStore) -> None:
    started(store, budget=5)
    store.begin_rollout(rollout())
    store.finish_rollout(result(calls=5))
    store.finish_search("s", best_attempt="o 0", summary={"seconds": {"verify": 1.5}})
    stored = store.search("s")
    assert (stored.status, stored.best_attempt, stored.summary) == (
        SearchStatus.FINISHED,
        "o 0",
        {"seconds": {"verify": 1.5}},
    )
    with pytest.raises(InputError):
        store.extend_search("s", 4)
    store.extend_search("s", 9)
    assert store.search("s").status is SearchStatus.OPEN
    assert store.begin_rollout(rollout("o2")) == 4


def test_searches_are_found_by_prefix_newest_first(store: GraphStore) -> None:
    started(store, "ab1")
    started(store, "ab2")
    assert [s.id for s in store.searches()] == ["ab2", "ab1"]
    assert store.search("ab2").id == "ab2"
    with pytest.raises(NotFound, match="2 searches"):
        store.search("ab")
    for missing in ("abx", ""):
        with pytest.raises(NotFound):
            store.search(missing)
    with pytest.raises(NotFound):
        store.snapshot("ab")


def test_rolling_up_adds_returns_once_and_leaves_them_when_the_search_goes(store: GraphStore) -> None:
    started(store)
    for number in range(2):
        store.begin_rollout(rollout(f"o{number}"))
        store.finish_rollout(result(f"o{number}"))
    assert store.roll_up("s") == 2
    assert store.roll_up("s") == 0
    first, second = (t.statistics for t in store.transitions())
    assert (first.return_count, first.return_sum, first.examples) == (2, 5.0, 0)
    assert (second.return_count, second.return_sum) == (2, 3.0)
    assert store.transitions(without_task="saxpy") == []
    store.begin_rollout(rollout("o3"))
    store.finish_rollout(result("o3"))
    assert store.roll_up("s") == 2
    assert store.transitions("init")[0].statistics.return_sum == 7.5
    store.delete_search("s")
    store.delete_search("s")
    assert store.transitions("init")[0].statistics.return_sum == 7.5
    assert (store.counts().searches, store.counts().attempts) == (0, 0)
    assert store.check() == []


@pytest.mark.parametrize("level", [Level.MODELLED, Level.FUNCTIONAL])
def test_modelled_returns_stand_apart_and_functional_ones_are_none(store: GraphStore, level: Level) -> None:
    started(store, level=level)
    store.begin_rollout(rollout())
    store.finish_rollout(result())
    touched = store.roll_up("s")
    sums = [
        (t.statistics.return_count, t.statistics.modelled_count, t.statistics.modelled_sum) for t in store.transitions()
    ]
    if level is Level.MODELLED:
        assert (touched, sums) == (2, [(0, 1, 2.5), (0, 1, 1.5)])
    else:
        assert (touched, sums) == (0, [])


def test_what_is_not_there_is_named(store: GraphStore) -> None:
    started(store)
    for ask in (
        lambda: store.expand("s", "nowhere", [], []),
        lambda: store.expand("none", "root", [], []),
        lambda: store.expand("s", "root", [], [ExploredEdge(source="root", target="nowhere")]),
        lambda: store.join(Runner(id="r", search="none")),
        lambda: store.begin_rollout(rollout(search="none")),
        lambda: store.begin_rollout(rollout().model_copy(update={"runner": "nobody"})),
        lambda: store.roll_up("none"),
        lambda: store.finish_search("none", best_attempt=None, summary={}),
        lambda: store.extend_search("none", 5),
    ):
        with pytest.raises(NotFound):
            ask()
