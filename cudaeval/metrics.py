"""What a benchmark's samples amount to: pure functions over numbers, no files and no clocks.

A *sample* is one answer to one task: the speedup it was measured at, or ``None`` when it is not correct. A search
counts as one sample, whatever its budget. Tasks are the units of every mean and of the bootstrap: a task with many
samples weighs as much as a task with few.

Sources: pass@k from Chen et al. (arXiv 2107.03374, eq. 1); speedup@k from Nichols et al. (ParEval, arXiv 2401.12554),
with the sum written so that it is the expected best of k samples; fast_p from KernelBench (arXiv 2502.10517).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Tiers in the order that reports show them; ``all`` stands for every task.
TIERS = ("easy", "medium", "hard")
ALL = "all"

Samples = Sequence[float | None]
Floats = NDArray[np.float64]


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """The chance that at least one of ``k`` samples drawn without replacement is correct: 1 − C(n−c,k)/C(n,k).

    Raises ``ValueError`` unless 0 ≤ correct ≤ samples and 1 ≤ k ≤ samples.
    """
    _check(samples, k)
    if not 0 <= correct <= samples:
        raise ValueError(f"{correct} of {samples} samples cannot be correct")
    return 1.0 - math.comb(samples - correct, k) / math.comb(samples, k)


def speedup_at_k(samples: Samples, k: int) -> float:
    """The expected largest speedup among ``k`` samples drawn without replacement; a failed sample counts 0.

    With the speedups in ascending order s_(1) ≤ … ≤ s_(n) this is Σ_j C(j−1,k−1)/C(n,k)·s_(j): s_(j) is the largest of
    a draw when the other k−1 come from the j−1 below it.
    """
    _check(len(samples), k)
    ascending = sorted(0.0 if s is None else s for s in samples)
    total = math.comb(len(ascending), k)
    return sum(math.comb(j, k - 1) / total * speedup for j, speedup in enumerate(ascending))


def solved_speedup_at_k(samples: Samples, k: int) -> float | None:
    """As :func:`speedup_at_k`, over the correct samples alone (``k`` is cut to their number); ``None`` without any.

    This is the figure that the ReGraphT paper prints as speedup@1: it rewards giving up, so never read it alone.
    """
    _check(len(samples), k)
    correct = [s for s in samples if s is not None]
    return speedup_at_k(correct, min(k, len(correct))) if correct else None


def fast_p(samples: Samples, p: float) -> float:
    """The share of samples that are correct and more than ``p`` times as fast as the baseline."""
    if not samples:
        raise ValueError("no samples")
    return sum(s is not None and s > p for s in samples) / len(samples)


def geometric_mean(values: Sequence[float]) -> float | None:
    """exp of the mean logarithm; ``None`` for no values. Raises ``ValueError`` for a value that is not positive."""
    if not values:
        return None
    if any(not v > 0 for v in values):
        raise ValueError("a geometric mean needs positive values")
    return math.exp(math.fsum(math.log(v) for v in values) / len(values))


def bound_share(seconds: float, moved: float, flops: float, bandwidth: float, flop_rate: float) -> float:
    """How much of the machine's limit a call reaches, 0 to 1: the least time it could take over the time it took.

    ``moved`` bytes at ``bandwidth`` bytes/s and ``flops`` at ``flop_rate`` per second overlap at best, so the larger of
    the two is the bound (the roofline of Williams et al. 2009). ``seconds`` must be positive.
    """
    if not seconds > 0:
        raise ValueError("a call takes a positive time")
    return max(moved / bandwidth, flops / flop_rate) / seconds


def _check(samples: int, k: int) -> None:
    if not 1 <= k <= samples:
        raise ValueError(f"k = {k} needs at least that many samples, there are {samples}")


@dataclass(frozen=True)
class Estimate:
    """A statistic with its 95 % percentile bootstrap interval; all three are equal for a single task."""

    value: float
    low: float
    high: float


def bootstrap(
    values: Sequence[float],
    *,
    resamples: int = 2000,
    seed: int = 0,
    statistic: Callable[[Floats], Floats] | None = None,
) -> Estimate:
    """``statistic`` of ``values`` (one per task) and its interval under resampling of the tasks.

    ``statistic`` maps an array of shape (rows, tasks) to one figure a row; the mean by default. The same ``seed``
    gives the same interval.
    """
    if not values:
        raise ValueError("no values")
    figure: Callable[[Floats], Floats] = statistic or _row_means
    array = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    drawn = figure(array[rng.integers(len(array), size=(resamples, len(array)))])
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(float(figure(array[None, :])[0]), float(low), float(high))


def row_geometric_means(rows: Floats) -> Floats:
    """The geometric mean of each row, for :func:`bootstrap`."""
    means: Floats = np.exp(np.log(rows).mean(axis=1))
    return means


def _row_means(rows: Floats) -> Floats:
    means: Floats = rows.mean(axis=1)
    return means


@dataclass(frozen=True)
class TaskSamples:
    """All samples of one strategy and model on one task."""

    task: str
    tier: str  #: easy, medium or hard
    failed: int  #: samples that are not correct
    correct: int
    speedups: tuple[float, ...] = ()  #: one for each correct sample; empty where speed was not measured
    bound_shares: tuple[float, ...] = ()  #: of the correct samples, where they were measured

    def __post_init__(self) -> None:
        if self.speedups and len(self.speedups) != self.correct:
            raise ValueError(f"{self.task}: {len(self.speedups)} speedups of {self.correct} correct samples")

    @property
    def total(self) -> int:
        return self.correct + self.failed

    @property
    def timed(self) -> bool:
        """Whether every correct sample has a speedup."""
        return len(self.speedups) == self.correct

    @property
    def samples(self) -> Samples:
        """The samples as the functions above take them."""
        return [*self.speedups, *([None] * self.failed)]


@dataclass(frozen=True)
class Summary:
    """The figures of one tier (or of all tasks) at one ``k``; figures over no task are ``None``.

    Where a correct sample was not timed, every figure of speed is ``None``: speed is not known, not zero.
    """

    tier: str
    tasks: int
    solved: int  #: tasks with at least one correct sample
    k: int
    pass_at_k: Estimate | None
    speedup_at_k: Estimate | None  #: failed samples count 0
    solved_speedup_at_k: Estimate | None  #: over the solved tasks and their correct samples
    geometric_mean: Estimate | None  #: of the solved tasks' best-of-k speedups
    fast_1: float | None
    fast_2: float | None
    bound_share: float | None  #: mean over tasks of their best sample's share


def summarise(tasks: Sequence[TaskSamples], k: int = 1, *, resamples: int = 2000, seed: int = 0) -> dict[str, Summary]:
    """The summary of every tier that has tasks, and of ``all``.

    ``k`` is cut to the number of samples where a task has fewer: such a task is judged by all that it has.
    """
    groups = {tier: [t for t in tasks if tier in (ALL, t.tier)] for tier in (*TIERS, ALL)}
    return {tier: _summary(tier, group, k, resamples, seed) for tier, group in groups.items() if group or tier == ALL}


def _summary(tier: str, tasks: list[TaskSamples], k: int, resamples: int, seed: int) -> Summary:
    def estimate(values: Sequence[float], statistic: Callable[[Floats], Floats] | None = None) -> Estimate | None:
        return bootstrap(values, resamples=resamples, seed=seed, statistic=statistic) if values else None

    judged = [t for t in tasks if t.total]
    timed = judged if all(t.timed for t in judged) else []
    of_solved = [solved_speedup_at_k(t.samples, min(k, t.total)) for t in timed]
    solved = [speedup for speedup in of_solved if speedup is not None]
    return Summary(
        tier=tier,
        tasks=len(tasks),
        solved=sum(t.correct > 0 for t in judged),
        k=k,
        pass_at_k=estimate([pass_at_k(t.total, t.correct, min(k, t.total)) for t in judged]),
        speedup_at_k=estimate([speedup_at_k(t.samples, min(k, t.total)) for t in timed]),
        solved_speedup_at_k=estimate(solved),
        geometric_mean=estimate(solved, row_geometric_means),
        fast_1=_mean([fast_p(t.samples, 1.0) for t in timed]),
        fast_2=_mean([fast_p(t.samples, 2.0) for t in timed]),
        bound_share=_mean([max(t.bound_shares) for t in timed if t.bound_shares]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
