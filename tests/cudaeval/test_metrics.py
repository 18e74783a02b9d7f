"""The metrics against brute force over every draw."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cudaeval.metrics import (
    Estimate,
    TaskSamples,
    bootstrap,
    bound_share,
    fast_p,
    geometric_mean,
    pass_at_k,
    row_geometric_means,
    solved_speedup_at_k,
    speedup_at_k,
    summarise,
)

SPEEDUP = st.one_of(st.none(), st.floats(0.01, 1000))
SAMPLES = st.lists(SPEEDUP, min_size=1, max_size=8)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[list[float | None], int]:
    samples = draw(SAMPLES)
    return samples, draw(st.integers(1, len(samples)))


def draws(samples: list[float | None], k: int) -> list[tuple[float | None, ...]]:
    return list(itertools.combinations(samples, k))


@given(drawn())
def test_pass_at_k_is_the_share_of_draws_with_a_correct_sample(case: tuple[list[float | None], int]) -> None:
    samples, k = case
    hits = [any(s is not None for s in draw) for draw in draws(samples, k)]
    correct = sum(s is not None for s in samples)
    assert pass_at_k(len(samples), correct, k) == pytest.approx(sum(hits) / len(hits))


@given(drawn())
def test_speedup_at_k_is_the_mean_best_of_every_draw(case: tuple[list[float | None], int]) -> None:
    samples, k = case
    best = [max(0.0 if s is None else s for s in draw) for draw in draws(samples, k)]
    assert speedup_at_k(samples, k) == pytest.approx(math.fsum(best) / len(best))


@given(drawn())
def test_solved_speedup_at_k_forgets_failed_samples(case: tuple[list[float | None], int]) -> None:
    samples, k = case
    correct = [s for s in samples if s is not None]
    if not correct:
        assert solved_speedup_at_k(samples, k) is None
        return
    best = [max(draw) for draw in itertools.combinations(correct, min(k, len(correct)))]
    assert solved_speedup_at_k(samples, k) == pytest.approx(math.fsum(best) / len(best))


def test_the_case_that_descending_order_gets_wrong() -> None:
    # ParEval's released code sorts the other way and answers 4.8 here.
    assert speedup_at_k([20, 10, 4, 2, 1], 2) == pytest.approx(12.0)


@given(SAMPLES)
def test_more_draws_never_lower_the_expected_best(samples: list[float | None]) -> None:
    values = [speedup_at_k(samples, k) for k in range(1, len(samples) + 1)]
    assert all(b >= a - 1e-9 * max(1.0, a) for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(("samples", "correct", "k"), [(0, 0, 1), (3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_impossible_counts_are_refused(samples: int, correct: int, k: int) -> None:
    with pytest.raises(ValueError, match="sample"):
        pass_at_k(samples, correct, k)


def test_fast_p_needs_correct_and_strictly_faster() -> None:
    assert fast_p([None, 1.0, 1.5, 3.0], 1.0) == 0.5
    assert fast_p([None], 0.0) == 0.0
    with pytest.raises(ValueError, match="no samples"):
        fast_p([], 1.0)


def test_geometric_mean() -> None:
    assert geometric_mean([1.0, 4.0]) == pytest.approx(2.0)
    assert geometric_mean([]) is None
    with pytest.raises(ValueError, match="positive"):
        geometric_mean([1.0, 0.0])


def test_the_bound_is_the_slower_of_memory_and_arithmetic() -> None:
    assert bound_share(2.0, moved=10.0, flops=1.0, bandwidth=10.0, flop_rate=1.0) == pytest.approx(0.5)
    assert bound_share(4.0, moved=10.0, flops=3.0, bandwidth=10.0, flop_rate=1.0) == pytest.approx(0.75)
    with pytest.raises(ValueError, match="positive"):
        bound_share(0.0, 1.0, 1.0, 1.0, 1.0)


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=12), st.integers(0, 5))
def test_bootstrap_brackets_are_ordered_and_repeatable(values: list[float], seed: int) -> None:
    first = bootstrap(values, resamples=200, seed=seed)
    assert first == bootstrap(values, resamples=200, seed=seed)
    assert min(values) - 1e-9 <= first.low <= first.high <= max(values) + 1e-9
    assert first.value == pytest.approx(math.fsum(values) / len(values))


def test_bootstrap_covers_the_mean_about_as_often_as_it_says() -> None:
    # A percentile interval over 30 values falls a little short of 95 %; far off either way would be a bug.
    rng = np.random.default_rng(8)
    hits = 0
    for trial in range(600):
        interval = bootstrap(list(rng.normal(5.0, 1.0, 30)), resamples=300, seed=trial)
        hits += interval.low <= 5.0 <= interval.high
    assert 0.89 <= hits / 600 <= 0.98


def test_bootstrap_of_a_geometric_mean() -> None:
    found = bootstrap([2.0, 8.0], resamples=500, statistic=row_geometric_means)
    assert found.value == pytest.approx(4.0)
    assert (found.low, found.high) == pytest.approx((2.0, 8.0))


def test_summary_by_tier() -> None:
    tasks = [
        TaskSamples("saxpy", "easy", failed=1, correct=1, speedups=(4.0,), bound_shares=(0.5, 0.9)),
        TaskSamples("relu", "easy", failed=2, correct=0),
        TaskSamples("matmul", "hard", failed=0, correct=1, speedups=(9.0,)),
    ]
    found = summarise(tasks, 1, resamples=100)
    assert set(found) == {"easy", "hard", "all"}
    easy = found["easy"]
    assert (easy.tasks, easy.solved) == (2, 1)
    assert easy.pass_at_k is not None and easy.pass_at_k.value == pytest.approx(0.25)
    assert easy.speedup_at_k is not None and easy.speedup_at_k.value == pytest.approx(1.0)
    assert easy.solved_speedup_at_k == Estimate(4.0, 4.0, 4.0)
    assert easy.bound_share == pytest.approx(0.9)
    assert found["all"].geometric_mean is not None
    assert found["all"].geometric_mean.value == pytest.approx(6.0)
    assert found["all"].fast_2 == pytest.approx((0.5 + 0.0 + 1.0) / 3)


def test_summary_of_nothing_has_no_figures() -> None:
    found = summarise([])
    assert found["all"].pass_at_k is None and found["all"].tasks == 0


def test_speed_that_was_not_measured_is_not_zero() -> None:
    found = summarise([TaskSamples("saxpy", "easy", failed=1, correct=3)], 2, resamples=50)["all"]
    assert found.pass_at_k is not None and found.pass_at_k.value == 1.0
    assert (found.speedup_at_k, found.geometric_mean, found.fast_1) == (None, None, None)
    with pytest.raises(ValueError, match="2 speedups of 3"):
        TaskSamples("saxpy", "easy", failed=0, correct=3, speedups=(1.0, 2.0))
