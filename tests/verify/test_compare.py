"""The comparison: NaN never passes, infinities must stand in the same places, inputs must keep their bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from verify.compare import difference, within
from verify.dtypes import DTYPES, Tolerance, cast, from_bfloat16, to_bfloat16
from verify.inputs import make_call
from verify.task import load_task
from verify.timing import relative_error, settled, speedup

TASKS = Path(__file__).parent / "tasks"
FLOATS = arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32))


@settings(deadline=None)
@given(FLOATS)
def test_the_same_values_pass_and_nan_in_place_of_a_number_never_does(values: np.ndarray) -> None:
    tolerance = Tolerance(1e-5, 1e30)
    assert within(values, values.copy(), tolerance).all()
    poisoned = np.full_like(values, np.nan)
    assert not within(values, poisoned, tolerance)[~np.isnan(values)].any()


@settings(deadline=None)
@given(FLOATS)
def test_infinities_must_stand_in_the_same_places(values: np.ndarray) -> None:
    for special in (np.inf, -np.inf):
        good = within(values, np.full_like(values, special), Tolerance(1.0, 1e38))
        assert np.array_equal(good, values == special)


@settings(deadline=None)
@given(arrays(np.float32, 20, elements=st.floats(-1e3, 1e3, width=32)), st.floats(0, 0.5))
def test_the_tolerance_is_a_bound(values: np.ndarray, share: float) -> None:
    error = 0.01 + 0.1 * np.abs(values.astype(np.float64))
    inside = (values + 0.98 * share * error).astype(np.float64)
    outside = values + (1.02 + share) * error
    assert within(values, inside, Tolerance(0.1, 0.01)).all()
    assert not within(values, outside, Tolerance(0.1, 0.01)).any()


def test_integers_are_exact_without_a_tolerance() -> None:
    large = np.array([2**62, 2**62 + 1])
    assert within(large, large, Tolerance(0, 0)).all()
    assert not within(large, large + 1, Tolerance(0, 0)).any()


@settings(deadline=None)
@given(FLOATS)
def test_bfloat16_rounds_to_nearest_and_keeps_specials(values: np.ndarray) -> None:
    back = from_bfloat16(to_bfloat16(values))
    assert np.array_equal(np.isnan(back), np.isnan(values))
    normal = np.isfinite(values) & (np.abs(values) > 1e-30) & (np.abs(values) < 1e38)
    assert (np.abs(back[normal] - values[normal]) <= np.abs(values[normal]) / 256).all()
    assert np.array_equal(to_bfloat16(back)[~np.isnan(back)], cast(back, DTYPES["bfloat16"])[~np.isnan(back)])


@pytest.mark.parametrize("change", ["input", "output", "nan", "none"])
def test_a_difference_names_array_index_and_size(change: str) -> None:
    task = load_task(TASKS / "affine")
    call = make_call(task, {"n": 9}, 1)
    x = call.arguments[0]
    assert isinstance(x, np.ndarray)
    right = 3 * x + 1
    got_x, got = x.copy(), right.copy()
    if change == "input":
        got_x[2] = 0
    elif change != "none":
        got[4] = np.nan if change == "nan" else got[4] + 1
    words = difference(task, call, [x, right], [got_x, got])
    expected = {"input": "x: an input was overwritten", "output": "out[4]", "nan": "out[4] = nan", "none": ""}[change]
    assert expected in words if expected else words == ""
    assert "n = 9" in words or change == "none"


@settings(deadline=None)
@given(st.lists(st.floats(1e-6, 1e-3), min_size=5, max_size=60), st.floats(1.1, 50))
def test_a_speedup_lies_in_its_interval(samples: list[float], factor: float) -> None:
    interval = speedup([factor * s for s in samples], samples)
    assert interval.low <= interval.median * 1.0000001 and interval.median <= interval.high * 1.0000001
    assert interval.median == pytest.approx(factor)


def test_a_timing_settles_when_both_sides_are_steady_and_one_outlier_does_not_hinder() -> None:
    steady = [1.0 + 0.001 * (k % 5) for k in range(20)]
    assert settled([steady, [*steady[:-1], 9.0]], 20, 0.01)
    assert not settled([steady, [1.0, 2.0] * 10], 20, 0.01)
    assert not settled([steady[:10]], 20, 0.01)
    assert relative_error([1.0]) == float("inf")
