"""One judgement for what several processes submit at the same time.

The judge remembers its verdicts on the disk, but two processes that submit one kernel at once would both judge it. A
campaign's processes do that all the time: six strategies with one model begin on a task with the same answers.
"""

from __future__ import annotations

import fcntl
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from regraph_db.records import Level, Verdict, content_id

if TYPE_CHECKING:
    from verify import Judge, Task


class ClaimingJudge:
    """A judge that waits while another process judges the same; then the verdict is known."""

    def __init__(self, judge: Judge, folder: Path) -> None:
        """``folder`` is shared by the processes; one empty file a kernel is left in it."""
        self._judge = judge
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._pool = ThreadPoolExecutor(judge.settings.jobs, thread_name_prefix="claim")

    def submit(
        self,
        task: Task | None,
        source: str,
        level: Level | None = None,
        *,
        baseline: str | None = None,
        fresh: bool = False,
    ) -> Future[Verdict]:
        """As :meth:`verify.Judge.submit`; what is to be judged afresh is nobody else's business."""
        if fresh:
            return self._judge.submit(task, source, level, baseline=baseline, fresh=True)
        return self._pool.submit(self._judged, task, source, level, baseline)

    def _judged(self, task: Task | None, source: str, level: Level | None, baseline: str | None) -> Verdict:
        claim = self._folder / content_id("claim", source, task.hash if task else "", level, baseline or "")
        with claim.open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # given up when the process dies, however it dies
            return self._judge.judge(task, source, level, baseline=baseline)

    def close(self) -> None:
        """Wait for what is under way."""
        self._pool.shutdown(cancel_futures=True)
