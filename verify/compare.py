"""Compares a candidate's outputs with the reference's: the only place where "right" is decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from verify.dtypes import Array, Tolerance, widen
from verify.execution import Argument, Call
from verify.manifest import Parameter
from verify.task import Task

_BLOCK = 1 << 20


def difference(task: Task, call: Call, expected: Sequence[Array], got: Sequence[Array]) -> str:
    """What is wrong with the arrays after ``call``, in one line; empty when nothing is.

    ``got`` holds every array argument afterwards, ``expected`` the reference's, both in the signature's order;
    16-bit floats
    are ``float32`` in ``expected``. Inputs must come back with the same bits.
    """
    at = ", ".join(f"{name} = {value}" for name, value in call.sizes.items())
    for parameter, before, wanted, found in zip(task.arrays, arrays_of(task, call), expected, got, strict=True):
        if parameter.writable:
            wrong = _mismatch(parameter, wanted, found)
        else:
            wrong = "" if same_bits(before, found) else "an input was overwritten"
        if wrong:
            return f"{parameter.name}: {wrong} (at {at})"
    return ""


def arrays_of(task: Task, call: Call) -> list[Array]:
    """The array arguments of ``call``, in the signature's order."""
    return [
        _as_array(argument)
        for parameter, argument in zip(task.parameters, call.arguments, strict=True)
        if parameter.is_array
    ]


def _as_array(argument: Argument) -> Array:
    assert isinstance(argument, np.ndarray)
    return argument


def same_bits(left: Array, right: Array) -> bool:
    """Whether two arrays hold the same bytes, NaN included."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    return bool(
        np.array_equal(
            np.ascontiguousarray(left).reshape(-1).view(np.uint8),
            np.ascontiguousarray(right).reshape(-1).view(np.uint8),
        )
    )


def within(expected: Array, got: Array, tolerance: Tolerance) -> Any:
    """Element by element: is ``got`` as good as ``expected``? NaN and infinities only where ``expected`` has the
    same."""
    if expected.dtype.kind in "iu" and tolerance == Tolerance(0.0, 0.0):
        return expected == got
    wide = expected.astype(np.float64)
    other = got.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(other - wide)
        fits = error <= tolerance.absolute + tolerance.relative * np.abs(wide)
    finite = np.isfinite(wide)
    same_special = (np.isnan(wide) & np.isnan(other)) | (wide == other)
    return np.where(finite, fits & np.isfinite(other), same_special)


def _mismatch(parameter: Parameter, expected: Array, got: Array) -> str:
    """The first place where ``got`` is not good enough, and how many there are."""
    if got.shape != expected.shape:
        return f"shape {got.shape} came back, {expected.shape} is wanted"
    tolerance = parameter.accepted
    flat_expected, flat_got = expected.reshape(-1), got.reshape(-1)
    wrong, first = 0, -1
    for start in range(0, len(flat_expected), _BLOCK):  # in blocks: a timed size in float64 would take gigabytes
        found = widen(flat_got[start : start + _BLOCK], parameter.dtype)
        good = within(flat_expected[start : start + _BLOCK], found, tolerance)
        bad = np.flatnonzero(~good)
        if len(bad) and first < 0:
            first = start + int(bad[0])
        wrong += len(bad)
    if not wrong:
        return ""
    place = tuple(int(i) for i in np.unravel_index(first, expected.shape))
    index = "".join(f"[{i}]" for i in place)
    value = widen(flat_got[first : first + 1], parameter.dtype)[0]
    found_at = f"{parameter.name}{index} = {value:.9g}, expected {flat_expected[first]:.9g}"
    return f"{wrong} of {len(flat_expected)} elements are wrong, first {found_at}"
