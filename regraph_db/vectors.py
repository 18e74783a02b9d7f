"""Hashed-token vectors of code: deterministic, without a model, the same on every machine."""

from __future__ import annotations

import re
import zlib

import numpy as np
from numpy.typing import NDArray

#: Entries of a vector.
DIMENSIONS = 256

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|[^\s\w]")


def vector(code: str) -> NDArray[np.float32]:
    """``(DIMENSIONS,)`` float32 of unit length (zero for no tokens): signed counts, log-damped, of tokens and token pairs."""
    tokens = _TOKEN.findall(code)
    counts: dict[str, int] = {}
    for word in tokens:
        counts[word] = counts.get(word, 0) + 1
    for pair in zip(tokens, tokens[1:], strict=False):
        key = "\x00".join(pair)
        counts[key] = counts.get(key, 0) + 1
    result = np.zeros(DIMENSIONS, np.float32)
    for key, count in counts.items():
        digest = zlib.crc32(key.encode())
        result[digest % DIMENSIONS] += (1.0 if digest & 0x80000000 else -1.0) * (1.0 + np.log(count))
    length = float(np.linalg.norm(result))
    return result / length if length else result
