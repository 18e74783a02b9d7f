"""Rewards of candidates and returns of edges (arXiv 2510.19873, with our suffix maximum).

Reward: −1 unless all tests pass; speedup − 1 if correct but slower than the baseline; else the speedup.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from search.settings import SearchSettings

#: The reward of a candidate that does not compile, or is wrong.
FAILED = -1.0
#: The least reward of correct code, however slow.
SLOWEST = -1.0 + 1e-9


def reward(speedup: float | None, settings: SearchSettings, *, guide: float = 0.0) -> float:
    """The reward of correct code.

    ``speedup`` is measured or modelled, never a mixture within a search. ``None`` (the level tells no speed) gives
    1 + ``guide``: correct, and the log2 gain that its techniques had on other tasks. That is a guess, not a speed.
    """
    if speedup is None:
        return 1.0 + max(0.0, guide)
    if speedup < 1.0:
        return max(speedup - 1.0, SLOWEST)
    return math.log2(speedup) if settings.reward_scale == "log2" else speedup


def edge_returns(
    known: Sequence[float | None], steps: Sequence[float | None], settings: SearchSettings
) -> tuple[list[float | None], list[float | None]]:
    """The returns of a rollout's edges: of the selected ones walked without a call, then of the generated steps.

    ``known`` holds the rewards of the code that stood at the selected states, ``steps`` those of the generated
    steps, in order; ``None`` is a step that says nothing (refused, or a failure that is not the candidate's) and
    returns nothing.

    ``suffix``: the best reward from the edge's own step on; a failed step returns −1 to its own edge only.
    ``rollout``: the best reward of the generated steps, to all.
    """
    if settings.returns == "rollout":
        seen = [value for value in steps if value is not None]
        best = max(seen) if seen else None
        return [best for _ in known], [None if value is None else best for value in steps]
    rewards = [*known, *steps]
    result: list[float | None] = [None] * len(rewards)
    best = None
    for place in range(len(rewards) - 1, -1, -1):
        value = rewards[place]
        if value is not None and value > FAILED:
            best = value if best is None else max(best, value)
        generated = place >= len(known)
        if value == FAILED and generated:
            result[place] = FAILED
        elif value is not None or not generated:
            result[place] = best
    if all(value is None for value in steps):
        result = [None] * len(rewards)  # nothing was learnt
    return result[: len(known)], result[len(known) :]
