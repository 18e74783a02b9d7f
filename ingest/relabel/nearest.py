"""The techniques nearest to a name, by embedding and by text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz, process

from ingest.relabel.embedding import Embedding, stems
from regraph_db.names import normalise

#: Shares of the embedding's cosine and of the text's similarity in a score.
_COSINE, _TEXT = 0.7, 0.3
#: What a name of one word is worth to a longer phrase that holds the word: "texture synthesis" is no texture memory.
_ONE_WORD = 0.8


@dataclass(frozen=True)
class Candidate:
    """A technique that a name may mean, with its similarity, 0 to 1."""

    technique: str
    score: float


class Nearest:
    """An index over techniques and their other names."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """``names``: every name or synonym (in normal form) with its technique."""
        self._names = list(names)
        self._techniques = sorted(set(names.values()))
        row = {technique: i for i, technique in enumerate(self._techniques)}
        # Rows are sorted by technique, so that the best row of each is one reduction over slices.
        self._names.sort(key=lambda name: (row[names[name]], name))
        owners = np.array([row[names[name]] for name in self._names], np.int64)
        self._starts = np.searchsorted(owners, np.arange(len(self._techniques)))
        self._embedding = Embedding([(name, names[name]) for name in self._names])
        self._matrix = self._embedding.vectors(self._names).T
        self._texts = [_text(name) for name in self._names]
        self._one_word = np.array([" " not in text for text in self._texts])

    def nearest(self, phrases: Sequence[str], limit: int) -> list[list[Candidate]]:
        """For each phrase at most ``limit`` techniques, best first; equal ones by name."""
        if not phrases or not self._techniques:
            return [[] for _ in phrases]
        cosine = self._embedding.vectors(phrases) @ self._matrix
        texts = [_text(phrase) for phrase in phrases]
        similar = process.cdist(texts, self._texts, scorer=fuzz.token_sort_ratio, dtype=np.float32) / np.float32(100)
        scores = _COSINE * cosine + _TEXT * similar
        longer = np.array([" " in each for each in texts])
        scores[np.ix_(longer, self._one_word)] *= _ONE_WORD
        scores = np.maximum.reduceat(scores, self._starts, axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :limit]
        return [
            [Candidate(self._techniques[i], round(float(np.clip(scores[row, i], 0, 1)), 4)) for i in order[row]]
            for row in range(len(phrases))
        ]


def _text(phrase: str) -> str:
    return " ".join(stems(normalise(phrase)))
