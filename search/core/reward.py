"""The reward of one candidate (ReGraphT §3.3)."""

from __future__ import annotations

import math

from search.settings import RewardScale

#: The reward of a candidate that is not right.
FAILURE = -1.0


def reward(passed: bool, speedup: float | None, scale: RewardScale) -> float:
    """``-1`` unless passed; ``speedup - 1`` when slower than the baseline; else ``speedup`` (or ``log2`` of it).

    ``speedup`` is ``None`` where speed was neither measured nor modelled: every right candidate is then worth the same 1.
    """
    if not passed:
        return FAILURE
    if speedup is None:
        return 1.0
    if scale is RewardScale.LOG2:
        return max(math.log2(speedup), FAILURE)
    return speedup if speedup >= 1 else speedup - 1
