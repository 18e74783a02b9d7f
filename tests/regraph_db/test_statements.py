"""Every Cypher statement file parses on the real server, and none reads all nodes where an index should serve."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from neo4j import GraphDatabase, Session

import cypher
from cypher import statement
from regraph_db.neo4j import Neo4jStore
from regraph_db.settings import Settings

pytestmark = pytest.mark.neo4j

FOLDER = Path(cypher.__file__).parent
SERVICE = sorted(
    str(path.relative_to(FOLDER).with_suffix(""))
    for name in ("schema", "ingest", "search")
    for path in (FOLDER / name).glob("*.cypher")
)

#: Statements whose answer is every node of a label, or every relationship of a type; nothing smaller would serve.
WHOLE = {
    "schema/count_nodes": {"NodeCountFromCountStore"},
    "ingest/techniques": {"NodeByLabelScan"},
    "ingest/aliases": {"NodeByLabelScan"},
    "ingest/counts": {
        "NodeByLabelScan",
        "DirectedRelationshipTypeScan",
        "RelationshipCountFromCountStore",
        "NodeCountFromCountStore",
    },
    "ingest/rolled_up": {"NodeByLabelScan"},
    "ingest/shares": {"NodeByLabelScan"},
    "ingest/clear_derived": {"NodeByLabelScan"},
    "ingest/clear_shares": {"NodeByLabelScan"},
    "search/all_transitions": {"NodeByLabelScan", "DirectedRelationshipTypeScan"},
    "search/searches": {"NodeByLabelScan"},
    "search/dead_runners": {"NodeByLabelScan"},
}


@pytest.fixture(scope="module")
def session(neo4j_server: Any) -> Iterator[Session]:
    Neo4jStore.open(neo4j_server.uri, Settings(neo4j_password=neo4j_server.password), create=True).close()
    auth = ("neo4j", neo4j_server.password)
    with GraphDatabase.driver(neo4j_server.uri, auth=auth) as driver, driver.session() as opened:
        yield opened


def operators(plan: dict[str, Any]) -> Iterator[str]:
    yield plan["operatorType"].partition("@")[0]
    for child in plan.get("children", ()):
        yield from operators(child)


def parameters(text: str) -> dict[str, None]:
    """Every parameter that a statement names; a plan does not depend on their values."""
    return dict.fromkeys(re.findall(r"\$(\w+)", text))


@pytest.mark.parametrize("name", SERVICE)
def test_a_statement_is_served_by_an_index(session: Session, name: str) -> None:
    for text in statement(name).split(";\n"):
        if not text.strip():
            continue
        plan = session.run("EXPLAIN " + text, parameters(text)).consume().plan
        found = set(operators(plan)) if plan else set()
        scans = {operator for operator in found if "Scan" in operator and "IndexScan" not in operator}
        assert "AllNodesScan" not in scans
        assert scans <= WHOLE.get(name, set()), f"{name} reads everything: {sorted(found)}"


@pytest.mark.parametrize("name", SERVICE)
def test_a_statement_says_what_it_does_and_takes_parameters_only(name: str) -> None:
    text = statement(name)
    assert text.startswith("// ")
    assert text.splitlines()[0].endswith((".", ":"))


def test_every_statement_file_is_used() -> None:
    package = Path(cypher.__file__).parents[1] / "regraph_db" / "neo4j"
    code = "".join(path.read_text(encoding="utf-8") for path in package.glob("*.py"))
    mentioned = {name for name in SERVICE if f'"{name}"' in code}
    # Two names are put together: search/{example,all_example}_{vectors,ids}, and the migrations by their number.
    composed = {f"search/{which}_{what}" for which in ("example", "all_example") for what in ("vectors", "ids")}
    assert set(SERVICE) - mentioned - composed == {"schema/001_graph"}
