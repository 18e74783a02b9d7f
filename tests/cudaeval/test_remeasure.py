"""Timing again what modelled searches picked: real campaign files and graphs, a stand-in for the judge on a GPU."""

from __future__ import annotations

import json
from concurrent.futures import Future
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from cudaeval import remeasure
from cudaeval.command import evaluate
from cudaeval.results import Results, Sample, Terms, read
from regraph_db.errors import NotFound
from regraph_db.opening import open_store
from regraph_db.records import (
    ROOT,
    Attempt,
    Evidence,
    Interval,
    Level,
    Rollout,
    RolloutResult,
    Runner,
    Search,
    State,
    TaskReference,
    Verdict,
    VerdictKind,
)
from regraph_db.settings import load
from verify import load_task
from verify.task import Task

TERMS = Terms(budget=9, level=Level.MODELLED)


class Scripted:
    """A GPU on which a kernel takes as many microseconds as its text says, and ``wrong`` ones are wrong."""

    def submit(
        self, task: Task | None, source: str, level: Level | None = None, *, baseline: str | None = None
    ) -> Future[Verdict]:
        assert level is Level.GPU and baseline is not None
        future: Future[Verdict] = Future()
        evidence = Evidence(gpu="NVIDIA H200", driver="580.1", nvcc="13.0.88")
        if "wrong" in source:
            kind = VerdictKind.WRONG_RESULT
            future.set_result(Verdict(verdict=kind, reason="out[0]", level=Level.GPU, evidence=evidence))
            return future
        mine, base = float(source), float(baseline) if "wrong" not in baseline else 1.0
        speedup = Interval(median=base / mine, low=base / mine, high=base / mine)
        kind = VerdictKind.PASSED
        verdict = Verdict(
            verdict=kind, level=Level.GPU, candidate_seconds=mine * 1e-6, speedup=speedup, evidence=evidence
        )
        future.set_result(verdict)
        return future


def search(file: Path, name: str, codes: list[str], picked: int) -> Sample:
    """A finished modelled search whose generator wrote ``codes``, in its own graph beside ``file``."""
    task = load_task("saxpy")
    graph = file.with_suffix(".graphs") / f"{name}.db"
    graph.parent.mkdir(exist_ok=True)
    with open_store(load(), url=f"sqlite:///{graph}", create=True) as store:
        opened = Search(
            id=name, task=TaskReference(name=task.name, hash=task.hash), level=Level.MODELLED, budget=len(codes)
        )
        store.open_search(opened, State(id=ROOT, technique=ROOT))
        store.join(Runner(id="runner", search=name, host="here", pid=1))
        store.begin_rollout(Rollout(id="rollout", search=name, runner="runner", path=(), calls=len(codes)))
        attempts = [
            Attempt(
                id=f"{name}-{index}",
                search=name,
                rollout="rollout",
                index=index,
                code=code,
                verdict=Verdict(
                    verdict=VerdictKind.PASSED if code else VerdictKind.COMPILE_ERROR,
                    level=Level.MODELLED,
                    modelled_seconds=1e-6 * (index + 1) if code else None,
                ),
            )
            for index, code in enumerate(codes)
        ]
        store.finish_rollout(RolloutResult(rollout="rollout", search=name, attempts=tuple(attempts), calls=len(codes)))
        store.finish_search(name, best_attempt=f"{name}-{picked}", summary={})
    return Sample(
        task="saxpy",
        tier="easy",
        split="test",
        strategy="mcgs",
        model="m",
        sample=0,
        search=name,
        calls=len(codes),
        solved=True,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.jsonl"


def record(file: Path, *samples: Sample, judges: int = 1) -> remeasure.Remeasurement:
    with Results(file, TERMS) as results:
        for sample in samples:
            results.add(sample)
    terms, read_back = read(file)
    searches = remeasure.found(file, read_back)
    scripted = [Scripted() for _ in range(judges)]
    measured = list(remeasure.remeasure(searches, scripted))  # type: ignore[arg-type]  # a judge in what is called
    return remeasure.record_of(terms, "m", [row for row, _ in measured], measured[-1][1])


def test_the_share_is_the_best_time_over_the_picked_ones(file: Path) -> None:
    found = record(file, search(file, "a", ["20", "", "10", "10", "wrong"], 0))
    (row,) = found.searches
    assert (row.kernels, row.right) == (3, 2), "the same code counts once, what did not pass not at all"
    assert row.picked == pytest.approx(20e-6) and row.best == pytest.approx(10e-6)
    assert row.share == pytest.approx(0.5) and row.modelled == pytest.approx(1e-6)
    assert found.geometric_mean == pytest.approx(0.5)
    assert (found.gpu, found.one_kernel) == ("NVIDIA H200", 0)


def test_a_picked_kernel_that_is_fastest_or_alone_has_the_whole_share(file: Path) -> None:
    found = record(file, search(file, "a", ["20", "5"], 1), search(file, "b", ["7"], 0), judges=2)
    assert [row.share for row in found.searches] == [1.0, 1.0]
    assert found.one_kernel == 1 and found.geometric_mean == 1.0
    page = remeasure.markdown(found)
    assert "reaches 1.000" in page and "modelled speed" in page and "NVIDIA H200, driver 580.1, nvcc 13.0.88" in page


def test_a_picked_kernel_that_is_wrong_on_the_gpu_is_named_and_has_no_share(file: Path) -> None:
    found = record(file, search(file, "a", ["wrong", "5"], 0), search(file, "b", ["4", "2"], 0))
    assert found.searches[0].share is None and "wrong_result: out[0]" in found.searches[0].reason
    assert found.geometric_mean == pytest.approx(0.5), "over those that have a share"


def test_without_its_graphs_a_campaign_cannot_be_remeasured(file: Path) -> None:
    sample = search(file, "a", ["1"], 0)
    (file.with_suffix(".graphs") / "a.db").unlink()
    with pytest.raises(NotFound, match="graph of a search is missing"):
        record(file, sample)


def test_the_command_writes_the_record_and_ends_with_1_where_the_gpu_disagrees(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("verify.Judge", lambda settings: nullcontext(Scripted()))
    out, page = file.parent / "record.json", file.parent / "record.md"
    words = ["remeasure", str(file), "--out", str(out), "--markdown", str(page), "--json"]
    record(file, search(file, "a", ["4", "2"], 0))
    done = CliRunner().invoke(evaluate, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(out.read_text())
    assert json.loads(out.read_text())["geometric_mean"] == pytest.approx(0.5)
    assert "| saxpy | mcgs | 2 of 2 |" in page.read_text()
    other = file.with_name("other.jsonl")
    record(other, search(other, "b", ["wrong"], 0))
    done = CliRunner().invoke(evaluate, [words[0], str(other)])
    assert done.exit_code == 1 and "wrong_result" in done.stdout


def test_a_campaign_that_solved_nothing_says_so(file: Path) -> None:
    sample = search(file, "a", ["1"], 0)
    record(file, sample)
    other = file.with_name("other.jsonl")
    with Results(other, TERMS) as results:
        results.add(sample.model_copy(update={"solved": False}))
    done = CliRunner().invoke(evaluate, ["remeasure", str(other)])
    assert done.exit_code != 0 and "no search in it found a right kernel" in str(done.exception)
