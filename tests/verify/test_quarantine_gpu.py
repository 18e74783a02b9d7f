"""The quarantine on a real GPU with the real compute-sanitizer; its logic is tested over a double elsewhere."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from regraph_db.records import Level, VerdictKind
from verify.gpu import Peaks
from verify.judge import Judge, best_level
from verify.quarantine import find_sanitizer
from verify.settings import VerifySettings
from verify.task import load_task

HERE = Path(__file__).parent
HONEST = HERE.parent / "hostile" / "benign" / "honest.cu"
#: A device so slow that every time is beyond belief.
SLOW = Peaks(bytes_per_second=1e3, flops_per_second=1e3, floor_seconds=100.0, l2=1 << 10)


@pytest.mark.gpu
def test_what_beats_the_bound_is_believed_only_after_compute_sanitizer(tmp_path: Path) -> None:
    settings = VerifySettings(timing_seconds=1.0)
    if best_level(settings) is not Level.GPU:
        pytest.skip("no GPU")
    task = load_task(HERE / "tasks" / "affine")
    with Judge(settings, cache_folder=tmp_path) as judge:
        judge._known_bench = dataclasses.replace(judge._bench(), peaks=SLOW)
        verdict = judge.judge(task, HONEST.read_text(), Level.GPU)
        there = find_sanitizer(judge._known_bench) is not None
    if there:
        assert verdict.passed and "verified again" in verdict.reason, verdict.reason
    else:
        assert verdict.verdict is VerdictKind.HARNESS_ERROR and "compute-sanitizer" in verdict.reason
