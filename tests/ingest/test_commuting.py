"""The graph is the same in whatever order, batches and hands trajectories come in, and aliases come and go without
loss."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from ingest_samples import knowledge

from ingest.merging import Run
from ingest.relabel import Relabeller
from ingest.settings import IngestSettings
from regraph_db.records import Alias, Step, Trajectory
from regraph_db.settings import load
from regraph_db.sqlite import SqliteStore
from regraph_db.store import GraphStore

METHODS = st.sampled_from(
    [
        "tiling",
        "Shared-memory tiling",
        "unroll by 4",
        "loop unrolling",
        "double buffering",
        "software pipelining",
        "odd one",
        "odd ones",
        "Strassen",
    ]
)


@st.composite
def trajectories(draw: st.DrawFn) -> list[Trajectory]:
    """A few trajectories over few names, some of them twice."""
    made = []
    for number in range(draw(st.integers(1, 6))):
        methods = draw(st.lists(METHODS, min_size=1, max_size=4))
        steps = tuple(Step(method=method, code=f"code {number} {i}") for i, method in enumerate(methods))
        made.append(Trajectory(task=draw(st.sampled_from(["", "a", "b"])), steps=steps))
    return made + draw(st.lists(st.sampled_from(made), max_size=2))


@contextmanager
def fresh() -> Iterator[GraphStore]:
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteStore.open(f"sqlite:///{folder}/g.db", load(), create=True) as store,
    ):
        yield store


def ingest(store: GraphStore, made: list[Trajectory], batch: int) -> None:
    settings = IngestSettings(batch=batch)
    relabeller = Relabeller(settings, decided=[alias.alias for alias in store.aliases()])
    Run(store, settings, relabeller, cache=Path(tempfile.gettempdir())).trajectories(made, "a test")


def graph_of(made: list[Trajectory], batch: int) -> dict[str, Any]:
    with fresh() as store:
        ingest(store, made, batch)
        assert store.check() == []
        return knowledge(store)


@hypothesis_settings(max_examples=15, deadline=None)
@given(made=trajectories(), batch=st.integers(1, 5), data=st.data())
def test_order_and_batches_change_nothing(made: list[Trajectory], batch: int, data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(made))
    assert graph_of(made, 100) == graph_of(shuffled, batch)


@hypothesis_settings(max_examples=5, deadline=None)
@given(made=trajectories(), writers=st.integers(2, 3))
def test_any_number_of_writers_make_the_same_graph(made: list[Trajectory], writers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/g.db"
        SqliteStore.open(url, load(), create=True).close()

        def write(part: int) -> None:
            with SqliteStore.open(url, load()) as store:
                ingest(store, made[part:] + made[:part], 2)

        with ThreadPoolExecutor(writers) as pool:
            list(pool.map(write, range(writers)))
        with SqliteStore.open(url, load()) as store:
            together = knowledge(store)
    assert together == graph_of(made, 100)


@hypothesis_settings(max_examples=15, deadline=None)
@given(made=trajectories(), alias=st.sampled_from(["odd one", "strassen", "loop unrolling"]))
def test_an_alias_changes_the_graph_as_if_it_had_always_stood_and_can_be_taken_back(
    made: list[Trajectory], alias: str
) -> None:
    decision = Alias(alias=alias, technique="shared memory tiling", author="person:test")
    with fresh() as before, fresh() as after:
        before.put_aliases([decision])
        ingest(before, made, 3)
        ingest(after, made, 3)
        plain = knowledge(after)
        old = next((each for each in after.aliases() if each.alias == alias), None)
        after.put_aliases([decision], replace=True)
        for part in ("transitions", "trajectories"):
            assert knowledge(before)[part] == knowledge(after)[part]
        assert {t["name"] for t, count, _ in knowledge(before)["techniques"] if count} == {
            t["name"] for t, count, _ in knowledge(after)["techniques"] if count
        }
        after.revoke_alias(alias)
        if old is not None:
            after.put_aliases([old])
        back = knowledge(after)
        assert back["transitions"] == plain["transitions"] and back["aliases"] == plain["aliases"]
