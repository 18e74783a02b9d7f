"""Measuring through a stand-in for the judge: what is written, skipped and refused."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import Future
from pathlib import Path

import pytest

from cudaeval.measure import measure
from cudaeval.shipped import code_hash, load_one, measured_file, read_measured, read_trajectories, staleness
from regraph_db.errors import InputError
from regraph_db.records import Evidence, Interval, Level, Verdict, VerdictKind
from verify import load_task
from verify.task import Task


class Scripted:
    """Answers like a judge on a GPU; code with a marked word gets the verdict that the word names."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def submit(self, task: Task | None, source: str, level: Level | None = None) -> Future[Verdict]:
        assert level is Level.GPU
        self.seen.append(source)
        kind = next((k for k in VerdictKind if k.value in source), VerdictKind.PASSED)
        future: Future[Verdict] = Future()
        passed = kind is VerdictKind.PASSED
        future.set_result(
            Verdict(
                verdict=kind,
                reason="" if passed else "as the code asks",
                level=Level.GPU,
                candidate_seconds=1e-4 / len(self.seen) if passed else None,
                baseline_seconds=1e-2 if passed else None,
                speedup=Interval(median=100, low=90, high=110) if passed else None,
                evidence=Evidence(gpu="NVIDIA H200", driver="580.1", nvcc="13.0.88", samples=20 if passed else 0),
            )
        )
        return future


def write(folder: Path, *codes: str) -> None:
    steps = [{"think": "", "method": f"method {i}", "detail": "", "code": code} for i, code in enumerate(codes)]
    line = json.dumps({"task": "saxpy", "author": "a test", "steps": steps})
    (folder / "saxpy.jsonl").write_text(line + "\n", encoding="utf-8")


def run(folder: Path, judge: Scripted, **options: bool) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
    outcome = measure(["saxpy"], judge, folder=folder, **options)  # type: ignore[arg-type]
    return outcome.written, outcome.kept, outcome.broken


def test_every_step_is_written_with_its_hash_and_figures(tmp_path: Path) -> None:
    write(tmp_path, "first", "second: wrong_result")
    assert run(tmp_path, Scripted()) == (("saxpy",), (), {})
    measured = read_measured(measured_file("saxpy", tmp_path))
    assert measured is not None
    assert [s.verdict for s in measured.steps] == [VerdictKind.PASSED, VerdictKind.WRONG_RESULT]
    assert measured.steps[0].code == code_hash("first")
    assert measured.steps[0].interval == pytest.approx((1e-2 / 110, 1e-2 / 90))
    assert (measured.gpu, measured.nvcc) == ("NVIDIA H200", "13.0.88")
    assert measured.best is measured.steps[0]


def test_what_is_measured_is_skipped_and_what_changed_is_not(tmp_path: Path) -> None:
    write(tmp_path, "first")
    judge = Scripted()
    run(tmp_path, judge)
    assert run(tmp_path, judge) == ((), ("saxpy",), {})
    assert len(judge.seen) == 1
    write(tmp_path, "other")
    assert run(tmp_path, judge)[0] == ("saxpy",)
    assert run(tmp_path, judge, again=True)[0] == ("saxpy",)
    assert judge.seen == ["first", "other", "other"]


def test_equal_code_in_two_steps_is_recorded_twice(tmp_path: Path) -> None:
    write(tmp_path, "same", "same")
    run(tmp_path, Scripted())
    measured = read_measured(measured_file("saxpy", tmp_path))
    assert measured is not None and measured.steps[0].code == measured.steps[1].code


def test_a_failing_judge_writes_nothing(tmp_path: Path) -> None:
    write(tmp_path, "fine", "harness_error")
    written, _, broken = run(tmp_path, Scripted())
    assert written == () and broken == {"saxpy": "step 2: as the code asks"}
    assert read_measured(measured_file("saxpy", tmp_path)) is None


def test_staleness_names_what_changed(tmp_path: Path) -> None:
    write(tmp_path, "first", "second")
    run(tmp_path, Scripted())
    measured = read_measured(measured_file("saxpy", tmp_path))
    assert measured is not None
    task = load_task("saxpy")
    (written,) = read_trajectories(tmp_path / "saxpy.jsonl")
    assert staleness(measured, written, task) == ""
    slower = dataclasses.replace(task, reference=task.reference + "\n")
    assert "reference" in staleness(measured, written, slower)
    write(tmp_path, "first", "changed")
    assert "step 2" in staleness(measured, read_trajectories(tmp_path / "saxpy.jsonl")[0], task)
    write(tmp_path, "first")
    assert "2 steps" in staleness(measured, read_trajectories(tmp_path / "saxpy.jsonl")[0], task)


STEP = {"think": "", "method": "tiling", "detail": "", "code": "x"}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('{"task": ', ":2: not JSON"),
        ("[1]", ":2: a JSON object"),
        (json.dumps({"task": "saxpy", "steps": []}), ":2, field `steps`"),
        (json.dumps({"task": "saxpy", "steps": [{**STEP, "method": " "}]}), ":2, field `steps.0.method`"),
        (json.dumps({"task": "saxpy", "steps": [STEP, {**STEP, "code": ""}]}), ":2, field `steps.1.code`"),
        (json.dumps({"task": "saxpy", "steps": [STEP], "colour": 1}), ":2, field `colour`"),
    ],
)
def test_broken_lines_are_named_by_file_line_and_field(tmp_path: Path, line: str, wanted: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(json.dumps({"task": "saxpy", "steps": [STEP]}) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_trajectories(file)
    assert f"{file}{wanted}" in str(caught.value)


def test_an_empty_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="no trajectory"):
        read_trajectories(tmp_path / "empty.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        read_trajectories(tmp_path / "missing.jsonl")


def test_a_trajectory_of_an_unknown_task_is_named_by_file_line_and_field(tmp_path: Path) -> None:
    (tmp_path / "nope.jsonl").write_text(json.dumps({"task": "nope", "steps": [STEP]}) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"nope\.jsonl:1, field `task`: no task is called `nope`"):
        load_one("nope", tmp_path)
    with pytest.raises(InputError, match="no trajectory for `other`"):
        load_one("other", tmp_path)
