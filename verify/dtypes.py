"""Element types: their names in a manifest, in numpy, in CUDA C++ and in a reference, and their default tolerances.

numpy has no bfloat16: such arrays travel as ``uint16`` bit patterns and are widened with :func:`widen`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """``|got - expected| <= absolute + relative * |expected|``, element by element."""

    relative: float
    absolute: float


EXACT = Tolerance(0.0, 0.0)


@dataclass(frozen=True)
class Dtype:
    """One element type."""

    name: str  #: as in a manifest
    numpy: np.dtype[Any]  #: how arrays of it travel
    cuda: str  #: its name in a candidate
    reference: str  #: its name in reference.cpp; halves are ``float`` there
    floating: bool
    tolerance: Tolerance  #: where a task gives none
    spellings: tuple[str, ...]  #: other names that C++ has for the candidate's type

    @property
    def half(self) -> bool:
        """Whether the reference sees it widened to ``float``."""
        return self.floating and self.numpy.itemsize == 2


def _dtype(
    name: str, numpy: str, cuda: str, *spellings: str, reference: str = "", tolerance: Tolerance = EXACT
) -> Dtype:
    return Dtype(name, np.dtype(numpy), cuda, reference or cuda, tolerance != EXACT, tolerance, (cuda, *spellings))


DTYPES = {
    dtype.name: dtype
    for dtype in (
        _dtype("float16", "float16", "__half", "half", reference="float", tolerance=Tolerance(2e-3, 2e-3)),
        _dtype(
            "bfloat16", "uint16", "__nv_bfloat16", "nv_bfloat16", reference="float", tolerance=Tolerance(1.6e-2, 1.6e-2)
        ),
        _dtype("float32", "float32", "float", tolerance=Tolerance(1e-5, 1e-6)),
        _dtype("float64", "float64", "double", tolerance=Tolerance(1e-12, 1e-13)),
        _dtype("int8", "int8", "int8_t", "signed char"),
        _dtype("int16", "int16", "int16_t", "short", "short int"),
        _dtype("int32", "int32", "int", "int32_t", "signed int", "signed"),
        _dtype("int64", "int64", "int64_t", "long long", "long", "long int", "long long int", "ptrdiff_t"),
        _dtype("uint8", "uint8", "uint8_t", "unsigned char"),
        _dtype("uint16", "uint16", "uint16_t", "unsigned short"),
        _dtype("uint32", "uint32", "uint32_t", "unsigned int", "unsigned", "uint"),
        _dtype("uint64", "uint64", "uint64_t", "unsigned long long", "unsigned long", "size_t", "unsigned long int"),
    )
}


def to_bfloat16(values: Array) -> Array:
    """``float32`` values rounded to nearest even, as ``uint16`` bits; NaN stays NaN."""
    values = np.ascontiguousarray(values, np.float32)
    bits = values.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def from_bfloat16(bits: Array) -> Array:
    """``uint16`` bits widened exactly to ``float32``."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def cast(values: Array, dtype: Dtype) -> Array:
    """``values`` as an array that travels as ``dtype``, rounded where the type is narrower."""
    if dtype.name == "bfloat16":
        return values if values.dtype == np.uint16 else to_bfloat16(values)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype.numpy)


def widen(values: Array, dtype: Dtype) -> Array:
    """The array as the reference sees it: halves as ``float32``, everything else unchanged."""
    if dtype.name == "bfloat16":
        return from_bfloat16(values)
    return values.astype(np.float32) if dtype.name == "float16" else values
