"""A real Neo4j server for the tests: one that is already there, else a container, else one from its own jars."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from neo4j import GraphDatabase

SCRIPT = Path(__file__).parents[1] / "docker" / "neo4j-server"

#: The image that docker/compose.yaml names.
IMAGE = os.environ.get("NEO4J_IMAGE", "neo4j:5.26-community")


class Server(NamedTuple):
    """A Neo4j server that tests may fill and clear."""

    uri: str
    password: str
    environment: dict[str, str] | None  #: of ``docker/neo4j-server``; ``None`` for a server that is not ours to stop

    def clear(self) -> None:
        """Remove every node, the graph's marks included: what an earlier test left is not the next one's."""
        with GraphDatabase.driver(self.uri, auth=("neo4j", self.password)) as driver, driver.session() as session:
            session.run("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS").consume()


def started(home: Path) -> Iterator[Server]:
    """The server of REGRAPH_TEST_NEO4J_URI (and REGRAPH_TEST_NEO4J_PASSWORD); else a container, where a Docker engine
    answers that has the image; else one started from its own jars in ``home``, and stopped when the caller is done."""
    uri = os.environ.get("REGRAPH_TEST_NEO4J_URI")
    if uri:
        yield Server(uri, os.environ.get("REGRAPH_TEST_NEO4J_PASSWORD", ""), None)
    elif _engine_has(IMAGE):
        yield from _container()
    else:
        yield from from_jars(home)


def _engine_has(image: str) -> bool:
    """Whether a Docker engine answers and would start ``image`` without fetching it: a test downloads nothing."""
    try:
        return subprocess.run(["docker", "image", "inspect", image], capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _container() -> Iterator[Server]:
    from testcontainers.community.neo4j import Neo4jContainer
    from testcontainers.core.config import testcontainers_config

    # Its watchdog is an image of its own; the fixture removes the container itself.
    testcontainers_config.ryuk_disabled = True
    with Neo4jContainer(IMAGE, password=secrets.token_hex(8)) as container:
        yield Server(container.get_connection_url(), container.password, None)


def from_jars(home: Path) -> Iterator[Server]:
    """A server started from its own jars in ``home``, and stopped when the caller is done."""
    if shutil.which("java") is None:
        pytest.skip(f"no Java 17 to start Neo4j with; set REGRAPH_TEST_NEO4J_URI, or `docker pull {IMAGE}`")
    port = _free_port()
    password = secrets.token_hex(8)
    environment = os.environ | {
        "NEO4J_SERVER_HOME": str(home),
        "NEO4J_SERVER_BOLT_PORT": str(port),
        "NEO4J_SERVER_HTTP_PORT": str(_free_port()),
        "NEO4J_SERVER_HEAP": os.environ.get("NEO4J_SERVER_HEAP", "512m"),
        "REGRAPH_NEO4J_PASSWORD": password,
    }
    subprocess.run([SCRIPT, "start"], env=environment, check=True, timeout=280)
    try:
        yield Server(f"bolt://127.0.0.1:{port}", password, environment)
    finally:
        subprocess.run([SCRIPT, "stop"], env=environment, check=False, timeout=60)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
