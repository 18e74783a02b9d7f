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

from ingest.relabel.embedding import Embedding, features
from ingest.relabel.meaning import meanings
from regraph_db.errors import InternalFault

#: The shipped coefficients, beside this module.
FILE = "coefficients.npz"
#: The kernel: shares of the squared cosine of the words, and of the cubed one of the meanings.
_WORDS, _MEANINGS = 0.5, 0.5
#: How far the regression trusts a single known name.
RIDGE = 0.1


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
        self._meanings = meanings(phrases)

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

    def kernel(self, phrase: str, words: NDArray[np.float32], count: int) -> NDArray[np.float32]:
        """``(count,)``: the kernel between ``phrase``, whose words have these cosines, and the first names."""
        # Not by BLAS: its threads cost more than they bring here, and far more on a machine that is busy.
        meaning = np.einsum("ij,j->i", self._meanings[:count], meanings([phrase])[0])
        return _kernel(words[:count], np.maximum(meaning, 0.0))

    def coefficients(self, owners: Sequence[int], techniques: int) -> NDArray[np.float32]:
        """``(len(owners), techniques)``: the regression of the first names onto their techniques, by number; -1 for a
        name of none."""
        count = len(owners)
        wanted = np.zeros((count, techniques), np.float32)
        rows = np.flatnonzero(np.array(owners) >= 0)
        wanted[rows, np.array(owners)[rows]] = 1.0
        words = np.stack([self.words(features(phrase))[:count] for phrase in self.phrases[:count]])
        meaning = np.maximum(self._meanings[:count] @ self._meanings[:count].T, 0.0)
        kernel = _kernel(words, meaning)
        kernel[np.diag_indices(count)] += np.float32(RIDGE)
        return np.linalg.solve(kernel, wanted)

    def digest(self, count: int) -> str:
        """Of the first names: coefficients are for these and no others."""
        return hashlib.sha256("\n".join(self.phrases[:count]).encode()).hexdigest()


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
    result: NDArray[np.float32] = np.float32(_WORDS) * words * words
    result += np.float32(_MEANINGS) * meaning * meaning * meaning
    return result
