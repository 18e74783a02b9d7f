"""Ingesting 10,000 generated trajectories (50,000 steps) from a file, nothing verified: steps a second and memory.

    python benchmarks/ingest_merge.py
    REGRAPH_TEST_NEO4J_URI=… REGRAPH_TEST_NEO4J_PASSWORD=… python benchmarks/ingest_merge.py

Prints JSON lines ``{"benchmark", "figures", "ratios"}``. Beside each store's whole way from the file stands the merge
of single trajectories; beside Neo4j's also the plainer ways of ``store_merge.py``, which begin at finished records.
Those are measured on fewer trajectories, whose number is printed. The Neo4j server is cleared.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neo4j import GraphDatabase
from store_merge import STEP, langchain, plain

from ingest.merging import Run
from ingest.relabel import Relabeller
from ingest.settings import IngestSettings
from ingest.techniques import synonyms
from regraph_db.opening import open_store
from regraph_db.records import Step, Trajectory
from regraph_db.settings import Settings
from regraph_db.store import GraphStore

STEPS = 5
PARTS = ("sqlite", "neo4j", "memory")


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


def records(count: int, seed: int) -> list[Trajectory]:
    """As :func:`documents`, as the store takes them."""
    return [
        Trajectory(task=each["task"], author=f"seed {seed}", steps=tuple(Step(**step) for step in each["steps"]))
        for each in documents(count, seed)
    ]


def one_by_one(store: GraphStore, trajectories: list[Trajectory]) -> float:
    """Seconds for each trajectory to be merged in its own transaction."""
    begun = time.perf_counter()
    for trajectory in trajectories:
        store.merge_trajectories([trajectory])
    return time.perf_counter() - begun


def peak_memory(count: int) -> float:
    """Peak resident MB of a fresh process that ingests ``count`` trajectories into SQLite."""
    result = subprocess.run(
        [sys.executable, __file__, "--memory-of", str(count)], capture_output=True, text=True, check=True
    )
    return float(result.stdout)


def measure_memory(count: int) -> None:
    """In the fresh process: ingest, then print the peak."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.jsonl"
        with file.open("w") as stream:
            stream.writelines(json.dumps(each) + "\n" for each in documents(count))
        ingest(f"sqlite:///{folder}/g.db", file, None)
    # Not ru_maxrss, which a process takes over from the one that started it.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    sys.stdout.write(str(int(peak) / 1024))


def report(name: str, figures: dict[str, float], ratios: dict[str, float]) -> None:
    """One JSON line."""
    sys.stdout.write(json.dumps({"benchmark": name, "figures": figures, "ratios": ratios}) + "\n")
    sys.stdout.flush()


def compare(name: str, url: str, file: Path, count: int, few: int, password: str | None) -> None:
    """The whole way of ``count`` trajectories against plainer ways for ``few``."""
    seconds = ingest(url, file, password)
    rate = count * STEPS / seconds
    figures = {"trajectories": count, "seconds": seconds, "steps_per_second": rate, "others_trajectories": few}
    settings = Settings(store=url, neo4j_password=password)
    others: dict[str, float | None] = {}
    with open_store(settings) as store:
        others["merge_a_trajectory"] = few * STEPS / one_by_one(store, records(few, seed=1))
    if password is not None:
        some = records(few, seed=2)
        others["merge_a_row"] = plain(settings, url, some, STEP)
        others["langchain"] = langchain(settings, url, some)
    known = {other: value for other, value in others.items() if value is not None}
    figures |= {f"{other}_steps_per_second": value for other, value in known.items()}
    report(name, figures, {f"over_{other}": rate / value for other, value in known.items()})


def main() -> None:
    """Run them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--few", type=int, default=100, help="trajectories that the plainer ways write")
    parser.add_argument("--part", choices=PARTS, action="append", help="measure only this; may be repeated")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        measure_memory(arguments.memory_of)
        return
    parts = arguments.part or PARTS
    uri, password = os.environ.get("REGRAPH_TEST_NEO4J_URI"), os.environ.get("REGRAPH_TEST_NEO4J_PASSWORD")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trajectories.jsonl"
        with file.open("w") as stream:
            stream.writelines(json.dumps(each) + "\n" for each in documents(arguments.count))
        if "sqlite" in parts:
            compare("ingest_merge_sqlite", f"sqlite:///{folder}/g.db", file, arguments.count, arguments.few, None)
        if "neo4j" in parts and uri and password:
            with GraphDatabase.driver(uri, auth=("neo4j", password)) as driver, driver.session() as session:
                session.run("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 1000 ROWS").consume()
            compare("ingest_merge_neo4j", uri, file, arguments.count, arguments.few, password)
    if "memory" in parts:
        small, large = peak_memory(max(arguments.count // 10, 10)), peak_memory(arguments.count)
        report("ingest_memory", {"peak_mb_tenth": small, "peak_mb_whole": large}, {"whole_to_tenth": large / small})


if __name__ == "__main__":
    main()
