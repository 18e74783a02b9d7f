"""What words mean beyond this trade: a static table of word pieces, distilled from a sentence model.

A name's meaning is the sum of its pieces' vectors, so that "exchange" is near to "swap" though no name of the table
says so. ``meaning.npz`` comes from all-MiniLM-L6-v2 (Apache 2.0) by ``distilling.py``. The whole model takes 84 MB and
7 ms a name, and tells names no better apart once it stands beside the words of ``embedding.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

#: The table's file, beside this module.
FILE = "meaning.npz"
_WORD = re.compile(r"[a-z0-9]+")
#: What stands before a piece that continues a word.
_CONTINUED = "##"


@cache
def _table() -> tuple[dict[str, int], NDArray[np.float32]]:
    """The row of each piece, and ``(pieces, dimensions)``."""
    with as_file(files("ingest").joinpath(f"relabel/{FILE}")) as path, np.load(path) as table:
        names = table["pieces"].tobytes().decode("ascii").split("\n")
        rows = table["vectors"].astype(np.float32) * table["scales"].astype(np.float32)[:, None]
    return {name: row for row, name in enumerate(names)}, rows


@lru_cache(maxsize=65_536)
def _pieces(word: str) -> tuple[int, ...]:
    """The rows of the longest pieces that make up ``word``, from its beginning; letters of none are skipped."""
    rows, _ = _table()
    found: list[int] = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            row = rows.get((_CONTINUED if start else "") + word[start:end])
            if row is not None:
                found.append(row)
                start = end
                break
        else:
            start += 1
    return tuple(found)


def meanings(phrases: Sequence[str]) -> NDArray[np.float32]:
    """``(len(phrases), dimensions)``: vectors of length 1, or of zeros where a phrase has no word."""
    _, rows = _table()
    result = np.zeros((len(phrases), rows.shape[1]), np.float32)
    for number, phrase in enumerate(phrases):
        found = [piece for word in _WORD.findall(phrase) for piece in _pieces(word)]
        if found:
            total = rows[found].sum(0)
            result[number] = total / (np.float32(np.linalg.norm(total)) or np.float32(1.0))
    return result
