"""Memory of a client that reads a whole graph: the resident set at the start, in the middle and at the end.

    python benchmarks/store_search.py --store STORE --examples 100000      (fills it)
    python benchmarks/store_stream.py --store STORE

Three streams, each in a fresh process: every trajectory, everything as ``db export`` writes it, and the nearest example
among all of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regraph_db.opening import open_store
from regraph_db.settings import load
from regraph_db.store import GraphStore

STREAMS = ("trajectories", "dump", "nearest_examples")


def resident_mb() -> float:
    """Megabytes of this process that are in memory now."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def peak_mb() -> float:
    """Megabytes of this process that were ever in memory at once."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def stream(store: GraphStore, what: str) -> Iterator[object]:
    if what == "trajectories":
        return store.trajectories()
    if what == "dump":
        return store.dump()
    return iter(store.nearest_examples("out[i] = a * x[i] + y[i];", limit=3))


def measure(url: str, what: str) -> dict[str, Any]:
    """In the fresh process."""
    with open_store(load(), url=url) as store:
        counts = store.counts()
        start, middle = resident_mb(), None
        begun = time.perf_counter()
        objects = 0
        for _ in stream(store, what):
            objects += 1
            if objects == counts.trajectories // 2:
                middle = resident_mb()
        taken = time.perf_counter() - begun
        memory = {"start_mb": start, "middle_mb": middle, "end_mb": resident_mb(), "peak_mb": peak_mb()}
        return {"stream": what, "examples": counts.examples, "objects": objects, "seconds": taken, **memory}


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory of a client that reads a whole graph.")
    parser.add_argument("--store", required=True)
    parser.add_argument("--stream", choices=STREAMS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stream:
        print(json.dumps(measure(given.store, given.stream)))
        return
    for what in STREAMS:
        command = [sys.executable, __file__, "--store", given.store, "--stream", what]
        figures = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        figures = {"store": given.store.partition(":")[0], **figures}
        ratios = {"peak_over_start": figures["peak_mb"] / figures["start_mb"]}
        print(json.dumps({"benchmark": "store_stream", "figures": figures, "ratios": ratios}), flush=True)


if __name__ == "__main__":
    main()
