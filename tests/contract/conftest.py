"""Both stores, empty, behind one fixture: a test that takes ``store`` runs once on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from regraph_db.neo4j import Neo4jStore
from regraph_db.opening import open_store
from regraph_db.settings import Settings
from regraph_db.store import GraphStore

KINDS = [pytest.param("sqlite"), pytest.param("neo4j", marks=pytest.mark.neo4j)]


def clear(store: Neo4jStore) -> None:
    """Remove everything but the schema."""
    with store._open_driver().session() as session:
        session.run(
            "MATCH (n) WHERE NOT n:Regraph AND NOT n:Migration AND NOT (n:Technique AND n.name = 'init') "
            "CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 1000 ROWS"
        ).consume()
        session.run("MATCH (n:Technique)-[t:TRANSITION]->() DELETE t").consume()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """``sqlite`` or ``neo4j``."""
    name: str = request.param
    return name


@pytest.fixture
def environment(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """TEST_STORE and TEST_PASSWORD of an empty store, for child processes."""
    if kind == "sqlite":
        return {"TEST_STORE": f"sqlite:///{tmp_path}/graph.db", "TEST_PASSWORD": "unused"}
    server = request.getfixturevalue("neo4j_server")
    return {"TEST_STORE": server.uri, "TEST_PASSWORD": server.password}


@pytest.fixture
def reopen(environment: dict[str, str]) -> Iterator[Callable[[], GraphStore]]:
    """Open the test's store once more; all are closed at the end."""
    opened: list[GraphStore] = []

    def again() -> GraphStore:
        settings = Settings(neo4j_password=environment["TEST_PASSWORD"], store_timeout=60)
        opened.append(open_store(settings, url=environment["TEST_STORE"], create=True))
        return opened[-1]

    yield again
    for store in opened:
        store.close()


@pytest.fixture
def empty(kind: str, reopen: Callable[[], GraphStore], tmp_path: Path) -> Callable[[], GraphStore]:
    """Give an empty store each time it is called: a new SQLite file, or the server with everything removed."""
    numbers = count()

    def another() -> GraphStore:
        if kind == "sqlite" and (number := next(numbers)):
            return open_store(Settings(), url=f"sqlite:///{tmp_path}/{number}.db", create=True)
        fresh = reopen()
        if isinstance(fresh, Neo4jStore):
            clear(fresh)
        return fresh

    return another


@pytest.fixture
def store(empty: Callable[[], GraphStore]) -> GraphStore:
    """An empty store."""
    return empty()
