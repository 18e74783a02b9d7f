"""Hashed-token vectors of code: deterministic, without a model, the same on every machine."""

from __future__ import annotations

import heapq
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

#: Entries of a vector.
DIMENSIONS = 256

#: Rows compared at once.
_BATCH = 2048

#: Characters of a line whose tokens are remembered.
_LINE = 200

_TOKEN = re.compile(r"[^\s\w]|[A-Za-z_]\w*|\d+(?:\.\d+)?")
_ASCII_TOKEN = re.compile(_TOKEN.pattern, re.ASCII)  #: the same tokens of ASCII code, found in half the time


def vector(code: str) -> NDArray[np.float32]:
    """``(DIMENSIONS,)`` float32 of unit length (zero for no tokens): signed counts, log-damped, of tokens and token
    pairs."""
    tokens: list[str] = []
    for line in code.split("\n"):
        tokens += _tokens(line) if len(line) <= _LINE else _found(line)
    sums = [0.0] * DIMENSIONS
    for counts, place in ((Counter(tokens), _place), (Counter(pairwise(tokens)), _place_of_pair)):
        for key, count in counts.items():
            entry, sign = place(key)
            sums[entry] += sign * (1.0 + math.log(count))
    result = np.array(sums)
    length = float(np.linalg.norm(result))
    return (result / length if length else result).astype(np.float32)


def _found(line: str) -> list[str]:
    return (_ASCII_TOKEN if line.isascii() else _TOKEN).findall(line)


# Code is written with few different tokens, over and over, and most lines of one step stand in the next one too.
@lru_cache(1 << 14)
def _tokens(line: str) -> tuple[str, ...]:
    """The tokens of a line; none spans two."""
    return tuple(_found(line))


@lru_cache(1 << 14)
def _place(key: str) -> tuple[int, float]:
    """The entry and the sign of a token."""
    digest = zlib.crc32(key.encode())
    return digest % DIMENSIONS, 1.0 if digest & 0x80000000 else -1.0


@lru_cache(1 << 14)
def _place_of_pair(pair: tuple[str, str]) -> tuple[int, float]:
    return _place.__wrapped__("\x00".join(pair))


def nearest(like: str, rows: Iterable[tuple[str, bytes]], limit: int) -> list[tuple[str, float]]:
    """The ids of the ``limit`` rows (id, float32 vector as bytes) nearest to ``like`` with their cosines, nearest
    first.

    Cosines are rounded to six places, so that equal vectors tie wherever they are stored; ties go by id. Memory is one
    batch of rows, whatever their number.
    """
    wanted = vector(like).astype(np.float64)
    best: list[tuple[float, str]] = []
    source = iter(rows)
    while batch := list(islice(source, _BATCH)):
        matrix = np.frombuffer(b"".join(blob for _, blob in batch), np.float32).reshape(len(batch), DIMENSIONS)
        cosines = np.round(matrix.astype(np.float64) @ wanted, 6)
        ranked = ((-float(cosine), key) for cosine, (key, _) in zip(cosines, batch, strict=True))
        best = heapq.nsmallest(limit, [*best, *ranked])
    return [(key, 0.0 - cosine) for cosine, key in best]
