"""What the ingest tests share: a store, trajectories made by a generator, and the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.settings import IngestSettings
from regraph_db.settings import load
from regraph_db.sqlite import SqliteStore
from regraph_db.store import GraphStore


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test works in a folder of its own, with its own cache and without settings of the machine."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[GraphStore]:
    with SqliteStore.open(f"sqlite:///{tmp_path}/graph.db", load(), create=True) as opened:
        yield opened


@pytest.fixture
def settings() -> IngestSettings:
    return IngestSettings()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write trajectories as JSON lines and return the file."""

    def writer(*lines: Any, name: str = "t.jsonl") -> Path:
        path = tmp_path / name
        path.write_text(
            "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in lines), encoding="utf-8"
        )
        return path

    return writer
