"""Hashed-token vectors of code: deterministic, without a model, the same on every machine."""

from __future__ import annotations

import heapq
import re
import zlib
from collections import Counter
from collections.abc import Iterable
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

#: Entries of a vector.
DIMENSIONS = 256

#: Rows compared at once.
_BATCH = 2048

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|[^\s\w]")


def vector(code: str) -> NDArray[np.float32]:
    """``(DIMENSIONS,)`` float32 of unit length (zero for no tokens): signed counts, log-damped, of tokens and token
    pairs."""
    tokens = _TOKEN.findall(code)
    pairs = Counter(pairwise(tokens))
    counts = [*Counter(tokens).items(), *(("\x00".join(pair), count) for pair, count in pairs.items())]
    result = np.zeros(DIMENSIONS, np.float32)
    for key, count in counts:
        digest = zlib.crc32(key.encode())
        result[digest % DIMENSIONS] += (1.0 if digest & 0x80000000 else -1.0) * (1.0 + np.log(count))
    length = float(np.linalg.norm(result))
    return result / length if length else result


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
