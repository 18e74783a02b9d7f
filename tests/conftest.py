"""One real Neo4j for the whole test session, and what every test may not depend on: settings of the person who runs
it."""

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

SCRIPT = Path(__file__).parents[1] / "docker" / "neo4j-server"


class Server(NamedTuple):
    """A Neo4j server that tests may fill and clear."""

    uri: str
    password: str
    environment: dict[str, str] | None  #: of ``docker/neo4j-server``; ``None`` for a server that is not ours to stop


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of REGRAPH_TEST_NEO4J_URI (and REGRAPH_TEST_NEO4J_PASSWORD), else one started from its own jars."""
    uri = os.environ.get("REGRAPH_TEST_NEO4J_URI")
    if uri:
        yield Server(uri, os.environ.get("REGRAPH_TEST_NEO4J_PASSWORD", ""), None)
        return
    if shutil.which("java") is None:
        pytest.skip("no Java 17 to start Neo4j with; set REGRAPH_TEST_NEO4J_URI to use a running server")
    port = _free_port()
    password = secrets.token_hex(8)
    environment = os.environ | {
        "NEO4J_SERVER_HOME": str(tmp_path_factory.mktemp("neo4j")),
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


@pytest.fixture(scope="session")
def neo4j_url(neo4j_server: Server) -> str:
    """The bolt URL of a real server; settings for it: ``Settings(neo4j_password=neo4j_server.password)``."""
    return neo4j_server.uri


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
