"""Merging trajectories of five steps: in batches through the store, and in plainer ways that make the same graph.

    NEO4J_SERVER_APOC=1 docker/neo4j-server start       (LangChain's writer needs APOC)
    python benchmarks/store_merge.py --store bolt://localhost:7687      (REGRAPH_NEO4J_PASSWORD in the environment)
    python benchmarks/store_merge.py --store sqlite:////tmp/bench.db

Use a store that holds nothing of worth. The plainer ways write beside the graph under labels of their own, which are
removed again; their vectors and names are worked out before the clock starts, and they keep fewer indexes than the
store does. Every rate is steps a second of the same trajectories.

* ``store``: :meth:`GraphStore.merge_trajectories`, ``--batch`` trajectories a transaction.
* ``merge_a_row``: the official driver, one MERGE statement a node or relationship (six a step), each its own
  transaction.
* ``statement_a_step``: the same, all the rows of a step in one statement.
* ``langchain``: ``Neo4jGraph.add_graph_documents``, one graph document a trajectory; it keeps no statistics.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from neo4j import GraphDatabase, Session

from regraph_db.opening import open_store
from regraph_db.records import Step, Trajectory
from regraph_db.settings import Settings, load
from regraph_db.vectors import vector

METHODS = [f"technique {number}" for number in range(40)]
STEPS = 5

KEYS = {"BenchTrajectory": "id", "BenchStep": "id", "BenchTechnique": "id", "BenchShare": "key"}

TRAJECTORY = "MERGE (t:BenchTrajectory {id: $id}) SET t += $properties"
STEP = (
    "MERGE (s:BenchStep {id: $id}) SET s += $properties",
    "MATCH (t:BenchTrajectory {id: $trajectory}), (s:BenchStep {id: $id}) "
    "MERGE (t)-[:BENCH_HAS_STEP {index: $index}]->(s)",
    "MERGE (:BenchTechnique {id: $after})",
    "MATCH (s:BenchStep {id: $id}), (a:BenchTechnique {id: $after}) MERGE (s)-[:BENCH_APPLIES]->(a)",
    "MATCH (b:BenchTechnique {id: $before}), (a:BenchTechnique {id: $after}) MERGE (b)-[e:BENCH_TRANSITION]->(a) "
    "SET e.examples = coalesce(e.examples, 0) + 1",
    "MERGE (c:BenchShare {key: $share}) SET c.examples = coalesce(c.examples, 0) + 1",
)
WHOLE_STEP = """
MATCH (t:BenchTrajectory {id: $trajectory})
MERGE (s:BenchStep {id: $id}) SET s += $properties
MERGE (t)-[:BENCH_HAS_STEP {index: $index}]->(s)
MERGE (b:BenchTechnique {id: $before})
MERGE (a:BenchTechnique {id: $after})
MERGE (s)-[:BENCH_APPLIES]->(a)
MERGE (b)-[e:BENCH_TRANSITION]->(a) SET e.examples = coalesce(e.examples, 0) + 1
MERGE (c:BenchShare {key: $share}) SET c.examples = coalesce(c.examples, 0) + 1
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


def trajectory_properties(one: Trajectory) -> dict[str, Any]:
    return one.model_dump(include={"task", "author", "function", "source"}) | {"length": len(one.steps)}


def plain_steps(one: Trajectory) -> Iterator[dict[str, Any]]:
    """The parameters of a plain writer's statements, step by step."""
    before, code_before = "init", one.source
    for index, step in enumerate(one.steps):
        properties = step.model_dump(exclude={"verdict"}) | {
            "position": index,
            "before": before,
            "technique": step.method,
            "example": True,
            "task": one.task,
            "function": one.function,
            "vector": vector(code_before).tobytes(),
        }
        yield {
            "id": one.step_id(index),
            "trajectory": one.id,
            "index": index,
            "before": before,
            "after": step.method,
            "share": f"{before}|{step.method}|{one.task}",
            "properties": properties,
        }
        before, code_before = step.method, step.code


@contextmanager
def bench_session(settings: Settings, url: str) -> Iterator[Session]:
    """A session whose own labels are keyed, empty but for the root, and removed at the end."""
    assert settings.neo4j_password is not None
    auth = (settings.neo4j_user, settings.neo4j_password.get_secret_value())
    with GraphDatabase.driver(url, auth=auth) as driver, driver.session() as session:

        def clear() -> None:
            for label in KEYS:
                session.run(f"MATCH (n:{label}) CALL (n) {{ DETACH DELETE n }} IN TRANSACTIONS").consume()

        clear()
        for label, key in KEYS.items():
            session.run(f"CREATE CONSTRAINT {label} IF NOT EXISTS FOR (n:{label}) REQUIRE n.{key} IS UNIQUE").consume()
        session.run("CREATE (:BenchTechnique {id: 'init'})").consume()
        try:
            yield session
        finally:
            clear()
            for label in KEYS:
                session.run(f"DROP CONSTRAINT {label}").consume()


def plain(settings: Settings, url: str, trajectories: list[Trajectory], statements: tuple[str, ...]) -> float:
    """Steps a second of the driver running ``statements`` for each step, each in a transaction of its own."""
    prepared = [({"id": one.id, "properties": trajectory_properties(one)}, [*plain_steps(one)]) for one in trajectories]
    with bench_session(settings, url) as session:

        def work(some: list[tuple[dict[str, Any], list[dict[str, Any]]]]) -> None:
            for head, steps in some:
                session.run(TRAJECTORY, head).consume()
                for parameters in steps:
                    for statement in statements:
                        session.run(statement, parameters).consume()

        # The first ones pay for the server's plans.
        work(prepared[:5])
        rest = prepared[5:]
        return len(rest) * STEPS / seconds(lambda: work(rest))


def langchain(settings: Settings, url: str, trajectories: list[Trajectory]) -> float | None:
    """Steps a second of LangChain's graph writer; ``None`` where the server lacks APOC, which it needs."""
    from langchain_core.documents import Document
    from langchain_neo4j import Neo4jGraph
    from langchain_neo4j.graphs.graph_document import GraphDocument, Node, Relationship

    documents = []
    for one in trajectories:
        head = Node(id=one.id, type="BenchTrajectory", properties=trajectory_properties(one))
        nodes, edges = [head], []
        for step in plain_steps(one):
            place = Node(id=step["id"], type="BenchStep", properties=step["properties"])
            before, after = (Node(id=step[end], type="BenchTechnique") for end in ("before", "after"))
            nodes += [place, after]
            edges += [
                Relationship(source=head, target=place, type="BENCH_HAS_STEP", properties={"index": step["index"]}),
                Relationship(source=place, target=after, type="BENCH_APPLIES"),
                Relationship(source=before, target=after, type="BENCH_TRANSITION"),
            ]
        documents.append(GraphDocument(nodes=nodes, relationships=edges, source=Document(page_content="")))
    assert settings.neo4j_password is not None
    password = settings.neo4j_password.get_secret_value()
    with bench_session(settings, url) as session:
        if not session.run("SHOW PROCEDURES YIELD name WHERE name = 'apoc.merge.node' RETURN name").data():
            sys.stderr.write("LangChain is left out: the server has no APOC (NEO4J_SERVER_APOC=1 brings it).\n")
            return None
        with Neo4jGraph(url, settings.neo4j_user, password, refresh_schema=False) as graph:
            graph.add_graph_documents(documents[:5])
            rest = documents[5:]
            return len(rest) * STEPS / seconds(lambda: graph.add_graph_documents(rest))


def main() -> None:
    parser = argparse.ArgumentParser(description="Merging trajectories, against plainer ways to write them.")
    parser.add_argument("--store", required=True)
    parser.add_argument("--trajectories", type=int, default=1000)
    parser.add_argument("--plain", type=int, default=105, help="trajectories that each plainer way writes")
    parser.add_argument("--batch", type=int, default=200, help="trajectories in one merge")
    parser.add_argument("--rounds", type=int, default=3, help="the plainer ways are measured once a round")
    given = parser.parse_args()
    settings = load()
    kind = given.store.partition(":")[0]
    rates: dict[str, list[float]] = {"store": []}
    with open_store(settings, url=given.store, create=True) as store:
        # The server's plans and its compiler settle, as on a server that has run for a while.
        store.merge_trajectories([trajectory(number) for number in range(given.batch)])
        for _ in range(given.rounds):
            every = iter([trajectory(each) for each in range(given.trajectories)])
            batches = iter(lambda every=every: [*islice(every, given.batch)], [])
            taken = seconds(lambda batches=batches: [*map(store.merge_trajectories, batches)])
            rates["store"].append(given.trajectories * STEPS / taken)
            if kind == "sqlite":
                continue
            some = [trajectory(each) for each in range(given.plain)]
            rates.setdefault("merge_a_row", []).append(plain(settings, given.store, some, STEP))
            rates.setdefault("statement_a_step", []).append(plain(settings, given.store, some, (WHOLE_STEP,)))
            theirs = langchain(settings, given.store, some)
            if theirs is not None:
                rates.setdefault("langchain", []).append(theirs)
    middle = {name: statistics.median(values) for name, values in rates.items()}
    figures = {"store": kind, "trajectories": given.trajectories, "steps_each": STEPS, "batch": given.batch}
    figures |= {f"{name}_steps_per_second": values for name, values in rates.items()}
    ratios = {f"store_over_{name}": middle["store"] / value for name, value in middle.items() if name != "store"}
    print(json.dumps({"benchmark": "store_merge", "figures": figures, "ratios": ratios}))


if __name__ == "__main__":
    main()
