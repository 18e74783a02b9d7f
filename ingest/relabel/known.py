"""The known names, to compare another name with: by words, and by meaning; and what all of them say together.

What they say together is a kernel ridge regression onto the techniques. Its coefficients for the shipped names stand in
``coefficients.npz``, so that starting is quick and every machine decides alike; ``fitting.py`` writes them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from ingest.relabel.embedding import Embedding, features, spelt
from ingest.relabel.meaning import meanings
from regraph_db.errors import InternalFault

#: The shipped coefficients, beside this module.
FILE = "coefficients.npz"
#: The kernel: shares of the cosine of the words, and of the cubed one of the meanings.
_WORDS, _MEANINGS = 0.4, 0.6
#: How far the regression trusts a single known name.
RIDGE = 0.1
#: Phrases that are looked at together, and known names in one product: below the 262,144 multiplications from which on
#: OpenBLAS starts threads.
TOGETHER, _PIECE = 16, 128


class Known:
    """Names and their vectors, the words' by feature: a phrase has some fifty of thousands."""

    def __init__(self, embedding: Embedding, phrases: Sequence[str]) -> None:
        self.embedding = embedding
        self.phrases = tuple(phrases)
        vectors = [embedding.sparse(features(phrase)) for phrase in phrases]
        columns = np.array([column for each, _ in vectors for column in each], np.int64)
        rows = np.repeat(np.arange(len(phrases)), [len(each) for each, _ in vectors])
        values = np.concatenate([each for _, each in vectors]) if vectors else np.zeros(0, np.float32)
        order = np.argsort(columns, kind="stable")
        ends = np.cumsum(np.bincount(columns, minlength=embedding.dimensions))
        self._rows = np.split(rows[order], ends[:-1])
        self._values = np.split(values[order], ends[:-1])
        self._meanings = meanings([spelt(phrase) for phrase in phrases])

    @property
    def count(self) -> int:
        """Names."""
        return len(self.phrases)

    def words(self, strengths: Mapping[str, float]) -> NDArray[np.float32]:
        """``(names,)``: the cosines of a phrase's words, by its features, to each name's."""
        columns, values = self.embedding.sparse(strengths)
        if not columns:
            return np.zeros(len(self.phrases), np.float32)
        rows = [self._rows[column] for column in columns]
        weights = np.repeat(values, [len(each) for each in rows]) * np.concatenate(
            [self._values[column] for column in columns]
        )
        return np.bincount(np.concatenate(rows), weights, len(self.phrases)).astype(np.float32)

    def kernels(self, phrases: Sequence[str], words: NDArray[np.float32], count: int) -> NDArray[np.float32]:
        """``(phrases, count)``: the kernel between each of ``phrases``, whose words have these cosines (one row each),
        and the first names."""
        mine = meanings([spelt(phrase) for phrase in phrases])
        meaning = np.concatenate([mine @ self._meanings[piece].T for piece in _pieces(count)], axis=1)
        return _kernel(words[:, :count], np.maximum(meaning, 0.0))

    def coefficients(self, owners: Sequence[int], techniques: int) -> NDArray[np.float32]:
        """``(len(owners), techniques + 1)``: the regression of the first names onto their techniques, by number, and,
        in the last column, onto none, whose number is -1."""
        count = len(owners)
        wanted = np.zeros((count, techniques + 1), np.float32)
        wanted[np.arange(count), owners] = 1.0
        words = np.stack([self.words(features(phrase))[:count] for phrase in self.phrases[:count]])
        meaning = np.maximum(self._meanings[:count] @ self._meanings[:count].T, 0.0)
        kernel = _kernel(words, meaning)
        kernel[np.diag_indices(count)] += np.float32(RIDGE)
        return np.linalg.solve(kernel, wanted)

    def digest(self, count: int) -> str:
        """Of the first names: coefficients are for these and no others."""
        return hashlib.sha256("\n".join(self.phrases[:count]).encode()).hexdigest()


def supports(kernels: NDArray[np.float32], coefficients: NDArray[np.float32]) -> NDArray[np.float32]:
    """``(phrases, techniques + 1)``: what the regression says for each row of kernels."""
    total = np.zeros((len(kernels), coefficients.shape[1]), np.float32)
    for piece in _pieces(len(coefficients)):
        total += kernels[:, piece] @ coefficients[piece]
    return total


def _pieces(count: int) -> list[slice]:
    """Slices of so few names that BLAS multiplies them by ``TOGETHER`` phrases in one thread: more threads would cost
    more than they bring, and far more on a machine that is busy."""
    return [slice(begin, min(begin + _PIECE, count)) for begin in range(0, count, _PIECE)]


def shipped_coefficients(known: Known, count: int) -> NDArray[np.float32]:
    """Those of ``coefficients.npz``, for the first ``count`` names.

    Raises :class:`InternalFault` where they were made for other names.
    """
    with as_file(files("ingest").joinpath(f"relabel/{FILE}")) as path, np.load(path) as table:
        if str(table["names"]) != known.digest(count):
            raise InternalFault(
                "the coefficients were fitted to other names than the table and the labelled pairs hold.",
                where=FILE,
                fix="Run `python -m ingest.relabel.fitting`.",
            )
        return np.ascontiguousarray(table["coefficients"].astype(np.float32))


def _kernel(words: NDArray[np.float32], meaning: NDArray[np.float32]) -> NDArray[np.float32]:
    result: NDArray[np.float32] = np.float32(_WORDS) * words
    result += np.float32(_MEANINGS) * meaning * meaning * meaning
    return result
