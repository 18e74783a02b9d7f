"""What the tests' child processes do: ``graph_worker.py increment N``, ``merge SEED``, ``pairs N`` or ``crash KILLS
SEED``.

The store is named by TEST_STORE and TEST_PASSWORD. ``crash`` forks children that write until they are killed at random
moments, and prints as JSON what they had been told was done.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from itertools import count

from graph_samples import attempt, open_from_environment, trajectory

# Imported before any fork, so that a child is at its work at once.
import regraph_db.neo4j
import regraph_db.sqlite  # noqa: F401
from regraph_db.records import EdgeReturn, Rollout, RolloutResult, Runner, Trajectory
from regraph_db.store import GraphStore

EDGES = (("root", "a"), ("a", "b"))


def increment(store: GraphStore, name: str, runner: str) -> None:
    """One rollout over the edges that every process shares."""
    store.begin_rollout(Rollout(id=name, search="s", runner=runner, path=EDGES, calls=1))
    returns = tuple(EdgeReturn(source=u, target=v, value=0.5) for u, v in EDGES)
    store.finish_rollout(
        RolloutResult(rollout=name, search="s", returns=returns, attempts=(attempt(f"attempt {name}", name),), calls=1)
    )


def overlapping(number: int) -> list[Trajectory]:
    """The trajectories that every merging process brings, in the same words."""
    methods = ["tiling", "unrolling", "vector loads", "coalescing"]
    chosen = random.Random(number)
    return [
        trajectory(*(chosen.choice(methods) for _ in range(4)), task=chosen.choice(["saxpy", "dot"]), author=str(i))
        for i in range(number)
    ]


def crash(kills: int, seed: int) -> None:
    """Children that are killed while they write; each writes to a pipe what had been acknowledged to it."""
    chance = random.Random(seed)
    done: dict[str, list[str]] = {"rollouts": [], "trajectories": []}
    for number in range(kills):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _write_until_killed(writing, f"{seed}.{number}")
        os.close(writing)
        with os.fdopen(reading, "r") as acknowledged:
            acknowledged.readline()
            # Waiting for some writes, and not for a time alone, makes the test say as much on a slow machine.
            lines = [acknowledged.readline() for _ in range(chance.randrange(4))]
            time.sleep(chance.uniform(0, 0.06))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            for line in (*lines, *acknowledged):
                if line.endswith("\n"):
                    kind, _, name = line.strip().partition(" ")
                    done[kind].append(name)
    sys.stdout.write(json.dumps(done))


def _write_until_killed(pipe: int, name: str) -> None:
    with open_from_environment() as store:
        os.write(pipe, b"open\n")
        runner = f"runner {name}"
        store.join(Runner(id=runner, search="s", lease=0.5))
        for number in count():
            one = trajectory("tiling", "unrolling", author=f"{name}.{number}")
            store.merge_trajectories([one])
            os.write(pipe, f"trajectories {one.id}\n".encode())
            rollout = f"{name}.{number}"
            increment(store, rollout, runner)
            os.write(pipe, f"rollouts {rollout}\n".encode())


def main(what: str, *arguments: str) -> None:
    if what == "crash":
        crash(int(arguments[0]), int(arguments[1]))
        return
    with open_from_environment() as store:
        if what == "increment":
            runner = f"runner {os.getpid()}"
            store.join(Runner(id=runner, search="s"))
            for number in range(int(arguments[0])):
                increment(store, f"{runner} {number}", runner)
        elif what == "merge":
            batch = overlapping(60)
            random.Random(arguments[0]).shuffle(batch)
            for start in range(0, len(batch), 7):
                store.merge_trajectories(batch[start : start + 7])
        elif what == "pairs":
            for number in range(int(arguments[0])):
                store.merge_trajectories([trajectory("tiling", "unrolling", author=f"{os.getpid()}.{number}")])


if __name__ == "__main__":
    main(*sys.argv[1:])
