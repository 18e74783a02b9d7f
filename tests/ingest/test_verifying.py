"""Steps through the judge: cuts, measurements, the journal, faults of the judge, and the real one at its compile
level."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from ingest_samples import knowledge, line, step

from ingest.journal import Journal
from ingest.measured import code_hash, find_measured, workload
from ingest.merging import Run
from ingest.relabel import Relabeller
from ingest.report import text_of
from ingest.settings import IngestSettings
from regraph_db.cli import regraph
from regraph_db.errors import InputError, StoreUnreachable
from regraph_db.opening import open_store
from regraph_db.records import Level, Verdict, VerdictKind
from regraph_db.settings import load
from regraph_db.store import GraphStore

Write = Callable[..., Path]


class ScriptedJudge:
    """Gives the verdict whose name stands in the code, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Level | None]] = []

    def submit(self, task: object, source: str, level: Level | None = None) -> Future[Verdict]:
        self.asked.append((source, level))
        found = next((kind for kind in VerdictKind if kind.value in source), VerdictKind.PASSED)
        if level is Level.COMPILE and found is VerdictKind.UNSUPPORTED:
            found = VerdictKind.PASSED
        future: Future[Verdict] = Future()
        future.set_result(Verdict(verdict=found, level=level or Level.COMPILE, reason=found.value))
        return future


def ingest(store: GraphStore, path: Path, judge: Any, level: Level = Level.FUNCTIONAL, **fields: Any) -> Run:
    settings = IngestSettings()
    run = Run(store, settings, Relabeller(settings), level=level, judge=judge, cache=load().cache_folder, **fields)
    run.files([str(path)])
    return run


def test_a_trajectory_is_cut_behind_its_first_failing_step(store: GraphStore, write: Write) -> None:
    path = write(
        line(
            step("tiling", "x[0] = 1;"), step("unrolling", "x[0] = 2; /* wrong_result */"), step("padding", "x[0] = 3;")
        )
    )
    summary = ingest(store, path, ScriptedJudge()).summary
    (kept,) = store.trajectories()
    assert [s.method for s in kept.steps] == ["tiling", "unrolling"]
    verdicts = [s.verdict for s in kept.steps]
    assert [v.verdict for v in verdicts if v] == [VerdictKind.PASSED, VerdictKind.WRONG_RESULT]
    assert summary.verdicts == {"passed": 1, "wrong_result": 1}
    assert [(t.before, t.after) for t in store.transitions()] == [("init", "shared memory tiling")]


def test_what_a_level_cannot_run_is_compiled_and_says_so(store: GraphStore, write: Write) -> None:
    ingest(
        store,
        write(line(step("tensor cores", "x[0] = 1; /* unsupported */"), step("padding", "x[0] = 2;"))),
        ScriptedJudge(),
    )
    (kept,) = store.trajectories()
    first = kept.steps[0].verdict
    assert len(kept.steps) == 2 and first is not None and first.passed and first.level is Level.COMPILE


def test_a_fault_of_the_judge_is_no_verdict(store: GraphStore, write: Write) -> None:
    path = write(line(step("tiling", "x[0] = 1; /* harness_error */")), line(step("tiling", "x[0] = 2;")))
    summary = ingest(store, path, ScriptedJudge()).summary
    assert (summary.merged, summary.rejected) == (1, 1)
    aside = json.loads((path.parent / "t.rejected.jsonl").read_text())
    assert "the judge failed" in aside["reason"]


def test_what_the_graph_holds_is_not_judged_again(store: GraphStore, write: Write) -> None:
    path = write(line(step("tiling", "x[0] = 1;")))
    ingest(store, path, ScriptedJudge())
    second = ScriptedJudge()
    assert ingest(store, path, second).summary.duplicates == 1 and second.asked == []


def test_what_was_believed_is_verified_further_and_cut_when_it_comes_again(store: GraphStore, write: Write) -> None:
    path = write(
        line(
            step("tiling", "x[0] = 1;"), step("unrolling", "x[0] = 2; /* wrong_result */"), step("padding", "x[0] = 3;")
        )
    )
    ingest(store, path, None, Level.NONE)
    assert [t.statistics.examples for t in store.transitions()] == [1, 1, 1]
    run = ingest(store, path, ScriptedJudge())
    assert (run.summary.merged, run.summary.verified, run.summary.duplicates) == (0, 1, 0)
    (kept,) = store.trajectories()
    assert [s.verdict.verdict.value for s in kept.steps if s.verdict] == ["passed", "wrong_result"]
    assert [(t.before, t.after) for t in store.transitions()] == [("init", "shared memory tiling")]
    assert "1 of the known verified further" in text_of(run.summary)
    before = knowledge(store)
    for level in (Level.NONE, Level.COMPILE, Level.FUNCTIONAL):
        again = ScriptedJudge()
        assert ingest(store, path, again, level).summary.duplicates == 1 and again.asked == []
    assert knowledge(store) == before and store.check() == []


@pytest.mark.parametrize("order", list(permutations([Level.NONE, Level.COMPILE, Level.FUNCTIONAL])))
def test_the_order_in_which_levels_come_in_does_not_matter(
    store: GraphStore, write: Write, tmp_path: Path, order: tuple[Level, ...]
) -> None:
    path = write(
        *(line(*(step("tiling", f"x[{j}] = {i}; {'/* timeout */' * (i == j)}") for j in range(3))) for i in range(5))
    )
    for level in order:
        ingest(store, path, ScriptedJudge(), level)
    with open_store(load(), url=f"sqlite:///{tmp_path}/once.db", create=True) as once:
        ingest(once, path, ScriptedJudge())
        assert knowledge(store) == knowledge(once)
    assert store.check() == []


def test_a_dry_run_says_what_would_be_verified_further(store: GraphStore, write: Write) -> None:
    path = write(line(step("tiling", "x[0] = 1;")))
    ingest(store, path, None, Level.NONE)
    summary = ingest(store, path, ScriptedJudge(), dry_run=True).summary
    assert (summary.merged, summary.verified, summary.duplicates) == (0, 1, 0)
    assert next(store.trajectories()).steps[0].verdict is None


def test_measurements_beside_a_file_reach_what_was_only_believed(store: GraphStore, write: Write, saxpy: Any) -> None:
    written = step("tiling", "x[0] = 1;", "saxpy")
    path = write(line(written, task="saxpy"))
    ingest(store, path, None, Level.NONE)
    _measured(path.parent / "t.measured.json", workload(saxpy), written["code"])
    for verified, duplicates in ((1, 0), (0, 1)):
        summary = ingest(store, path, None, Level.NONE).summary
        assert (summary.verified, summary.duplicates) == (verified, duplicates)
    assert [t.statistics.mean_gain for t in store.transitions()] == [1.0]


def test_an_unknown_task_is_needed_above_the_compile_level_only(store: GraphStore, write: Write) -> None:
    path = write(line(step("tiling", "x[0] = 1;"), task="no such task"))
    assert ingest(store, path, ScriptedJudge()).summary.rejected == 1
    assert ingest(store, path, ScriptedJudge(), Level.COMPILE).summary.merged == 1


def test_without_a_task_the_summary_says_that_only_compiling_was_possible(store: GraphStore, write: Write) -> None:
    assert ingest(store, write(line(step("tiling", "x[0] = 1;"))), ScriptedJudge()).summary.compiled_only == 1


def _measured(path: Path, workload_hash: str, *codes: str) -> None:
    steps = [
        {
            "code": code_hash(code),
            "method": "m",
            "verdict": "passed",
            "level": "gpu",
            "seconds": 0.5 / (i + 1),
            "reference_seconds": 1.0,
        }
        for i, code in enumerate(codes)
    ]
    document = {
        "task": "t",
        "workload": workload_hash,
        "gpu": "NVIDIA H200",
        "driver": "580",
        "nvcc": "13.0",
        "date": "2026-01-01T00:00:00Z",
        "steps": steps,
    }
    path.write_text(json.dumps(document))


@pytest.fixture
def saxpy() -> Any:
    from verify import load_task

    return load_task("saxpy")


def test_measured_verdicts_are_attached_and_their_gain_reaches_the_graph(
    store: GraphStore, write: Write, saxpy: Any
) -> None:
    steps = [step("tiling", "x[0] = 1;", "saxpy"), step("unrolling", "x[0] = 2;", "saxpy")]
    path = write(line(*steps, task="saxpy"))
    _measured(path.parent / "t.measured.json", workload(saxpy), *(s["code"] for s in steps))
    judge = ScriptedJudge()
    summary = ingest(store, path, judge).summary
    assert (summary.measured, judge.asked) == (2, [])
    gains = {t.after: t.statistics.mean_gain for t in store.transitions()}
    assert gains == {"shared memory tiling": 1.0, "loop unrolling": 1.0}


@pytest.mark.parametrize("change", ["code", "task"])
def test_a_measurement_of_other_code_or_of_another_task_is_not_believed(
    store: GraphStore, write: Write, saxpy: Any, change: str
) -> None:
    written = step("tiling", "x[0] = 1;", "saxpy")
    path = write(line(written, task="saxpy"))
    code = written["code"] + " " if change == "code" else written["code"]
    _measured(path.parent / "t.measured.json", "another" if change == "task" else workload(saxpy), code)
    judge = ScriptedJudge()
    assert ingest(store, path, judge).summary.measured == 0 and len(judge.asked) == 1


def test_hashes_are_those_that_the_measuring_command_writes(saxpy: Any) -> None:
    from cudaeval import shipped

    assert workload(saxpy) == shipped.workload(saxpy)
    assert code_hash("é") == shipped.code_hash("é")


def test_a_damaged_measurement_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.measured.json").write_text('{"steps": [{}]}')
    with pytest.raises(InputError, match=r"t\.measured\.json"):
        find_measured(str(tmp_path / "t.jsonl"))


def test_the_journal_of_a_killed_run_spares_judging_again(
    store: GraphStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(
        line(step("tiling", "x[0] = 1;")), line(step("tiling", "x[0] = 2; /* timeout */"), step("padding", "x[0] = 9;"))
    )
    judge = ScriptedJudge()
    monkeypatch.setattr(type(store), "merge_trajectories", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        ingest(store, path, judge)
    monkeypatch.undo()
    assert len(judge.asked) == 3
    monkeypatch.setenv("REGRAPH_CACHE", str(path.parent / "cache"))
    again = ScriptedJudge()
    summary = ingest(store, path, again, resume=True).summary
    assert again.asked == [] and summary.merged == 2 and summary.verdicts == {"passed": 1, "timeout": 1}
    assert list((load().cache_folder / "ingest").glob("*.jsonl")) == []  # a whole run needs no journal


def test_a_journal_cut_by_a_kill_keeps_its_whole_lines(tmp_path: Path) -> None:
    verdict = Verdict(verdict=VerdictKind.PASSED, level=Level.COMPILE)
    journal = Journal(tmp_path, ("run",), resume=False)
    journal.add("a", [verdict])
    journal.add("b", [verdict, verdict])
    journal.path.write_bytes(journal.path.read_bytes()[:-7])
    resumed = Journal(tmp_path, ("run",), resume=True)
    assert resumed.find("a") == [verdict] and resumed.find("b") is None
    resumed.add("b", [verdict])
    assert Journal(tmp_path, ("run",), resume=True).find("b") == [verdict]
    assert Journal(tmp_path, ("run",), resume=False).find("a") is None


@pytest.mark.nvcc
def test_the_real_judge_compiles_and_refuses(write: Write) -> None:
    try:
        from verify import Judge

        Judge().__exit__(None, None, None)
    except Exception as error:
        pytest.skip(f"no compiler here: {error}")
    good = 'extern "C" void f(float* x, int n) { x[0] = n; }\n'
    path = write(
        line({"method": "tiling", "code": good}, {"method": "unrolling", "code": good.replace("= n", "= undeclared")})
    )
    result = CliRunner().invoke(
        regraph, ["ingest", "add", str(path), "--verify", "compile", "--store", "sqlite:///g.db", "--json"]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["verdicts"] == {"compile_error": 1, "passed": 1}


def test_a_store_that_goes_away_half_way_keeps_whole_batches(
    store: GraphStore, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(*(line(step("tiling", f"x[0] = {i};")) for i in range(10)))
    merge = type(store).merge_trajectories
    left = [2]

    def failing(self: GraphStore, *arguments: Any) -> Any:
        if not left[0]:
            raise StoreUnreachable("the server is away.", where=self.url)
        left[0] -= 1
        return merge(self, *arguments)

    monkeypatch.setenv("REGRAPH_INGEST__BATCH", "3")
    monkeypatch.setattr(type(store), "merge_trajectories", failing)
    arguments = ["ingest", "add", str(path), "--verify", "none", "--store", store.url]
    result = CliRunner().invoke(regraph, arguments)
    assert isinstance(result.exception, StoreUnreachable)
    assert store.counts().trajectories == 6 and store.check() == []
    monkeypatch.setattr(type(store), "merge_trajectories", merge)
    assert CliRunner().invoke(regraph, [*arguments, "--resume"]).exit_code == 0
    assert store.counts().trajectories == 10
