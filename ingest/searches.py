"""What a search found, as a trajectory: the graph learns from its own searches."""

from __future__ import annotations

from regraph_db.errors import InputError
from regraph_db.records import Attempt, Level, Step, Trajectory
from regraph_db.store import GraphStore

_STEPS_AT_MOST = 1000


def found_trajectory(store: GraphStore, search: str) -> Trajectory | None:
    """The verified path to the search's answer (or to its fastest correct kernel while it runs); its author is the
    model.

    ``None`` when no kernel passed, or none was faster than the code that the search began with. Raises
    :class:`~regraph_db.errors.NotFound` for an unknown search, :class:`InputError` when its steps name no techniques.
    """
    record = store.search(search)
    passed = {
        attempt.id: attempt
        for attempt in store.attempts(record.id)
        if attempt.verdict is not None and attempt.verdict.passed
    }
    best = passed.get(record.best_attempt or "") or max(passed.values(), key=_speed, default=None)
    if best is None or (record.level is not Level.FUNCTIONAL and _speed(best) <= 1.0):
        return None
    steps: list[Step] = []
    attempt: Attempt | None = best
    while attempt is not None and len(steps) < _STEPS_AT_MOST:
        if not attempt.technique:
            raise InputError(
                f"the steps of a `{record.strategy}` search name no techniques.",
                where=record.id,
                fix="Ingest a search that walked the graph (mcgs, random).",
            )
        steps.append(Step(method=attempt.technique, code=attempt.code, verdict=attempt.verdict))
        attempt = passed.get(attempt.parent) if attempt.parent else None
    return Trajectory(
        task=record.task.name,
        author=record.model or "unknown model",
        source=record.start_code,
        steps=tuple(reversed(steps)),
        search=record.id,
    )


def _speed(attempt: Attempt) -> float:
    return attempt.speedup or 0.0
