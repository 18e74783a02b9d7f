"""Faults of a Neo4j store: each a clear error with its exit code, nothing damaged; a restart is waited out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from neo4j import GraphDatabase, Session

from regraph_db.errors import InputError, RegraphError, SchemaMismatch, StoreUnreachable, StoreUnusable
from regraph_db.neo4j import Neo4jStore
from regraph_db.opening import open_store
from regraph_db.settings import Settings

CONTRACT = Path(__file__).parents[1] / "contract"


def test_a_server_that_is_away_is_named_after_the_timeout() -> None:
    with pytest.raises(StoreUnreachable, match="does not answer") as caught:
        open_store(Settings(neo4j_password="anything", store_timeout=0.2), url="bolt://127.0.0.1:1")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("neo4j://user:secret@host", "no credentials"),
        ("bolt://", "no host"),
        ("bolt+what://host", "scheme|URI"),
        ("http://host", "unknown store scheme"),
        ("regraph.db", "unknown store scheme"),
    ],
)
def test_a_wrong_url_is_refused(url: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        open_store(Settings(), url=url)
    assert "secret" not in str(caught.value)


@pytest.mark.neo4j
@pytest.mark.parametrize("settings", [Settings(neo4j_password="wrong-password"), Settings()], ids=["wrong", "none"])
def test_refused_credentials_are_named(neo4j_url: str, settings: Settings) -> None:
    with pytest.raises(StoreUnreachable, match="refuses the credentials") as caught:
        open_store(settings, url=neo4j_url)
    assert "wrong-password" not in str(caught.value)


@pytest.mark.neo4j
def test_a_missing_database_is_named(neo4j_server: Any) -> None:
    settings = Settings(neo4j_password=neo4j_server.password, neo4j_database="nowhere")
    with pytest.raises(StoreUnusable, match="nowhere"):
        open_store(settings, url=neo4j_server.uri)


@pytest.fixture
def bare(neo4j_server: Any) -> Iterator[Session]:
    """The server with nothing in it; a graph stands in it again afterwards."""
    auth = ("neo4j", neo4j_server.password)
    with GraphDatabase.driver(neo4j_server.uri, auth=auth) as driver, driver.session() as session:
        neo4j_server.clear()
        yield session
        neo4j_server.clear()
    opened(neo4j_server, create=True).close()


def opened(server: Any, *, create: bool) -> Neo4jStore:
    return Neo4jStore.open(server.uri, Settings(neo4j_password=server.password), create=create)


@pytest.mark.neo4j
def test_migrations_are_recorded_and_run_once(bare: Session, neo4j_server: Any) -> None:
    with pytest.raises(SchemaMismatch, match="db init"):
        opened(neo4j_server, create=False)
    with opened(neo4j_server, create=True) as store:
        assert store.schema_version() == 1
        assert store.migrate() == []
    (row,) = bare.run("MATCH (:Regraph)-[:MIGRATED_BY]->(m) RETURN m.number AS number, m.name AS name").data()
    assert row == {"number": 1, "name": "001_graph"}


@pytest.mark.neo4j
def test_a_database_of_something_else_is_left_alone(bare: Session, neo4j_server: Any) -> None:
    bare.run("CREATE (:Customer {name: 'Ann'})").consume()
    for create in (False, True):
        with pytest.raises(StoreUnusable, match="something else"):
            opened(neo4j_server, create=create)
    assert bare.run("MATCH (n) RETURN labels(n) AS labels").data() == [{"labels": ["Customer"]}]


@pytest.mark.neo4j
def test_a_newer_graph_is_refused(bare: Session, neo4j_server: Any) -> None:
    bare.run("CREATE (:Regraph {id: 'regraph', schema: 99})").consume()
    for create in (False, True):
        with pytest.raises(SchemaMismatch, match=r"newer regraph.*99"):
            opened(neo4j_server, create=create)


@pytest.mark.neo4j
def test_a_closed_store_says_so(neo4j_server: Any) -> None:
    store = opened(neo4j_server, create=True)
    store.close()
    store.close()
    with pytest.raises(RegraphError, match="closed"):
        store.counts()


@pytest.mark.neo4j
def test_a_rehearsal_goes_to_its_end_and_leaves_nothing(
    bare: Session, neo4j_server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "regraph_db.neo4j")
    with opened(neo4j_server, create=True) as store:
        before = bare.run("MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties").data()
        store._ask()
        store._play()
        assert bare.run("MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties").data() == before
        assert "rehearsal" not in caplog.text
    store._play()
    assert "the rehearsal of a search ended" in caplog.text  # and nothing was raised


@pytest.mark.neo4j
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_restart_in_the_middle_is_waited_out_and_nothing_counts_twice(neo4j_server: Any) -> None:
    if neo4j_server.environment is None:
        pytest.skip("the server is not this session's to stop")
    sys.path.insert(0, str(CONTRACT))
    from graph_samples import started

    script = str(Path(__file__).parents[2] / "docker" / "neo4j-server")
    environment = {"TEST_STORE": neo4j_server.uri, "TEST_PASSWORD": neo4j_server.password}
    neo4j_server.clear()
    with opened(neo4j_server, create=True) as store:
        started(store, budget=10**6)
        command = [sys.executable, str(CONTRACT / "graph_worker.py"), "increment", "150"]
        workers = [subprocess.Popen(command, env=os.environ | environment) for _ in range(2)]
        while store.search("s").calls < 20:
            time.sleep(0.1)
        for word in ("stop", "start"):
            subprocess.run([script, word], env=neo4j_server.environment, check=True, timeout=200)
        assert [worker.wait() for worker in workers] == [0, 0]
        edges = {(e.source, e.target): e for e in store.snapshot("s").edges}
        assert edges["root", "a"].visits == store.search("s").calls == len(list(store.attempts("s"))) == 300
        assert store.check() == []
        store.delete_search("s")
