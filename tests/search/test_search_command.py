"""The commands, through the real command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from search_doubles import FakeJudge, Faulty, Scripted

from regraph_db.opening import open_store
from regraph_db.settings import load
from regraph_db.store import GraphStore
from search import run_search
from search.outcome import SearchOutcome
from search.settings import SearchSettings
from verify import Task


def regraph(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "regraph"
    return subprocess.run(
        [str(program), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
        env={**os.environ, **environment},
    )


@pytest.fixture
def outcome(store: GraphStore, task: Task) -> SearchOutcome:
    settings = SearchSettings(budget=30)
    return run_search(task, generator=Scripted(), judge=FakeJudge(), store=store, settings=settings, seed=1)


def test_list_show_and_best(outcome: SearchOutcome, store_url: str, tmp_path: Path) -> None:
    assert outcome.best is not None
    listed = regraph("search", "list", "--store", store_url, "--json")
    (one,) = json.loads(listed.stdout)
    assert (one["id"], one["task"], one["calls"], one["status"]) == (outcome.search, "saxpy", 30, "finished")
    shown = regraph("search", "show", outcome.search[:8], "--store", store_url)
    assert shown.returncode == 0
    assert "init" in shown.stdout
    assert "one thread per element" in shown.stdout
    assert " Q " in shown.stdout
    tree = json.loads(regraph("search", "show", outcome.search, "--store", store_url, "--json").stdout)["tree"]
    assert sum(edge["visits"] for edge in tree["edges"]) > 0
    out = tmp_path / "out"
    kernel = regraph("search", "best", outcome.search[:8], "--store", store_url, "--out", str(out))
    assert kernel.stdout == outcome.best.code == (out / "kernel.cu").read_text()
    document = json.loads((out / "search.json").read_text())
    assert document["best"]["path"] == list(outcome.best.path)
    assert document["settings"]["exploration"] == 2.0
    diffs = sorted((out / "path").glob("*.diff"))
    assert len(diffs) == len(outcome.best.steps)
    assert "+__global__ void candidate_" in diffs[-1].read_text()
    assert len((out / "attempts.jsonl").read_text().splitlines()) == 30


def test_a_search_without_a_correct_kernel_ends_with_one(store: GraphStore, store_url: str, task: Task) -> None:
    found = run_search(task, generator=Faulty("nothing"), judge=FakeJudge(), store=store, budget=3)
    result = regraph("search", "best", found.search, "--store", store_url)
    assert (result.returncode, result.stdout) == (1, "")
    assert "No correct kernel" in result.stderr


def test_resume_of_a_finished_search_prints_its_answer(outcome: SearchOutcome, store_url: str) -> None:
    result = regraph("search", "resume", outcome.search[:6], "--store", store_url, "--json")
    assert result.returncode == 0
    document = json.loads(result.stdout)
    assert {"search", "task", "strategy", "budget", "calls", "best", "verdicts", "seconds"} <= document.keys()
    assert document["seconds"].keys() == {"generate", "verify", "store", "search", "wait", "total"}


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "not there"), (b"MZ not a model", "not a GGUF"), (b"GGUF\x03\x00\x00\x00" + b"\x07" * 9, "truncated")],
)
def test_a_bad_model_file_is_named(
    content: bytes | None, said: str, store_url: str, store: GraphStore, tmp_path: Path
) -> None:
    path = tmp_path / "bad.gguf"
    if content is not None:
        path.write_bytes(content)
    result = regraph("search", "run", "saxpy", "--store", store_url, "--model", str(path))
    assert result.returncode == 3
    assert said in result.stderr
    assert str(path) in result.stderr


def test_an_empty_graph_is_told_before_the_model_is_looked_at(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/empty.db"
    open_store(load(), url=url, create=True).close()
    result = regraph("search", "run", "saxpy", "--store", url, "--model", "nowhere.gguf")
    assert (result.returncode, result.stdout) == (2, "")
    assert "regraph ingest add" in result.stderr
    with open_store(load(), url=url) as store:
        assert store.searches() == []


def test_wrong_usage(store_url: str, store: GraphStore) -> None:
    assert regraph("search", "run", "--store", store_url).returncode == 2
    assert regraph("search", "run", "saxpy", "--store", store_url).returncode == 3  # no model is named
    assert regraph("search", "run", "saxpy", "--store", store_url, "--model", "langchain:openai").returncode == 2
    unknown = regraph("search", "show", "0000", "--store", store_url)
    assert unknown.returncode == 2
    assert "0000" in unknown.stderr


@pytest.mark.model
@pytest.mark.nvcc
@pytest.mark.slow
def test_a_real_model_and_a_real_judge(store: GraphStore, store_url: str, tmp_path: Path) -> None:
    from slm import MODEL

    words = ["search", "run", "saxpy", "--store", store_url, "--model", str(MODEL), "--level", "functional"]
    limits = {"REGRAPH_SEARCH__THREADS": "1", "REGRAPH_SEARCH__MAX_TOKENS": "600"}
    out = tmp_path / "out"
    result = regraph(*words, "--budget", "4", "--seed", "1", "--json", "--out", str(out), **limits)
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["calls"] == document["budget"] == 4
    assert document["best"]["verdict"]["verdict"] == "passed"
    assert document["best"]["speedup"] is None
    assert document["notes"][0] == "speed not measured"
    assert "__global__" in (out / "kernel.cu").read_text()
