"""``make demo``: the main job in plain `regraph` commands, each printed before it runs.

Ingests the shipped trajectories, searches two tasks of the test split with the shipped demonstration model and ends
with one paragraph that says what was measured and what was not. It can be stopped and started again: verdicts are
cached, trajectories are merged once, and a finished search is not run again.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from cudaeval import TRAJECTORIES
from regraph_db.errors import EnvironmentFault
from regraph_db.figures import figure
from slm import MODEL

FOLDER = Path(".demo")
TASKS = ("relu", "softmax_rows")
BUDGET = 16
_REGRAPH = [sys.executable, "-c", "from regraph_db.cli import main; main()"]


def run(*words: str, capture: bool = False) -> str:
    """One `regraph` command, shown as a user would type it; its exit code 1 (a negative result) is an answer too."""
    shown = " ".join(shlex.quote(word) for word in words if not word.startswith(str(TRAJECTORIES)))
    print(f"\n$ regraph {shown}", flush=True)
    done = subprocess.run([*_REGRAPH, *words], stdout=subprocess.PIPE if capture else None, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(done.returncode)
    return done.stdout or ""


def start_neo4j() -> str:
    """A Neo4j of this demonstration, in Docker where an engine answers, else from its jars; returns its store URL."""
    kept = FOLDER / "neo4j-password"
    if not kept.exists():
        kept.touch(mode=0o600)
        kept.write_text(secrets.token_urlsafe(16), encoding="utf-8")
    os.environ["REGRAPH_NEO4J_PASSWORD"] = kept.read_text(encoding="utf-8")
    engine = (
        shutil.which("docker") and subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0
    )
    if engine:
        subprocess.run(["docker", "compose", "-f", "docker/compose.yaml", "up", "-d", "--wait"], check=True)
        return "neo4j://localhost"
    os.environ.setdefault("NEO4J_SERVER_HOME", str((FOLDER / "neo4j").resolve()))
    for name in ("NEO4J_SERVER_BOLT_PORT", "NEO4J_SERVER_HTTP_PORT"):
        os.environ.setdefault(name, _port(name))
    started = subprocess.run(["docker/neo4j-server", "start"], check=False)
    if started.returncode:
        raise EnvironmentFault("Neo4j could not be started; its words stand above.")
    return f"bolt://127.0.0.1:{os.environ['NEO4J_SERVER_BOLT_PORT']}"


def _port(name: str) -> str:
    """A free port, kept for the next run."""
    kept = FOLDER / name.lower()
    if not kept.exists():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            kept.write_text(str(probe.getsockname()[1]), encoding="utf-8")
    return kept.read_text(encoding="utf-8")


def search(task: str, store: str) -> dict[str, Any]:
    """Search one task, or read the answer of an earlier run against the same store."""
    answer = FOLDER / f"{task}-{store.partition(':')[0]}.json"
    if answer.exists():
        print(f"\n{task} was searched before; {answer} holds the answer (remove it to search again).", flush=True)
    else:
        out = str(FOLDER / f"{task}-kernel")
        shutil.rmtree(out, ignore_errors=True)
        words = [
            "search",
            "run",
            task,
            "--model",
            str(MODEL),
            "--budget",
            str(BUDGET),
            "--out",
            out,
            "--store",
            store,
            "--json",
        ]
        text = run(*words, capture=True)
        partial = answer.with_suffix(".partial")
        partial.write_text(text, encoding="utf-8")
        partial.rename(answer)
    document: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    run("search", "show", document["search"], "--store", store)
    return document


def paragraph(answers: list[dict[str, Any]]) -> str:
    """What happened, what was measured and what was not, in a few sentences made from the answers."""
    told = []
    for answer in answers:
        best = answer["best"]
        if best is None:
            told.append(f"For {answer['task']} no correct kernel was found in {answer['calls']} calls.")
            continue
        way = " → ".join(best["path"]) or "one prompt"
        told.append(f"For {answer['task']} the best of {answer['calls']} calls came by {way}: {_speed(answer, best)}.")
    levels = {answer["level"] for answer in answers}
    if levels == {"gpu"}:
        told.append("Results and times were measured on this machine's GPU against the sequential code on one core.")
    elif "modelled" in levels:
        told.append(
            "Results were checked by running the CUDA code on the CPU. "
            "Times are modelled for a named GPU, not measured."
        )
    else:
        told.append(
            "Results were checked by running the CUDA code on the CPU, races included. "
            "No speed was measured: there is no GPU here."
        )
    told.append(
        "The shipped trajectories were measured earlier, on the GPU that their files name. "
        "The model is a demonstration of a few million parameters; bring a better one with --model."
    )
    return " ".join(told)


def _speed(answer: dict[str, Any], best: dict[str, Any]) -> str:
    if best["speedup"] is None:
        return "a correct kernel, its speed not measured"
    kind = "measured" if answer["level"] == "gpu" else "modelled, not measured"
    return f"{figure(best['speedup'])} times the baseline ({kind})"


def main() -> None:
    """``python -m slm.demo [sqlite|neo4j]``."""
    FOLDER.mkdir(exist_ok=True)
    neo4j = sys.argv[1:] == ["neo4j"]
    store = start_neo4j() if neo4j else f"sqlite:///{FOLDER}/regraph.db"
    run("db", "init", "--store", store)
    files = sorted(str(path) for path in TRAJECTORIES.glob("*.jsonl"))
    print("\nThe shipped trajectories, with their measurements:", flush=True)
    run("ingest", "add", "--store", store, "--resume", *files)
    answers = [search(task, store) for task in TASKS]
    for answer in answers:
        if answer["best"] is not None:
            run("search", "best", answer["search"], "--store", store)
            run("verify", answer["task"], str(FOLDER / f"{answer['task']}-kernel" / "kernel.cu"))
    print(f"\n{paragraph(answers)}")
    if neo4j:
        port = os.environ.get("NEO4J_SERVER_HTTP_PORT", "7474")
        print(f"\nNeo4j Browser: http://127.0.0.1:{port}/browser/, user neo4j, password in {FOLDER}/neo4j-password.")
        start = f"(:State {{search: '{answers[0]['search']}'}})"
        print(f"Paste: MATCH path = {start}-[e:EXPLORED]->() WHERE e.visits > 0 RETURN path")
        print("Stop the server with `docker/neo4j-server stop` and the same NEO4J_SERVER_HOME, or `make clean`.")


if __name__ == "__main__":
    main()
