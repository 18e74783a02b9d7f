"""A scripted generator, a fake judge (mocks for cost only) and a real store with a little knowledge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from search_doubles import trajectories

from regraph_db.opening import open_store
from regraph_db.settings import load
from regraph_db.store import GraphStore
from verify import Task, load_task


@pytest.fixture
def task() -> Task:
    return load_task("saxpy")


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/graph.db"


@pytest.fixture
def store(store_url: str) -> Iterator[GraphStore]:
    with open_store(load(), url=store_url, create=True) as opened:
        opened.merge_trajectories(trajectories())
        yield opened


@pytest.fixture(params=[pytest.param("sqlite"), pytest.param("neo4j", marks=pytest.mark.neo4j)])
def any_url(request: pytest.FixtureRequest, store_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of each kind of store in turn; child processes find its password in the environment."""
    if request.param == "sqlite":
        return store_url
    server = request.getfixturevalue("neo4j_server")
    monkeypatch.setenv("REGRAPH_NEO4J_PASSWORD", server.password)
    return str(server.uri)


@pytest.fixture
def any_store(any_url: str) -> Iterator[GraphStore]:
    """Each kind of store in turn. A test deletes none of the other searches that a shared server may hold."""
    with open_store(load(), url=any_url, create=True) as opened:
        opened.merge_trajectories(trajectories())
        yield opened
