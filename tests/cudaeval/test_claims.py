"""Two processes' worth of judges that are asked the same at once."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cudaeval.claims import ClaimingJudge
from cudaeval.launch import select
from cudaeval.metrics import TIERS
from regraph_db.records import Level, Verdict, VerdictKind
from verify import load_task


class Remembering:
    """Like judges that share a cache on the disk: ``known`` is common, ``judged`` counts what was really judged."""

    settings = SimpleNamespace(jobs=2)

    def __init__(self, known: dict[str, Verdict], judged: list[str], both: threading.Barrier) -> None:
        self.known, self.judged, self.both = known, judged, both

    def judge(self, task: Any, source: str, level: Any, *, baseline: Any) -> Verdict:
        if source not in self.known:
            if "alone" not in source:
                self.both.wait(timeout=30)
            self.judged.append(source)
            self.known[source] = Verdict(verdict=VerdictKind.PASSED)
        return self.known[source]


def test_what_is_judged_elsewhere_is_waited_for_and_other_kernels_are_not(tmp_path: Path) -> None:
    known: dict[str, Verdict] = {}
    judged: list[str] = []
    both = threading.Barrier(2)
    judges = [ClaimingJudge(Remembering(known, judged, both), tmp_path) for _ in range(2)]  # type: ignore[arg-type]
    task = load_task("saxpy")
    same = [judge.submit(task, "alone", Level.GPU) for judge in judges for _ in range(2)]
    assert {future.result(timeout=30).verdict for future in same} == {VerdictKind.PASSED}
    assert judged == ["alone"]
    # Each waits for the other in the judge: two kernels must be judged side by side.
    apart = [judge.submit(task, f"kernel {number}", Level.GPU) for number, judge in enumerate(judges)]
    assert all(future.result(timeout=30).passed for future in apart)
    for judge in judges:
        judge.close()


def test_a_campaign_takes_a_task_of_each_tier_in_turn() -> None:
    tasks = select([], None, "test")
    assert len(tasks) >= 20
    assert [task.tier for task in tasks[:6]] == [*TIERS, *TIERS]
    assert [task.name for task in select(["sobel", "saxpy"], None, "test")] == ["sobel", "saxpy"]
