"""Backup: what a finished rollout adds to each edge it went along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from regraph_db.records import EdgeReturn
from search.core.reward import FAILURE
from search.settings import Mode, SearchSettings

Edge = tuple[str, str]


def returns(
    path: Sequence[Edge],
    known: Mapping[str, float],
    walked: Sequence[tuple[Edge, float]],
    refused: Sequence[Edge],
    settings: SearchSettings,
) -> tuple[EdgeReturn, ...]:
    """The returns of one rollout.

    Args:
        path: selected edges from the root that were *not* walked by the rollout itself.
        known: the reward of the best verified code at a state, for the path's states.
        walked: the rollout's own edges with the reward of each step, in order; only the last may have failed.
        refused: edges whose answer was ``suitable: no``: no visit, one refusal.

    ``graph``: an edge's return is the suffix maximum of the rewards from its step on, and a failing step gives −1 to its
    own edge only. ``paper``: the rollout's maximum goes to every edge of the path and the rollout.
    """
    found: list[EdgeReturn] = []
    if walked:
        rewards = [value for _, value in walked]
        if settings.mode is Mode.PAPER:
            highest = max(rewards)
            found += [EdgeReturn(source=s, target=t, value=highest) for s, t in [*path, *(edge for edge, _ in walked)]]
        else:
            found += _suffix_maxima(path, known, walked)
    counts: dict[Edge, int] = {}
    for edge in refused:
        counts[edge] = counts.get(edge, 0) + 1
    found += [EdgeReturn(source=s, target=t, refusals=count) for (s, t), count in counts.items()]
    return tuple(found)


def _suffix_maxima(
    path: Sequence[Edge], known: Mapping[str, float], walked: Sequence[tuple[Edge, float]]
) -> list[EdgeReturn]:
    best = FAILURE
    backward: list[EdgeReturn] = []
    for (source, target), value in reversed(walked):
        if value > FAILURE:
            best = max(best, value)
            backward.append(EdgeReturn(source=source, target=target, value=best))
        else:
            backward.append(EdgeReturn(source=source, target=target, value=FAILURE))
    for source, target in reversed(path):
        best = max(best, known.get(target, FAILURE))
        backward.append(EdgeReturn(source=source, target=target, value=best))
    return backward[::-1]
