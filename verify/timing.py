"""The statistics of a timing: when it has settled, and what may be said of a speedup. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from regraph_db.records import Interval

_RESAMPLES = 2000


def relative_error(samples: Sequence[float]) -> float:
    """Relative standard error of the mean of the middle 80 % of ``samples``; infinite for fewer than three.

    A stray slow sample (a clock change, another process) says nothing about the kernel and must not keep it from
    settling.
    """
    kept = _trimmed(samples)
    if len(kept) < 3:
        return float("inf")
    mean = float(np.mean(kept))
    return float(np.std(kept, ddof=1) / np.sqrt(len(kept)) / mean) if mean > 0 else float("inf")


def _trimmed(samples: Sequence[float]) -> list[float]:
    cut = len(samples) // 10
    return sorted(samples)[cut : len(samples) - cut]


def settled(sides: Sequence[Sequence[float]], least: int, error: float) -> bool:
    """Whether every side has ``least`` samples and a relative standard error under ``error``."""
    return all(len(side) >= least and relative_error(side) < error for side in sides)


def speedup(baseline: Sequence[float], candidate: Sequence[float], seed: int = 0) -> Interval:
    """Median of baseline over median of candidate, with its 95 % bootstrap interval."""
    rng = np.random.default_rng(seed)

    def medians(samples: Sequence[float]) -> np.ndarray:
        values = np.asarray(samples)
        resampled = values[rng.integers(len(values), size=(_RESAMPLES, len(values)))]
        return np.asarray(np.median(resampled, axis=1))

    ratios = medians(baseline) / medians(candidate)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return Interval(median=median(baseline) / median(candidate), low=float(low), high=float(high))


def summed(totals: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Interval:
    """The speedup of the sums over several timed sizes: every size resampled on its own."""
    parts = [speedup(base, candidate) for candidate, base in totals]
    weights = np.array([median(candidate) for candidate, _ in totals])
    weights = weights / weights.sum()
    return Interval(
        median=float(sum(w * p.median for w, p in zip(weights, parts, strict=True))),
        low=float(sum(w * p.low for w, p in zip(weights, parts, strict=True))),
        high=float(sum(w * p.high for w, p in zip(weights, parts, strict=True))),
    )
