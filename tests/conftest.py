"""One real Neo4j for the whole test session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import servers


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    yield from servers.started(tmp_path_factory.mktemp("neo4j"))


@pytest.fixture(scope="session")
def neo4j_url(neo4j_server: servers.Server) -> str:
    """The bolt URL of a real server; settings for it: ``Settings(neo4j_password=neo4j_server.password)``."""
    return neo4j_server.uri
