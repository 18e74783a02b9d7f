"""A scripted generator, a fake judge (mocks for cost only) and a real store with a little knowledge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regraph_db.records import Step, Trajectory
from regraph_db.settings import load
from regraph_db.store import GraphStore, open_store
from verify import Task, load_task


@pytest.fixture
def task() -> Task:
    return load_task("saxpy")


def trajectories() -> list[Trajectory]:
    """Six kernels of other tasks; the techniques form a small cyclic graph."""
    chains = [
        ("one thread per element", "vectorized load", "loop unrolling"),
        ("one thread per element", "shared memory tiling", "vectorized load"),
        ("one thread per element", "loop unrolling", "vectorized load", "loop unrolling"),
        ("grid stride loop", "vectorized load", "shared memory tiling"),
        ("grid stride loop", "shared memory tiling", "grid stride loop"),
        ("one thread per element", "grid stride loop"),
    ]
    return [
        Trajectory(
            task=f"other {number}",
            author="test",
            function=f"kernel_{number}",
            source=f"void kernel_{number}() {{ loop(); }}",
            steps=tuple(
                Step(method=name, detail=f"apply {name}", code=f"void kernel_{number}() {{ step_{k}(); }}")
                for k, name in enumerate(chain)
            ),
        )
        for number, chain in enumerate(chains)
    ]


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/graph.db"


@pytest.fixture
def store(store_url: str) -> Iterator[GraphStore]:
    with open_store(load(), url=store_url, create=True) as opened:
        opened.merge_trajectories(trajectories())
        yield opened
