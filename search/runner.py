"""One runner: begins rollouts, has their candidates written and judged, and lets the store remember.

A runner interleaves a few rollouts in a fixed order: while one candidate is judged, and while the store keeps what came
of it, the next is written. It never waits for whichever is ready first, so one runner with one seed walks one path. A
killed runner loses its unfinished rollouts, which its lease gives back; nothing of the search lives in the process.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from regraph_db.errors import RegraphError
from regraph_db.records import Attempt, RolloutResult, Runner, Search, SearchStatus, content_id
from regraph_db.records import Rollout as RolloutRecord
from regraph_db.store import GraphStore
from search.candidates import Candidate, Workshop
from search.core import Halted, Walked
from search.core.expansion import technique_of
from search.heartbeat import BEATS, Heartbeat
from search.progress import Watcher
from search.scoring import gains
from search.settings import SearchSettings
from search.strategies import Strategy
from search.strategies.strategy import Rollout

log = logging.getLogger(__name__)

#: Rollouts in a row that asked for nothing, after which the search has nowhere left to go.
IDLE_ROLLOUTS = 3


@dataclass(eq=False)
class _Slot:
    """One rollout under way."""

    id: str
    rollout: Rollout
    seeds: Random
    pending: deque[Candidate] = field(default_factory=deque)
    attempts: list[Attempt] = field(default_factory=list)
    path: list[str] = field(default_factory=list)  #: states, those refused or failed left out
    calls: int = 0  #: generator calls spent, those whose candidates are still with the model or the judge included
    walked: Walked | None = None  #: what it writes, once it has ended


class SearchRunner:
    """Works on one search until its budget is spent."""

    def __init__(
        self,
        store: GraphStore,
        search: Search,
        strategy: Strategy,
        workshop: Workshop,
        settings: SearchSettings,
        *,
        runner: Runner,
        stream: str = "0",
        watcher: Watcher | None = None,
    ) -> None:
        """``stream`` parts the random numbers of runners of one search; the same stream walks the same path."""
        self.store = store
        self.search = search
        self.strategy = strategy
        self.workshop = workshop
        self.settings = settings
        self.runner = runner
        self.stream = stream
        self.watcher = watcher
        self.progress = workshop.progress
        self._slots: deque[_Slot] = deque()
        self._begun = 0
        self._idle = 0
        self._best_at = 0
        self._all_reserved = False

    # -- the whole ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Spend the budget. On an interruption or an error the unfinished rollouts are given back with what they
        have."""
        self.store.join(self.runner)
        if self.watcher is not None:
            self.watcher(self.progress)
        with Heartbeat(self.store, self.runner), self.workshop:
            try:
                with self.workshop.watch.measuring("search"):
                    self._work()
            except BaseException:
                for slot in list(self._slots):
                    self._give_back(slot)
                raise

    def _work(self) -> None:
        while True:
            self._fill()
            if self._slots:
                slot = self._slots[0]
                self._advance(slot, self._judged(slot))
                if slot.walked is None:
                    self._slots.rotate(-1)
            elif self._done() or self._spent():
                return

    def _fill(self) -> None:
        """Begin as many rollouts as this runner interleaves, as long as there are calls for them."""
        width = self.settings.overlap if self.strategy.interleaves else 1
        while len(self._slots) < width and not (self._all_reserved or self._done()):
            slot = self._begin()
            if slot is None:
                self._all_reserved = True
            else:
                self._slots.append(slot)
                self._advance(slot, ())

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
            self.progress.doing = "other runners hold the rest of the budget"
            self.store.reclaim()
            with self.workshop.watch.measuring("wait"):
                time.sleep(min(1.0, self.runner.lease / BEATS / 2))
        self._all_reserved = False
        return False

    # -- one rollout -------------------------------------------------------------------------------

    def _begin(self) -> _Slot | None:
        """A rollout that the store granted calls for; ``None`` where none are free."""
        snapshot = self.store.snapshot(self.search.id)
        self.progress.calls = snapshot.search.calls
        place = snapshot.search.calls + snapshot.search.reserved
        if place >= snapshot.search.budget or snapshot.search.status is SearchStatus.FINISHED:
            return None
        name = f"{self.search.seed}/{self.stream}/{place}"
        plan = self.strategy.plan(snapshot, Random(f"{name}/policy"))
        self._begun += 1
        rollout = content_id("rollout", self.search.id, self.runner.id, self._begun)
        granted = self.store.begin_rollout(
            RolloutRecord(id=rollout, search=self.search.id, runner=self.runner.id, path=plan.path, calls=plan.calls)
        )
        if not granted:
            return None
        path = [target for _, target in plan.path]
        return _Slot(rollout, plan.rollout(granted), Random(f"{name}/answers"), path=path)

    def _advance(self, slot: _Slot, attempts: Sequence[Attempt]) -> None:
        """Hand attempts to the rollout and pass on what it wants written next; finish it when it wants nothing."""
        try:
            asks = slot.rollout.send(attempts) if attempts else next(slot.rollout)
        except StopIteration as end:
            slot.walked = end.value
            self._finish(slot)
            return
        for ask in asks:
            slot.calls += 1
            slot.pending.append(self.workshop.write(ask, slot.seeds.getrandbits(31)))

    def _judged(self, slot: _Slot) -> list[Attempt]:
        """Wait for the model and the judge on everything that the slot has with them."""
        first = len(slot.attempts)
        while slot.pending:
            slot.attempts.append(self.workshop.attempt(slot.pending[0], slot.id, len(slot.attempts)))
            slot.pending.popleft()
            self._tell(slot, slot.attempts[-1])
        self.workshop.refuse_to_go_on()
        return slot.attempts[first:]

    def _tell(self, slot: _Slot, attempt: Attempt) -> None:
        before = self.progress.best
        self.progress.count(attempt)
        if attempt.target is not None:
            while slot.path and slot.path[-1] != attempt.source:
                slot.path.pop()
            slot.path.append(attempt.target)
        self.progress.path = tuple(technique_of(state) for state in slot.path)
        if self.progress.best is attempt:
            self.progress.best_path = self.progress.path
            if gains(attempt, before, self.settings.early_stop_gain):
                self._best_at = self.progress.own_calls
        if self.watcher is not None:
            self.watcher(self.progress)

    # -- its end -----------------------------------------------------------------------------------

    def _finish(self, slot: _Slot) -> None:
        """Write what a rollout brought. Until the store has it the slot is kept, to be given back; twice is once."""
        walked = slot.walked or Walked()
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
        self._slots.remove(slot)
        self._idle = 0 if slot.calls else self._idle + 1
        self._all_reserved = False

    def _give_back(self, slot: _Slot) -> None:
        """End an interrupted rollout: its judged attempts are kept and paid for, and what they taught is written."""
        if slot.walked is None:
            slot.walked = Walked()
            try:
                slot.rollout.throw(Halted())
            except StopIteration as end:
                slot.walked = end.value
            except Halted:
                pass
            finally:
                slot.rollout.close()
        for candidate in slot.pending:
            candidate.drop()
        slot.calls = len(slot.attempts)
        try:
            self._finish(slot)
        except RegraphError as error:
            log.warning("a rollout could not be given back; its lease will: %s", error)
