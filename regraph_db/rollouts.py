"""What a finished rollout adds, worked out before any lock is taken: the pure half that every store shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from regraph_db.derive import RolledUp, micros
from regraph_db.errors import InputError, NotFound
from regraph_db.records import Attempt, RolloutResult, Search


@dataclass
class Increment:
    """What a rollout adds to one edge."""

    visits: int = 0
    value_sum: float = 0.0
    value_sq_sum: float = 0.0
    best: float | None = None
    refusals: int = 0


def edge_increments(result: RolloutResult) -> dict[tuple[str, str], Increment]:
    """The rollout's returns by edge (source, target)."""
    increments: dict[tuple[str, str], Increment] = {}
    for one in result.returns:
        more = increments.setdefault((one.source, one.target), Increment())
        more.refusals += one.refusals
        if one.value is not None:
            more.visits += 1
            more.value_sum += one.value
            more.value_sq_sum += one.value * one.value
            more.best = one.value if more.best is None else max(more.best, one.value)
    return increments


def node_increments(result: RolloutResult) -> dict[str, tuple[int, float]]:
    """(visits, sum of returns) by state, for node counters."""
    increments: dict[str, tuple[int, float]] = {}
    for state, value in result.returned_at_nodes:
        visits, total = increments.get(state, (0, 0.0))
        increments[state] = (visits + 1, total + value)
    return increments


def best_by_state(attempts: Iterable[Attempt]) -> dict[str, tuple[str, float | None]]:
    """(attempt, speedup) of the best passed attempt that arrived at each state; the first one where speeds tie.

    A speedup of ``None`` (a level that measures none) is worth less than any speedup and more than nothing.
    """
    best: dict[str, tuple[str, float | None]] = {}
    for attempt in attempts:
        if attempt.target is None or attempt.verdict is None or not attempt.verdict.passed:
            continue
        known = best.get(attempt.target)
        if known is None or (attempt.speedup or 0.0) > (known[1] or 0.0):
            best[attempt.target] = (attempt.id, attempt.speedup)
    return best


def refuse_strays(result: RolloutResult) -> None:
    """Raise :class:`InputError` when an attempt of ``result`` belongs to another search."""
    for attempt in result.attempts:
        if attempt.search != result.search:
            raise InputError(
                f"belongs to the search {attempt.search}.",
                where=f"attempt {attempt.id} of rollout {result.rollout}",
            )


def rolled_up_edges(search: Search, edges: Iterable[tuple[str, str, int, float]]) -> list[RolledUp]:
    """A search's returns by transition, from (technique before, after, visits, sum of returns) of each walked edge."""
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for before, after, visits, value_sum in edges:
        count, total = sums.get((before, after), (0, 0))
        sums[before, after] = (count + visits, total + micros(value_sum))
    return [
        RolledUp(
            search=search.id,
            before=before,
            after=after,
            task=search.task.name,
            level=search.level,
            count=count,
            micros=total,
        )
        for (before, after), (count, total) in sums.items()
    ]


def no_such(kind: str, name: str, where: str = "", *, fix: str = "") -> NotFound:
    """The error for a name that the graph does not hold."""
    if kind == "search":
        fix = fix or "`regraph search list` shows them."
    return NotFound(f"there is no {kind} `{name}`.", where=where, fix=fix)
