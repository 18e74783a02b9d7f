"""One runner: begins rollouts, lets the model write, the judge judge, and the store remember.

A runner interleaves a few rollouts in a fixed order: while one candidate is judged, the next is written. It never
waits for whichever is ready first, so one runner with one seed walks one path. A killed runner loses its unfinished
rollouts, which its lease gives back; nothing of the search lives in the process.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from regraph_db.errors import EnvironmentFault, RegraphError
from regraph_db.records import (
    Attempt,
    Level,
    RolloutResult,
    Runner,
    Search,
    SearchStatus,
    Verdict,
    VerdictKind,
    content_id,
)
from regraph_db.records import Rollout as RolloutRecord
from regraph_db.store import GraphStore
from search.answer import Outcome, Parsed, parse
from search.core import Halted, Walked
from search.core.expansion import technique_of
from search.generators import Answer, Generator, GeneratorFault, Sampling
from search.heartbeat import BEATS, Heartbeat
from search.patience import answer
from search.progress import Progress, Watcher
from search.scoring import gains, reward_of, speedup_of
from search.seconds import Stopwatch
from search.settings import SearchSettings
from search.strategies import Ask, Plan, Strategy
from search.strategies.strategy import Rollout
from verify import Task

log = logging.getLogger(__name__)

#: Rollouts in a row that asked for nothing, after which the search has nowhere left to go.
IDLE_ROLLOUTS = 3


class Judging(Protocol):
    """What a runner needs of the judge; :class:`verify.Judge` is one."""

    def submit(
        self,
        task: Task | None,
        source: str,
        level: Level | None = None,
        *,
        baseline: str | None = None,
        fresh: bool = False,
    ) -> Future[Verdict]: ...


@dataclass
class _Pending:
    """A candidate with the judge, or one that needs none."""

    ask: Ask
    parsed: Parsed
    generate_seconds: float
    sent_at: float
    verdict: Future[Verdict] | None
    judged_at: float | None = None


@dataclass
class _Slot:
    """One rollout under way."""

    id: str
    plan: Plan
    granted: int
    rollout: Rollout
    seeds: Random
    pending: list[_Pending] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    path: list[str] = field(default_factory=list)  #: states, those refused or failed left out
    calls: int = 0  #: generator calls spent, those whose candidates are still with the judge included
    walked: Walked | None = None


class SearchRunner:
    """Works on one search until its budget is spent."""

    def __init__(
        self,
        store: GraphStore,
        search: Search,
        task: Task,
        strategy: Strategy,
        generator: Generator,
        judge: Judging,
        settings: SearchSettings,
        *,
        runner: Runner,
        stream: str = "0",
        baseline: str | None = None,
        baseline_seconds: float | None = None,
        watch: Stopwatch | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        """``stream`` parts the random numbers of runners of one search; the same stream walks the same path.
        ``baseline`` and ``baseline_seconds`` are the user's own kernel and its modelled seconds, where it has any."""
        self.store = store
        self.search = search
        self.task = task
        self.strategy = strategy
        self.generator = generator
        self.judge = judge
        self.settings = settings
        self.runner = runner
        self.stream = stream
        self.baseline = baseline
        self.baseline_seconds = baseline_seconds
        self.watch = watch or Stopwatch()
        self.watcher = watcher
        self.progress = Progress(search.budget, search.calls)
        self.shortened: dict[str, int] = {}
        self._begun = 0
        self._idle = 0
        self._failed_in_a_row = 0
        self._best_at = 0

    # -- the whole ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Spend the budget. On an interruption or an error the unfinished rollouts are given back with what they
        have."""
        slots: deque[_Slot] = deque()
        self.store.join(self.runner)
        with Heartbeat(self.store, self.runner):
            try:
                with self.watch.measuring("search"):
                    self._loop(slots)
            except BaseException:
                for slot in slots:
                    self._give_back(slot)
                raise

    def _loop(self, slots: deque[_Slot]) -> None:
        width = self.settings.overlap if self.strategy.interleaves else 1
        while True:
            while len(slots) < width and not self._done():
                slot = self._begin()
                if slot is None:
                    break
                slots.append(slot)
                self._advance(slot, ())
                if slot.walked is not None:
                    self._finish(slots.pop())
            if not slots:
                if self._done() or self._spent():
                    return
                continue
            slot = slots[0]
            self._advance(slot, self._judged(slot))
            slots.popleft()
            if slot.walked is not None:
                self._finish(slot)
            else:
                slots.append(slot)

    def _done(self) -> bool:
        """Whether this runner stops before the budget is spent."""
        stop = self.settings.early_stop
        idle = self._idle >= IDLE_ROLLOUTS
        return idle or bool(stop and self.progress.own_calls - self._best_at >= stop)

    def _spent(self) -> bool:
        """Whether the budget is spent; else other runners hold the rest of it, and this one waits a little."""
        search = self.store.search(self.search.id)
        self.progress.calls = search.calls
        if search.calls >= search.budget or search.status is SearchStatus.FINISHED:
            return True
        if search.reserved:
            self.store.reclaim()
            time.sleep(min(1.0, self.runner.lease / BEATS / 2))
        return False

    # -- one rollout -------------------------------------------------------------------------------

    def _begin(self) -> _Slot | None:
        snapshot = self.store.snapshot(self.search.id)
        self.progress.calls = snapshot.search.calls
        place = snapshot.search.calls + snapshot.search.reserved
        free = snapshot.search.budget - place
        if free <= 0 or snapshot.search.status is SearchStatus.FINISHED:
            return None
        name = f"{self.search.seed}/{self.stream}/{place}"
        plan = self.strategy.plan(snapshot, Random(f"{name}/policy"))
        self._begun += 1
        rollout = content_id("rollout", self.search.id, self.runner.id, self._begun)
        # Half of what is free is left to the others: few rollouts spend all that they reserve, and at the end of a
        # budget the first ones would keep every other runner waiting.
        calls = min(plan.calls, -(-free // 2)) if self.strategy.interleaves else plan.calls
        granted = self.store.begin_rollout(
            RolloutRecord(id=rollout, search=self.search.id, runner=self.runner.id, path=plan.path, calls=calls)
        )
        if not granted:
            return None
        seeds = Random(f"{name}/answers")
        return _Slot(rollout, plan, granted, plan.rollout(granted), seeds, path=[target for _, target in plan.path])

    def _advance(self, slot: _Slot, attempts: Sequence[Attempt]) -> None:
        """Hand attempts to the rollout; write what it asks for next, and pass it to the judge."""
        try:
            asks = slot.rollout.send(attempts) if attempts else next(slot.rollout)
        except StopIteration as end:
            slot.walked = end.value
            return
        for ask in asks:
            slot.calls += 1
            slot.pending.append(self._ask(ask, slot.seeds.getrandbits(31)))

    def _ask(self, ask: Ask, seed: int) -> _Pending:
        settings = self.settings
        sampling = Sampling(seed, settings.temperature, settings.top_p, settings.max_tokens, settings.generator_seconds)
        began = time.monotonic()
        try:
            with self.watch.measuring("generate"):
                written = answer(self.generator, ask.prompt, sampling, retries=settings.retries)
        except GeneratorFault as error:
            log.warning("the generator failed: %s", error)
            self.progress.note = f"the generator failed: {error}"
            return _Pending(ask, Parsed(Outcome.FAILED), time.monotonic() - began, began, None)
        parsed = self._parsed(ask, written)
        seconds = time.monotonic() - began
        verdict = None
        if parsed.outcome is Outcome.ANSWERED:
            verdict = self._submit(parsed.code)
        pending = _Pending(ask, parsed, seconds, time.monotonic(), verdict)
        if verdict is not None:
            verdict.add_done_callback(lambda _: setattr(pending, "judged_at", time.monotonic()))
        return pending

    def _parsed(self, ask: Ask, written: Answer) -> Parsed:
        if written.left_out:
            self.shortened[written.left_out] = self.shortened.get(written.left_out, 0) + 1
            self.progress.note = f"{written.left_out}: the prompt did not fit the context"
            log.info("%s: the prompt did not fit the model's context", written.left_out)
        text = written.text
        cut = written.cut
        if len(text) > self.settings.answer_limit:
            text, cut = text[: self.settings.answer_limit], True
        return parse(text, given=ask.given, cut=cut)

    def _submit(self, code: str, *, fresh: bool = False) -> Future[Verdict]:
        return self.judge.submit(self.task, code, self.search.level, baseline=self.baseline, fresh=fresh)

    def _judged(self, slot: _Slot) -> list[Attempt]:
        """Wait for the judge on everything that the slot has with it."""
        attempts = []
        while slot.pending:
            attempt = self._attempt(slot, slot.pending[0])
            slot.pending.pop(0)
            slot.attempts.append(attempt)
            attempts.append(attempt)
            self._tell(slot, attempt)
        if self._failed_in_a_row >= self.settings.failures:
            raise EnvironmentFault(
                f"{self._failed_in_a_row} calls in a row failed ({self.progress.note or 'see the log'}).",
                where=f"search {self.search.id}",
                fix=f"Mend it and go on with `regraph search resume {self.search.id[:8]}`.",
            )
        return attempts

    def _attempt(self, slot: _Slot, pending: _Pending) -> Attempt:
        verdict = self._verdict(pending) if pending.verdict is not None else None
        failed = pending.parsed.outcome is Outcome.FAILED or (
            verdict is not None and verdict.verdict is VerdictKind.HARNESS_ERROR
        )
        self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
        ask = pending.ask
        speedup = speedup_of(verdict, self.search.level, self.baseline_seconds)
        index = len(slot.attempts)
        return Attempt(
            id=content_id("attempt", slot.id, index),
            search=self.search.id,
            rollout=slot.id,
            index=index,
            source=ask.source,
            target=ask.target,
            technique=ask.technique,
            example=ask.example,
            parent=ask.parent,
            outcome=pending.parsed.outcome,
            code=pending.parsed.code,
            verdict=verdict,
            reward=reward_of(pending.parsed.outcome, verdict, speedup, self.settings, ask.guide),
            speedup=speedup,
            generate_seconds=pending.generate_seconds,
            verify_seconds=max(0.0, (pending.judged_at or time.monotonic()) - pending.sent_at) if verdict else 0.0,
        )

    def _verdict(self, pending: _Pending) -> Verdict:
        assert pending.verdict is not None
        with self.watch.measuring("verify"):
            verdict = pending.verdict.result()
            for _ in range(self.settings.retries):
                if verdict.verdict is not VerdictKind.HARNESS_ERROR:
                    break
                log.warning("the judge failed and is asked again: %s", verdict.reason)
                verdict = self._submit(pending.parsed.code, fresh=True).result()
        if verdict.verdict is VerdictKind.HARNESS_ERROR:
            self.progress.note = f"the judge failed: {verdict.reason}"
        return verdict

    def _tell(self, slot: _Slot, attempt: Attempt) -> None:
        before = self.progress.best
        self.progress.count(attempt)
        if attempt.target is not None:
            while slot.path and slot.path[-1] != attempt.source:
                slot.path.pop()
            slot.path.append(attempt.target)
        self.progress.path = tuple(technique_of(state) for state in slot.path)
        if self.progress.best is attempt and gains(attempt, before, self.settings.early_stop_gain):
            self._best_at = self.progress.own_calls
        if self.watcher is not None:
            self.watcher(self.progress)

    # -- its end -----------------------------------------------------------------------------------

    def _finish(self, slot: _Slot) -> None:
        walked = slot.walked or Walked()
        self._idle = 0 if slot.calls else self._idle + 1
        self.store.finish_rollout(
            RolloutResult(
                rollout=slot.id,
                search=self.search.id,
                returns=walked.returns,
                states=walked.states,
                edges=walked.edges,
                attempts=tuple(slot.attempts),
                calls=slot.calls,
                returned_at_nodes=walked.returned_at_nodes,
            )
        )

    def _give_back(self, slot: _Slot) -> None:
        """End an interrupted rollout: its judged attempts are kept and paid for, and what they taught is written."""
        slot.walked = Walked()
        try:
            slot.rollout.throw(Halted())
        except StopIteration as end:
            slot.walked = end.value
        except Halted:
            pass
        finally:
            slot.rollout.close()
        for pending in slot.pending:
            if pending.verdict is not None:
                pending.verdict.cancel()
        slot.calls = len(slot.attempts)
        try:
            self._finish(slot)
        except RegraphError as error:
            log.warning("a rollout could not be given back; its lease will: %s", error)
