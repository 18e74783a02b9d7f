"""A scripted generator, a fake judge (mocks for cost only) and a real store with a little knowledge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from search_doubles import trajectories

from regraph_db.settings import load
from regraph_db.store import GraphStore, open_store
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
