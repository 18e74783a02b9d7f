"""`regraph eval run` as a person runs it: the real program, the demonstration model, a kill in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from cudaeval import TRAJECTORIES
from cudaeval.results import read
from regraph_db.settings import load
from regraph_db.store import open_store

MODEL = Path(__file__).parents[2] / "slm" / "model" / "regraph-demo-q8_0.gguf"
PROGRAM = [sys.executable, "-c", "import regraph_db.cli; regraph_db.cli.main()"]
BUDGET = 3


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


def run_words(file: Path) -> list[str]:
    words = ["eval", "run", "saxpy", "reverse", "--strategy", "mcgs", "--model", str(MODEL), "--level", "functional"]
    return command(*words, "--budget", str(BUDGET), "--out", str(file), "--json")


@pytest.mark.model
@pytest.mark.nvcc
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_campaign_is_finished_by_the_same_command(place: Path) -> None:
    file = place / "runs.jsonl"
    first = subprocess.Popen(run_words(file), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 300
    with open_store(load()) as store:
        # Kill it within the second search, when that has spent a call and not all of them.
        while time.monotonic() < deadline and first.poll() is None:
            begun = store.searches()
            if len(begun) == 2 and any(0 < each.calls < BUDGET for each in begun):
                break
            time.sleep(0.05)
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()

        done = subprocess.run(run_words(file), capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["samples"] == 2
        _, samples = read(file)
        assert Counter(sample.task for sample in samples) == {"saxpy": 1, "reverse": 1}
        assert len(store.searches()) == 2, "a search was begun twice"
        for sample in samples:
            attempts = list(store.attempts(sample.search))
            assert sample.calls == BUDGET == len(attempts)
            assert len({attempt.id for attempt in attempts}) == BUDGET

    again = subprocess.run(run_words(file), capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(again.stdout)["ran"] == 0


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
