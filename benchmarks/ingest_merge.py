"""Merging 10,000 generated trajectories (50,000 steps): steps a second, beside one merge a trajectory and
LangChain's graph writer.

Prints JSON lines ``{"benchmark", "figures", "ratios"}``. Neo4j is measured where REGRAPH_TEST_NEO4J_URI and
REGRAPH_TEST_NEO4J_PASSWORD name a server that may be cleared.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingest.merging import Run
from ingest.relabel import Relabeller
from ingest.settings import IngestSettings
from ingest.techniques import synonyms
from regraph_db.records import Step, Trajectory
from regraph_db.settings import Settings
from regraph_db.store import GraphStore, open_store

STEPS = 5


def documents(count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Trajectories of :data:`STEPS` steps with code of a usual length, methods from the table and some of their own."""
    rng = random.Random(seed)
    names = sorted(synonyms())
    for number in range(count):
        steps = []
        for i in range(STEPS):
            method = rng.choice(names) if rng.random() < 0.9 else f"special trick {rng.randrange(200)}"
            body = "\n".join(
                f"    x[{rng.randrange(10_000)}] = y[{rng.randrange(10_000)}] * {number}.f + {i}.f;" for _ in range(20)
            )
            steps.append(
                {
                    "think": "t",
                    "method": method,
                    "detail": "d",
                    "code": f'extern "C" void f(float* x, const float* y) {{\n{body}\n}}\n',
                }
            )
        yield {"task": f"task {number % 60}", "author": "a generator", "steps": steps}


def ingest(url: str, file: Path, password: str | None) -> float:
    """Seconds that the whole way from the file into the store takes, nothing verified."""
    settings = IngestSettings(verify="none")
    with open_store(Settings(store=url, neo4j_password=password), create=True) as store:
        begun = time.perf_counter()
        Run(store, settings, Relabeller(settings), cache=file.parent).files([str(file)])
        return time.perf_counter() - begun


def one_by_one(store: GraphStore, count: int) -> float:
    """Seconds for ``count`` trajectories, each merged in its own transaction."""
    made = [
        Trajectory(task="one by one", steps=tuple(Step(**step) for step in each["steps"]))
        for each in documents(count, seed=1)
    ]
    begun = time.perf_counter()
    for trajectory in made:
        store.merge_trajectories([trajectory])
    return time.perf_counter() - begun


def by_langchain(uri: str, password: str, count: int) -> float:
    """Seconds for ``count`` trajectories written as graph documents by langchain-neo4j, without verdicts or
    statistics."""
    from langchain_core.documents import Document
    from langchain_neo4j import Neo4jGraph
    from langchain_neo4j.graphs.graph_document import GraphDocument, Node, Relationship

    graph = Neo4jGraph(uri, "neo4j", password, refresh_schema=False)
    made = []
    for each in documents(count, seed=2):
        before = Node(id="init", type="LcTechnique")
        nodes, edges = [before], []
        for step in each["steps"]:
            after = Node(id=step["method"], type="LcTechnique")
            nodes.append(after)
            edges.append(
                Relationship(source=before, target=after, type="LC_TRANSITION", properties={"code": step["code"]})
            )
            before = after
        made.append(GraphDocument(nodes=nodes, relationships=edges, source=Document(page_content=each["task"])))
    begun = time.perf_counter()
    graph.add_graph_documents(made)
    return time.perf_counter() - begun


def peak_memory(count: int) -> float:
    """Peak resident MB of a fresh process that ingests ``count`` trajectories into SQLite."""
    result = subprocess.run(
        [sys.executable, __file__, "--memory", str(count)], capture_output=True, text=True, check=True
    )
    return float(result.stdout)


def measure_memory(count: int) -> None:
    """In the fresh process: ingest, then print the peak."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.jsonl"
        with file.open("w") as stream:
            stream.writelines(json.dumps(each) + "\n" for each in documents(count))
        ingest(f"sqlite:///{folder}/g.db", file, None)
    sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def report(name: str, figures: dict[str, float], ratios: dict[str, float]) -> None:
    """One JSON line."""
    sys.stdout.write(json.dumps({"benchmark": name, "figures": figures, "ratios": ratios}) + "\n")
    sys.stdout.flush()


def compare(name: str, url: str, file: Path, count: int, password: str | None) -> float:
    """Batched against one by one on one store; steps a second of the batched way."""
    few = max(count // 20, 10)
    seconds = ingest(url, file, password)
    with open_store(Settings(store=url, neo4j_password=password)) as store:
        single = one_by_one(store, few)
    rate, single_rate = count * STEPS / seconds, few * STEPS / single
    report(
        name,
        {"steps_per_second": rate, "seconds": seconds, "one_by_one_steps_per_second": single_rate},
        {"batched_to_one_by_one": rate / single_rate},
    )
    return rate


def main() -> None:
    """Run them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        measure_memory(arguments.memory)
        return
    uri, password = os.environ.get("REGRAPH_TEST_NEO4J_URI"), os.environ.get("REGRAPH_TEST_NEO4J_PASSWORD")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trajectories.jsonl"
        with file.open("w") as stream:
            stream.writelines(json.dumps(each) + "\n" for each in documents(arguments.count))
        compare("ingest_merge_sqlite", f"sqlite:///{folder}/g.db", file, arguments.count, None)
        if uri and password:
            from neo4j import GraphDatabase

            with GraphDatabase.driver(uri, auth=("neo4j", password)) as driver:
                driver.execute_query("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 1000 ROWS")
            rate = compare("ingest_merge_neo4j", uri, file, arguments.count, password)
            few = max(arguments.count // 20, 10)
            theirs = few * STEPS / by_langchain(uri, password, few)
            report(
                "ingest_langchain_graph_documents", {"steps_per_second": theirs}, {"ours_to_langchain": rate / theirs}
            )
    small, large = peak_memory(max(arguments.count // 10, 10)), peak_memory(arguments.count)
    report("ingest_memory", {"peak_mb_tenth": small, "peak_mb_whole": large}, {"whole_to_tenth": large / small})


if __name__ == "__main__":
    main()
