"""SQLite and a real Neo4j hold the same graph after the same ingestion, and one that goes away loses no whole batch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import servers
from click.testing import CliRunner
from ingest_samples import knowledge, line, step

from cudaeval import TRAJECTORIES
from regraph_db.cli import regraph
from regraph_db.opening import open_store
from regraph_db.settings import Settings, load
from regraph_db.store import GraphStore

pytestmark = [pytest.mark.neo4j, pytest.mark.timeout(900)]


def add(*words: str, store: str) -> dict[str, Any]:
    result = CliRunner().invoke(regraph, ["ingest", "add", *words, "--verify", "none", "--store", store, "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def graph(store: GraphStore) -> dict[str, Any]:
    assert store.check() == []
    return knowledge(store)


def test_every_shipped_trajectory_makes_the_same_graph_in_both(
    neo4j_server: servers.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(map(str, TRAJECTORIES.glob("*.jsonl")))
    neo4j_server.clear()
    monkeypatch.setenv("REGRAPH_NEO4J_PASSWORD", neo4j_server.password)
    first = add(*files, store="sqlite:///g.db")
    second = add(*reversed(files), store=neo4j_server.uri)
    assert first["merged"] == first["read"] == len(files) >= 60 and first["steps"] >= 250
    assert {**first, "review": set(first["review"])} == {**second, "review": set(second["review"])}
    with (
        open_store(load(), url="sqlite:///g.db") as one,
        open_store(load(), url=neo4j_server.uri) as other,
    ):
        assert graph(one) == graph(other)
        assert one.counts() == other.counts()


def test_levels_that_come_in_one_after_the_other_make_the_same_graph_in_both(
    neo4j_server: servers.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(TRAJECTORIES / "saxpy.jsonl")
    neo4j_server.clear()
    monkeypatch.setenv("REGRAPH_NEO4J_PASSWORD", neo4j_server.password)
    for store in ("sqlite:///g.db", neo4j_server.uri):
        assert add(file, "--no-measured", store=store)["merged"] == 1
        assert add(file, store=store)["verified"] == 1
        assert add(file, "--no-measured", store=store)["duplicates"] == 1
    with (
        open_store(load(), url="sqlite:///g.db") as one,
        open_store(load(), url=neo4j_server.uri) as other,
    ):
        assert graph(one) == graph(other)
        assert all(edge.statistics.gain_count for edge in one.transitions())


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[servers.Server]:
    """A server of this test alone, which it may kill."""
    if os.environ.get("REGRAPH_TEST_NEO4J_URI"):
        pytest.skip("the server named by REGRAPH_TEST_NEO4J_URI is not ours to kill")
    yield from servers.from_jars(tmp_path / "server")


@pytest.mark.slow
def test_a_server_killed_half_way_is_said_and_the_run_resumed_is_as_one_run(
    own_server: servers.Server, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_server.environment is not None
    path = str(write(*(line(step("tiling", f"x[0] = {i};"), step("padding", f"x[1] = {i};")) for i in range(2000))))
    add(path, store="sqlite:///whole.db")
    environment = own_server.environment | {"REGRAPH_STORE_TIMEOUT": "2", "REGRAPH_INGEST__BATCH": "5"}
    command = [str(Path(sys.executable).with_name("regraph")), "ingest", "add", path, "--verify", "none"]
    command += ["--store", own_server.uri]
    running = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    settings = Settings(store=own_server.uri, neo4j_password=own_server.password)
    deadline = time.monotonic() + 120
    with open_store(settings, create=True) as store:
        while store.counts().trajectories < 50 and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
    assert running.poll() is None, running.communicate()
    process = Path(own_server.environment["NEO4J_SERVER_HOME"], "server.pid")
    os.kill(int(process.read_text()), signal.SIGKILL)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 3 and own_server.uri in said, said
    subprocess.run([servers.SCRIPT, "start"], env=environment, check=True, timeout=280)
    with open_store(settings) as store:
        there = store.counts().trajectories
        assert 50 <= there < 2000 and there % 5 == 0 and store.check() == []
    resumed = subprocess.run([*command, "--resume", "--json"], env=environment, capture_output=True, check=True)
    assert json.loads(resumed.stdout)["duplicates"] == there
    with open_store(settings) as store, open_store(load(), url="sqlite:///whole.db") as whole:
        assert graph(store) == graph(whole)
