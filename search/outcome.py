"""The answer of a search: the best verified kernel, the path that led there, and the whole record."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from regraph_db.errors import RegraphError
from regraph_db.records import Attempt, Level, Search, Verdict
from regraph_db.store import GraphStore
from search.candidates import Judging
from search.progress import better, said_of, worth
from search.settings import SearchSettings
from verify import Task

log = logging.getLogger(__name__)

#: What an answer says about speed at the levels that measure none.
SPEED_NOTES = {
    Level.MODELLED: "speed modelled, not measured",
    Level.FUNCTIONAL: "speed not measured",
    Level.COMPILE: "neither results nor speed checked",
    Level.NONE: "nothing checked",
}


@dataclass(frozen=True)
class BestKernel:
    """A verified kernel and how it came about."""

    attempt: str  #: the attempt's id
    code: str
    verdict: Verdict
    speedup: float | None  #: baseline over candidate, in the search's own kind; ``None`` where speed is not known
    path: tuple[str, ...]  #: techniques from the start code on
    steps: tuple[Attempt, ...]  #: the attempts of the path, in order; the last one wrote ``code``


@dataclass(frozen=True)
class SearchOutcome:
    """What ``regraph search run`` prints, and every attempt."""

    search: str
    task: str
    strategy: str
    level: Level
    model: str
    seed: int
    budget: int
    calls: int
    best: BestKernel | None
    verdicts: dict[str, int]  #: attempts by verdict, or by outcome where nothing was judged
    seconds: dict[str, float]
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[str, ...] = ()  #: what a reader must know, e.g. that speed was not measured

    def document(self) -> dict[str, Any]:
        """The JSON form of ``search run --json``."""
        best = self.best
        return {
            "search": self.search,
            "task": self.task,
            "strategy": self.strategy,
            "level": str(self.level),
            "model": self.model,
            "seed": self.seed,
            "budget": self.budget,
            "calls": self.calls,
            "best": None
            if best is None
            else {
                "attempt": best.attempt,
                "code": best.code,
                "verdict": best.verdict.model_dump(mode="json"),
                "speedup": best.speedup,
                "path": list(best.path),
            },
            "verdicts": self.verdicts,
            "seconds": self.seconds,
            "notes": list(self.notes),
        }


def best_so_far(attempts: Iterable[Attempt]) -> list[float | None]:
    """After each call the best speedup until then (reward where the level knows no speed), ``None`` before the
    first."""
    curve: list[float | None] = []
    best: Attempt | None = None
    for attempt in attempts:
        if attempt.verdict is not None and attempt.verdict.passed and better(attempt, best):
            best = attempt
        curve.append(None if best is None else best.speedup if best.speedup is not None else best.reward)
    return curve


def conclude(
    store: GraphStore,
    search: str,
    task: Task,
    judge: Judging,
    settings: SearchSettings,
    *,
    baseline: str | None = None,
    seconds: Callable[[], dict[str, float]],
    notes: Sequence[str] = (),
) -> SearchOutcome:
    """Choose the answer, write it down, and let what was learnt flow back into the knowledge graph. Repeating it is
    safe."""
    record = store.search(search)
    attempts = tuple(store.attempts(search))
    passed = _distinct(attempt for attempt in attempts if attempt.verdict is not None and attempt.verdict.passed)
    ranked = sorted(passed, key=worth, reverse=True)
    again: dict[str, Verdict] = {}
    if record.level is Level.GPU and settings.answer == "retime" and ranked:
        again = _timed_again(ranked[: settings.retime], task, judge, baseline)
        ranked = _reranked(ranked[: settings.retime], again) or ranked
    best = ranked[0] if ranked else None
    summary = {
        "seconds": seconds(),
        "verdicts": dict(Counter(map(said_of, attempts))),
        "notes": [*_speed_note(record.level), *notes],
        "timed_again": {name: verdict.model_dump(mode="json") for name, verdict in again.items()},
    }
    store.finish_search(search, best_attempt=best.id if best else None, summary=summary)
    store.roll_up(search)
    return outcome_of(store, search)


def outcome_of(store: GraphStore, search: str) -> SearchOutcome:
    """The record of a search as it stands in the store, finished or not."""
    record = store.search(search)
    attempts = tuple(store.attempts(record.id))
    return SearchOutcome(
        search=record.id,
        task=record.task.name,
        strategy=record.strategy,
        level=record.level,
        model=record.model,
        seed=record.seed,
        budget=record.budget,
        calls=record.calls,
        best=_best(record, attempts),
        verdicts=dict(Counter(map(said_of, attempts))),
        seconds=dict(record.summary.get("seconds", {})),
        attempts=attempts,
        notes=tuple(record.summary.get("notes", _speed_note(record.level))),
    )


def _best(record: Search, attempts: Sequence[Attempt]) -> BestKernel | None:
    by_id = {attempt.id: attempt for attempt in attempts}
    best = by_id.get(record.best_attempt or "")
    if best is None:
        for attempt in attempts:
            if attempt.verdict is not None and attempt.verdict.passed and better(attempt, best):
                best = attempt
    if best is None or best.verdict is None:
        return None
    again = record.summary.get("timed_again", {}).get(best.id)
    verdict = Verdict.model_validate(again) if again else best.verdict
    speedup = verdict.speedup.median if again and verdict.speedup is not None else best.speedup
    steps = path_to(best, by_id)
    return BestKernel(
        best.id, best.code, verdict, speedup, tuple(step.technique for step in steps if step.technique), steps
    )


def path_to(attempt: Attempt, by_id: dict[str, Attempt]) -> tuple[Attempt, ...]:
    """The attempts whose codes led to ``attempt``, from the start code on."""
    steps = [attempt]
    seen = {attempt.id}
    while (parent := by_id.get(steps[-1].parent or "")) is not None and parent.id not in seen:
        steps.append(parent)
        seen.add(parent.id)
    return tuple(reversed(steps))


def _distinct(attempts: Iterable[Attempt]) -> list[Attempt]:
    """The first attempt of each code."""
    found: dict[str, Attempt] = {}
    for attempt in attempts:
        found.setdefault(attempt.code, attempt)
    return list(found.values())


def _timed_again(candidates: Sequence[Attempt], task: Task, judge: Judging, baseline: str | None) -> dict[str, Verdict]:
    """Fresh verdicts, each from a process of its own; a judge that fails leaves the first one standing."""
    again: dict[str, Verdict] = {}
    for attempt in candidates:
        try:
            again[attempt.id] = judge.submit(task, attempt.code, Level.GPU, baseline=baseline, fresh=True).result()
        except RegraphError as error:
            log.warning("a candidate could not be timed again: %s", error)
    return again


def _reranked(candidates: Sequence[Attempt], again: dict[str, Verdict]) -> list[Attempt]:
    """Candidates that passed again, by the new speedup."""

    def speed(attempt: Attempt) -> float:
        verdict = again.get(attempt.id)
        if verdict is None or verdict.speedup is None:
            return 0.0
        return verdict.speedup.median

    return sorted((a for a in candidates if a.id in again and again[a.id].passed), key=speed, reverse=True)


def _speed_note(level: Level) -> list[str]:
    return [SPEED_NOTES[level]] if level in SPEED_NOTES else []
