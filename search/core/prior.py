"""The prior of an edge: what other tasks taught about its transition before this search walks it."""

from __future__ import annotations

import math

from regraph_db.records import TransitionStatistics
from search.settings import Mode

#: Pretended examples without a gain, so that one lucky measurement does not outrank many good ones [D].
SHRINKAGE = 2.0
#: Worth of an unmeasured example, in doublings [D].
EXAMPLE_WEIGHT = 0.1


def prior(statistics: TransitionStatistics, mode: Mode) -> float:
    """Larger is tried first. ``paper``: the example count. ``graph``: the shrunken mean gain in doublings, and a little
    for how often the transition was shown; returns of finished searches weigh as one more gain each."""
    if mode is Mode.PAPER:
        return float(statistics.examples)
    gains, count = statistics.gain_sum, float(statistics.gain_count)
    if statistics.mean_return is not None:
        gains += statistics.return_count * math.log2(max(statistics.mean_return, 0.25))
        count += statistics.return_count
    return gains / (count + SHRINKAGE) + EXAMPLE_WEIGHT * math.log1p(statistics.examples)
