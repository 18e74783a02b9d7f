"""`regraph eval run` as a person runs it: the real program, the demonstration model, a kill in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudaeval import TRAJECTORIES
from cudaeval.launch import select
from cudaeval.results import read
from regraph_db.opening import open_store
from regraph_db.records import Example, Search
from regraph_db.settings import load
from regraph_db.store import GraphStore

MODEL = Path(__file__).parents[2] / "slm" / "model" / "regraph-demo-q8_0.gguf"
PROGRAM = [sys.executable, "-c", "import regraph_db.cli; regraph_db.cli.main()"]
BUDGET = 3
LONGER = 12  # calls of a search that is to be killed between its first and its last


def command(*words: str) -> list[str]:
    return [*PROGRAM, *words]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a graph that knows one trajectory; a killed runner's lease ends soon."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGRAPH_STORE", f"sqlite:///{tmp_path}/graph.db")
    monkeypatch.setenv("REGRAPH_SEARCH__LEASE", "4")
    for words in (["db", "init"], ["ingest", "add", str(TRAJECTORIES / "relu.jsonl"), "--verify", "none"]):
        subprocess.run(command(*words), check=True, capture_output=True, timeout=120)
    return tmp_path


def run_words(file: Path, *words: str, budget: int = BUDGET) -> list[str]:
    common = ["--model", str(MODEL), "--level", "functional", "--budget", str(budget), "--out", str(file), "--json"]
    return command("eval", "run", *words, *common)


def graphs(place: Path) -> list[Path]:
    """The graphs of the searches begun so far."""
    return sorted(file for file in (place / "runs.graphs").glob("*.db") if file.name != "base.db")


def begun(graph: Path) -> list[Search]:
    with open_store(load(), url=f"sqlite:///{graph}") as store:
        return store.searches()


@pytest.mark.model
@pytest.mark.nvcc
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_campaign_is_finished_by_the_same_command(place: Path) -> None:
    file = place / "runs.jsonl"
    words = run_words(file, "saxpy", "reverse", "--strategy", "mcgs", "--jobs", "2", budget=LONGER)
    first = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 300
    # Kill it when a search has spent a call and not all of them.
    while time.monotonic() < deadline and first.poll() is None:
        if any(0 < each.calls < LONGER for graph in graphs(place) for each in begun(graph)):
            break
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGKILL)  # the parent alone: its processes must end by themselves
    first.communicate()
    while time.monotonic() < deadline and _alive(first.pid):
        time.sleep(0.05)
    assert not _alive(first.pid)

    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 2
    _, samples = read(file)
    assert Counter(sample.task for sample in samples) == {"saxpy": 1, "reverse": 1}
    assert [graph.stem for graph in graphs(place)] == sorted(sample.search for sample in samples)
    for sample in samples:
        with open_store(load(), url=f"sqlite:///{place}/runs.graphs/{sample.search}.db") as store:
            assert [search.id for search in store.searches()] == [sample.search], "a search was begun twice"
            attempts = list(store.attempts(sample.search))
        assert sample.calls == LONGER == len(attempts)
        assert len({attempt.id for attempt in attempts}) == LONGER
    with open_store(load()) as store:
        assert store.searches() == [], "the campaign wrote into the graph that it began with"

    again = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(again.stdout)["ran"] == 0


def _alive(session: int) -> bool:
    """Whether a process of this session is still there (one that has ended and was not collected yet is not)."""
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, found = status.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(found) == session and state != "Z":
            return True
    return False


@pytest.mark.model
@pytest.mark.nvcc
@pytest.mark.timeout(300)
def test_no_search_sees_a_trajectory_of_its_own_task(place: Path) -> None:
    # The graph knows relu; now it learns saxpy, too, of which a search on saxpy must not be told.
    learnt = command("ingest", "add", str(TRAJECTORIES / "saxpy.jsonl"), "--verify", "none")
    subprocess.run(learnt, check=True, capture_output=True, timeout=120)
    file = place / "runs.jsonl"
    words = run_words(file, "saxpy", "--strategy", "rag", "--strategy", "random")
    subprocess.run(words, check=True, capture_output=True, timeout=240)
    _, samples = read(file)
    assert [sample.strategy for sample in samples] == ["rag", "random"]
    for sample in samples:
        with open_store(load(), url=f"sqlite:///{place}/runs.graphs/{sample.search}.db") as store:
            own = {example.id for example in every_example(store) if example.task == "saxpy"}
            other = {example.id for example in every_example(store) if example.task == "relu"}
            shown = {attempt.example for attempt in store.attempts(sample.search)} - {None}
        assert own and other
        assert shown and shown <= other


def every_example(store: GraphStore) -> Iterator[Example]:
    for edge in store.transitions():
        yield from store.examples(edge.before, edge.after, limit=1000)


@pytest.mark.model
@pytest.mark.nvcc
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_script_of_the_results_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OUT": str(tmp_path / "out"),
        "REGRAPH_CACHE": str(tmp_path / "cache"),
        "REGRAPH_SEARCH__THREADS": "1",
        "LEVEL": "functional",
        "TASKS": "saxpy",
        "BUDGET": "1",
        "SAMPLES": "1",
        "JOBS": "1",
    }
    script = Path(__file__).parents[2] / "docs" / "results" / "campaign.sh"
    out = tmp_path / "out"
    for _ in range(12):
        # 40 seconds of these are for reporting, 10 may go by until the lease of a killed run ends, and the rest may be
        # too little for all six strategies.
        done = subprocess.run([script, "70"], env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0 and len(read(out / "runs.jsonl")[1]) == 6:
            break
    terms, samples = read(out / "runs.jsonl")
    assert {sample.strategy for sample in samples} == {"mcgs", "random", "rag", "standard", "cot", "fsr"}, done.stderr
    assert terms.settings["retime"] == 1
    assert "6 searches on 1 tasks" in (out / "report.md").read_text(encoding="utf-8")
    assert (out / "report.html").stat().st_size > 0
    with tarfile.open(out / "searches.tar.xz") as archive:
        held = {Path(name).stem for name in archive.getnames()}
    assert held >= {sample.search for sample in samples} | {"base"}
    with open_store(load(), url=f"sqlite:///{tmp_path}/cache/campaign-functional/store.db") as store:
        taught = {trajectory.task for trajectory in store.trajectories()}
    assert taught == {task.name for task in select([], None, "train")}, "test tasks teach nothing"


def test_a_campaign_without_a_model_or_a_task_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = str(tmp_path / "runs.jsonl")
    for words, said in (
        (["saxpy"], "no model is named"),
        (["no_such_task", "--model", "m.gguf"], "no_such_task"),
        (["saxpy", "--tier", "hard", "--model", "m.gguf"], "no task is left"),
    ):
        done = subprocess.run(command("eval", "run", *words, "--out", out), capture_output=True, text=True, check=False)
        assert done.returncode == (3 if "model" in said else 2), done.stderr
        assert said in done.stderr
    assert not Path(out).exists()
