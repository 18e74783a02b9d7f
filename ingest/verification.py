"""Steps through the judge: many at once, each trajectory cut at its first failing step, which is kept with its
verdict."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ingest.journal import Journal
from ingest.measured import Measured
from regraph_db.errors import InternalFault, RegraphError
from regraph_db.records import Level, Step, Trajectory, Verdict, VerdictKind

if TYPE_CHECKING:
    from verify import Task


class Submits(Protocol):
    """The part of ``verify.Judge`` that is needed here."""

    def submit(self, task: Task | None, source: str, level: Level | None = None) -> Future[Verdict]: ...


@dataclass(frozen=True)
class Item:
    """A checked trajectory on its way in, with its task when that is known, its place and its measurements."""

    where: str
    trajectory: Trajectory
    task: Task | None
    measured: Measured | None = None


@dataclass(frozen=True)
class Verified:
    """A trajectory with verdicts, cut after its first failing step; ``fault`` when the judge itself failed."""

    item: Item
    trajectory: Trajectory
    measured: int = 0  #: steps whose verdict was measured before and not judged now
    fault: str = ""


@dataclass
class _UnderWay:
    item: Item
    known: list[Verdict | None]
    futures: list[Future[Verdict] | None]
    journalled: bool


class Verifier:
    """Judges trajectories at one level, in order, some of them at once.

    A step that was measured before (see :mod:`ingest.measured`) keeps that verdict. A step that the level cannot run is
    judged by compiling alone, and its verdict says so. Without a task only compiling is possible.
    """

    def __init__(self, judge: Submits | None, level: Level, journal: Journal, *, in_flight: int) -> None:
        """``judge`` may be ``None`` at level ``none``."""
        self._judge = judge
        self._level = level
        self._journal = journal
        self._in_flight = in_flight

    def verify(self, items: Iterable[Item]) -> Iterator[Verified]:
        """The trajectories with verdicts, in the order of ``items``; at most ``in_flight`` are held."""
        waiting: deque[_UnderWay] = deque()
        for item in items:
            waiting.append(self._begin(item))
            if len(waiting) >= self._in_flight:
                yield self._finish(waiting.popleft())
        while waiting:
            yield self._finish(waiting.popleft())

    def _begin(self, item: Item) -> _UnderWay:
        steps = item.trajectory.steps
        known: list[Verdict | None] = [None] * len(steps)
        if item.measured is not None and item.task is not None:
            known = item.measured.verdicts(item.task, [step.code for step in steps])
        journalled = self._journal.find(item.trajectory.id)
        if journalled is not None:
            return _UnderWay(item, [*journalled, *known[len(journalled) :]], [None] * len(steps), True)
        futures: list[Future[Verdict] | None] = [None] * len(steps)
        if self._judge is not None and self._level is not Level.NONE:
            futures = [
                None if old else self._judge.submit(item.task, step.code, self._level)
                for step, old in zip(steps, known, strict=True)
            ]
        return _UnderWay(item, known, futures, False)

    def _finish(self, work: _UnderWay) -> Verified:
        steps: list[Step] = []
        measured = 0
        for step, known, future in zip(work.item.trajectory.steps, work.known, work.futures, strict=True):
            verdict = known
            if verdict is None and future is not None:
                try:
                    verdict = self._settled(work.item, step, future.result())
                except RegraphError as error:
                    return self._faulty(work, str(error))
            elif verdict is not None and not work.journalled:
                measured += 1
            if verdict is not None and verdict.verdict is VerdictKind.HARNESS_ERROR:
                return self._faulty(work, verdict.reason)
            steps.append(step.model_copy(update={"verdict": verdict}))
            if verdict is not None and not verdict.passed and verdict.verdict is not VerdictKind.UNSUPPORTED:
                break
        for future in work.futures[len(steps) :]:
            if future is not None:
                future.cancel()
        if self._level is not Level.NONE:
            self._journal.add(work.item.trajectory.id, [_present(step) for step in steps])
        trajectory = work.item.trajectory
        whole = trajectory.id if len(steps) < len(trajectory.steps) else trajectory.whole
        return Verified(work.item, trajectory.model_copy(update={"steps": tuple(steps), "whole": whole}), measured)

    def _settled(self, item: Item, step: Step, verdict: Verdict) -> Verdict:
        """The verdict; where the level cannot run the code, the compiler's, with what was seen."""
        if verdict.verdict is not VerdictKind.UNSUPPORTED or self._judge is None:
            return verdict
        compiled = self._judge.submit(item.task, step.code, Level.COMPILE).result()
        return compiled.model_copy(
            update={"reason": compiled.reason or f"compiled only; {verdict.level} cannot run it: {verdict.reason}"}
        )

    def _faulty(self, work: _UnderWay, reason: str) -> Verified:
        for future in work.futures:
            if future is not None:
                future.cancel()
        return Verified(
            work.item, work.item.trajectory, fault=f"the judge failed, which says nothing of the code: {reason}"
        )


def _present(step: Step) -> Verdict:
    if step.verdict is None:
        raise InternalFault("a judged step has no verdict.")
    return step.verdict
