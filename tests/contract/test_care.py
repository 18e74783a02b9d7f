"""Check, repair, dump and load: the same on both stores, and between them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from graph_samples import attempt, passed, started, trajectory

from regraph_db.errors import InputError
from regraph_db.neo4j import Neo4jStore
from regraph_db.opening import open_store
from regraph_db.records import Alias, EdgeReturn, Rollout, RolloutResult, Technique
from regraph_db.settings import Settings
from regraph_db.sqlite import SqliteStore
from regraph_db.store import GraphStore


def fill(store: GraphStore) -> None:
    store.put_techniques([Technique(name="tensor cores", description="mma", shipped=True)])
    store.merge_trajectories(
        [trajectory("tile it", "unrolling", verdicts=[passed(4.0), passed(1.0)]), trajectory("tiling", task="dot")],
        [Alias(alias="tile it", technique="tiling", author="table")],
    )
    started(store)
    for name in ("done", "begun"):
        store.begin_rollout(Rollout(id=name, search="s", runner="runner of s", path=(("root", "a"),), calls=4))
    returns = (EdgeReturn(source="root", target="a", value=2.5),)
    store.finish_rollout(
        RolloutResult(rollout="done", search="s", returns=returns, attempts=(attempt("t", "done"),), calls=2)
    )
    store.roll_up("s")


def everything(store: GraphStore) -> list[dict[str, Any]]:
    return list(store.dump())


def test_a_dump_loads_into_either_store_and_again_without_change(store: GraphStore, tmp_path: Path) -> None:
    fill(store)
    objects = everything(store)
    with open_store(Settings(), url=f"sqlite:///{tmp_path}/copy.db", create=True) as other:
        for _ in range(2):
            assert other.load(iter(objects)) == len(objects)
            assert everything(other) == objects
        assert other.counts() == store.counts()
        assert other.transitions(without_task="dot") == store.transitions(without_task="dot")
        assert other.check() == []
        assert other.finish_rollout(RolloutResult(rollout="done", search="s")) is False


def test_a_store_takes_a_dump_of_the_other_kind(store: GraphStore, tmp_path: Path) -> None:
    with open_store(Settings(), url=f"sqlite:///{tmp_path}/source.db", create=True) as source:
        fill(source)
        objects = everything(source)
        store.load(objects[: len(objects) // 2])
        store.load(objects)
        assert everything(store) == objects
        assert store.techniques() == source.techniques()
        assert store.check() == []


def test_a_load_takes_a_search_that_went_further_and_keeps_one_that_did(store: GraphStore) -> None:
    fill(store)
    early = everything(store)
    returns = (EdgeReturn(source="root", target="a", value=1.0),)
    store.finish_rollout(RolloutResult(rollout="begun", search="s", returns=returns, calls=4))
    late = everything(store)
    store.load(early)
    assert everything(store) == late
    store.delete_search("s")
    store.load(early)
    store.load(late)
    assert everything(store) == late


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([{"kind": "spaceship"}], "unknown kind"),
        ([{"format": 1}], "no object with a `kind`"),
        ([{"kind": "regraph", "format": 99}], "format 99"),
        ([{"kind": "regraph", "format": 1}, {"kind": "technique", "name": ""}], r"object 2 \(technique\), name"),
    ],
)
def test_a_wrong_object_is_named(store: GraphStore, objects: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        store.load(objects)


#: (invariant, SQL that breaks it, Cypher that breaks it)
BREAKS = [
    (
        "transition_counts",
        "UPDATE transitions SET examples = 9 WHERE before = 'init'",
        "MATCH ()-[t:TRANSITION]->() SET t.examples = 9",
    ),
    ("transition_counts", "DELETE FROM transitions", "MATCH ()-[t:TRANSITION]->() DELETE t"),
    ("share_counts", "UPDATE shares SET gain_micros = 1", "MATCH (c:Share) SET c.gain_micros = 1"),
    ("negative_count", "UPDATE transitions SET examples = -1", "MATCH ()-[t:TRANSITION]->() SET t.examples = -1"),
    ("technique_counts", "UPDATE techniques SET trajectories = 7", "MATCH (t:Technique) SET t.trajectories = 7"),
    ("step_place", "UPDATE steps SET technique = 'lost'", "MATCH (s:Step) SET s.technique = 'lost'"),
    (
        "step_place",
        "UPDATE steps SET before = 'lost' WHERE position = 1",
        "MATCH (s:Step {position: 1}) SET s.before = 'lost'",
    ),
    ("alias_resolution", "UPDATE aliases SET resolved = 'unrolling'", "MATCH (:Alias)-[n:NAMES]->() DELETE n"),
    ("in_flight", "UPDATE edges SET in_flight = 3", "MATCH ()-[e:EXPLORED]->() SET e.in_flight = 3"),
    ("reserved_calls", "UPDATE searches SET reserved = 1", "MATCH (s:Search) SET s.reserved = 1"),
    ("dead_lease", "UPDATE runners SET heartbeat_at = 0", "MATCH (r:Runner) SET r.heartbeat_at = 0"),
    (
        "best_attempt",
        "UPDATE states SET best_attempt = 'gone' WHERE id = 'a'",
        "MATCH (n:State {id: 'a'}) SET n.best_attempt = 'gone'",
    ),
]


def damage(store: GraphStore, sql: str, cypher: str) -> None:
    if isinstance(store, SqliteStore):
        with store._writing() as connection:
            connection.execute(sql)
    elif isinstance(store, Neo4jStore):
        with store._open_driver().session() as session:
            session.run(cypher).consume()


@pytest.mark.parametrize(("invariant", "sql", "cypher"), BREAKS, ids=[f"{i}-{b[0]}" for i, b in enumerate(BREAKS)])
def test_a_broken_invariant_is_named_and_mended(store: GraphStore, invariant: str, sql: str, cypher: str) -> None:
    fill(store)
    expected = (store.techniques(), store.transitions(), store.examples("tiling", "unrolling"))
    assert store.check() == []
    damage(store, sql, cypher)
    assert invariant in {problem.invariant for problem in store.check()}
    assert invariant in {problem.invariant for problem in store.repair()}
    assert store.check() == []
    assert (store.techniques(), store.transitions(), store.examples("tiling", "unrolling")) == expected


@pytest.mark.parametrize("kind", [pytest.param("neo4j", marks=pytest.mark.neo4j)], indirect=True)
@pytest.mark.parametrize(
    "cypher",
    [
        "MATCH ()-[e:EXPLORED]->() WHERE e.visits > 0 SET e.q = 99",
        "MATCH ()-[e:EXPLORED]->() REMOVE e.q",
        "MATCH ()-[e:EXPLORED]->() WHERE e.visits = 0 SET e.q = 1",
        "MATCH (n:State {id: 'a'}) SET n.name = 'tiling ×99'",
        "MATCH (n:State {id: 'a'}) REMOVE n.name",
    ],
)
def test_a_wrong_caption_is_named_and_mended(store: GraphStore, cypher: str) -> None:
    fill(store)
    kept = everything(store)
    assert store.check() == []
    store.delete_search("s")
    store.load(kept)
    assert store.check() == []
    damage(store, "", cypher)
    assert {problem.invariant for problem in store.repair()} == {"caption"}
    assert store.check() == []


@pytest.mark.parametrize(
    ("invariant", "sql", "cypher"),
    [
        (
            "alias_loop",
            "UPDATE aliases SET technique = 'x' WHERE alias = 'tile it'",
            "MATCH (a:Alias {name: 'tile it'}) SET a.technique = 'x'",
        ),
        (
            "trajectory_steps",
            "DELETE FROM texts WHERE step IN (SELECT number FROM steps WHERE position = 1)",
            "MATCH (s:Step {position: 1}) DETACH DELETE s",
        ),
        (
            "trajectory_id",
            "UPDATE trajectories SET author = 'someone else'",
            "MATCH (t:Trajectory) SET t.author = 'someone else'",
        ),
    ],
)
def test_what_cannot_be_derived_is_named_and_left(store: GraphStore, invariant: str, sql: str, cypher: str) -> None:
    fill(store)
    store.put_aliases([Alias(alias="x", technique="tile it", author="table")])
    damage(store, sql, cypher)
    found = {problem.invariant: problem.repairable for problem in store.check()}
    assert found[invariant] is False
    assert invariant not in {problem.invariant for problem in store.repair()}


def test_a_trajectory_that_lost_its_steps_is_whole_when_it_comes_again(store: GraphStore) -> None:
    one = trajectory("tiling", "unrolling")
    store.merge_trajectories([one])
    damage(store, "DELETE FROM texts", "MATCH (s:Step) DETACH DELETE s")
    assert store.check() != []
    store.merge_trajectories([one])
    store.repair()
    assert store.check() == [] and list(store.trajectories()) == [one]


def test_two_stores_open_at_once_see_each_others_writes(store: GraphStore, reopen: Callable[[], GraphStore]) -> None:
    other = reopen()
    store.merge_trajectories([trajectory("tiling")])
    assert other.transitions() == store.transitions()
    other.put_aliases([Alias(alias="tiling", technique="blocking", author="table")])
    assert [t.after for t in store.transitions()] == ["blocking"]
