"""Merging trajectories: in batches through the store, by one MERGE a row, by LangChain's Neo4jGraph.

    python benchmarks/store_merge.py --store bolt://localhost:7687      (REGRAPH_NEO4J_PASSWORD in the environment)
    python benchmarks/store_merge.py --store sqlite:////tmp/bench.db

Use a store that holds nothing of worth: the plain rows are written beside the graph under labels of their own and
removed. A row is one step with its place in the graph.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from regraph_db.records import Step, Trajectory
from regraph_db.settings import Settings, load
from regraph_db.store import open_store

METHODS = [f"technique {number}" for number in range(40)]
STEPS = 5

#: What the comparison writes for one step: the step, its technique and the edge between techniques.
ONE_ROW = """
MERGE (b:BenchTechnique {name: $before})
MERGE (a:BenchTechnique {name: $after})
MERGE (b)-[t:BENCH_TRANSITION]->(a) SET t.examples = coalesce(t.examples, 0) + 1
MERGE (s:BenchStep {id: $id}) SET s.code = $code, s.think = $think, s.detail = $detail
MERGE (s)-[:BENCH_APPLIES]->(a)
"""


def trajectory(number: int) -> Trajectory:
    """Five steps of about 1 kB of code each."""
    steps = tuple(
        Step(
            think="the loads are not coalesced",
            method=METHODS[(number * 7 + index * 3) % len(METHODS)],
            detail="neighbouring threads read neighbouring words",
            code=f"// {number}.{index}\n" + "out[i] = a * x[i] + y[i];\n" * 40,
        )
        for index in range(STEPS)
    )
    return Trajectory(
        task=f"task {number % 50}", author=f"{time.time_ns()}", function="f", source="for (...)", steps=steps
    )


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def plain_rows(settings: Settings, url: str, trajectories: list[Trajectory]) -> float:
    """Rows a second of one MERGE statement a row, each its own transaction."""
    from neo4j import GraphDatabase

    assert settings.neo4j_password is not None
    auth = (settings.neo4j_user, settings.neo4j_password.get_secret_value())
    with GraphDatabase.driver(url, auth=auth) as driver, driver.session() as session:
        for label, key in (("BenchTechnique", "name"), ("BenchStep", "id")):
            session.run(f"CREATE CONSTRAINT IF NOT EXISTS FOR (n:{label}) REQUIRE n.{key} IS UNIQUE").consume()

        def work() -> None:
            for one in trajectories:
                before = "init"
                for index, step in enumerate(one.steps):
                    session.run(
                        ONE_ROW,
                        before=before,
                        after=step.method,
                        id=one.step_id(index),
                        code=step.code,
                        think=step.think,
                        detail=step.detail,
                    ).consume()
                    before = step.method

        taken = seconds(work)
        for label in ("BenchStep", "BenchTechnique"):
            session.run(f"MATCH (n:{label}) CALL (n) {{ DETACH DELETE n }} IN TRANSACTIONS").consume()
    return len(trajectories) * STEPS / taken


def langchain_rows(settings: Settings, url: str, trajectories: list[Trajectory]) -> float | None:
    """Rows a second of LangChain's add_graph_documents; ``None`` where the server lacks APOC, which it needs."""
    from langchain_core.documents import Document
    from langchain_neo4j import Neo4jGraph
    from langchain_neo4j.graphs.graph_document import GraphDocument, Node, Relationship

    assert settings.neo4j_password is not None
    graph = Neo4jGraph(url, settings.neo4j_user, settings.neo4j_password.get_secret_value(), refresh_schema=False)
    documents = []
    for one in trajectories:
        nodes, edges = [], []
        before = Node(id="init", type="BenchTechnique")
        for index, step in enumerate(one.steps):
            after = Node(id=step.method, type="BenchTechnique")
            place = Node(
                id=one.step_id(index),
                type="BenchStep",
                properties={"code": step.code, "think": step.think, "detail": step.detail},
            )
            nodes += [after, place]
            edges += [
                Relationship(source=before, target=after, type="BENCH_TRANSITION"),
                Relationship(source=place, target=after, type="BENCH_APPLIES"),
            ]
            before = after
        documents.append(GraphDocument(nodes=nodes, relationships=edges, source=Document(page_content="")))
    try:
        taken = seconds(lambda: graph.add_graph_documents(documents))
    except Exception as error:
        if "apoc" not in str(error).lower():
            raise
        sys.stderr.write("The server has no APOC procedures, which LangChain's add_graph_documents needs.\n")
        return None
    for label in ("BenchStep", "BenchTechnique"):
        graph.query(f"MATCH (n:{label}) CALL (n) {{ DETACH DELETE n }} IN TRANSACTIONS")
    return len(trajectories) * STEPS / taken


def main() -> None:
    parser = argparse.ArgumentParser(description="Merging trajectories, against plainer ways to write them.")
    parser.add_argument("--store", required=True)
    parser.add_argument("--trajectories", type=int, default=1000)
    parser.add_argument("--plain", type=int, default=100, help="trajectories that the plainer ways write")
    parser.add_argument("--batch", type=int, default=100, help="trajectories in one merge")
    given = parser.parse_args()
    settings = load()
    batch = [trajectory(number) for number in range(given.trajectories)]
    figures: dict[str, Any] = {
        "store": given.store.partition(":")[0],
        "trajectories": given.trajectories,
        "steps_each": STEPS,
    }
    with open_store(settings, url=given.store, create=True) as store:
        store.merge_trajectories([trajectory(-1)])

        def work() -> None:
            for start in range(0, len(batch), given.batch):
                store.merge_trajectories(batch[start : start + given.batch])

        figures["rows_per_second"] = len(batch) * STEPS / seconds(work)
    ratios: dict[str, float] = {}
    if figures["store"] != "sqlite":
        plain = [trajectory(number) for number in range(given.plain)]
        figures["plain_rows_per_second"] = plain_rows(settings, given.store, plain)
        ratios["over_plain"] = figures["rows_per_second"] / figures["plain_rows_per_second"]
        langchain = langchain_rows(settings, given.store, plain)
        figures["langchain_rows_per_second"] = langchain
        if langchain:
            ratios["over_langchain"] = figures["rows_per_second"] / langchain
    print(json.dumps({"benchmark": "store_merge", "figures": figures, "ratios": ratios}))


if __name__ == "__main__":
    main()
