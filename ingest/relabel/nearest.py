"""The techniques nearest to a name, by embedding and by text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz import fuzz

from ingest.relabel.embedding import Embedding, stems

#: Shares of the embedding's cosine and of the text's similarity in a score.
_COSINE, _TEXT = 0.7, 0.3
#: What a name of one word is worth to a longer phrase that holds the word: "texture synthesis" is no texture memory.
_ONE_WORD = 0.8
#: Names whose text is compared, those with the largest cosine.
_COMPARED = 64


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
        self._owners = [names[name] for name in self._names]
        self._embedding = Embedding(list(zip(self._names, self._owners, strict=True)))
        self._matrix = np.ascontiguousarray(self._embedding.vectors(self._names).T)
        self._texts = [_text(name) for name in self._names]
        self._one_word = np.array([" " not in text for text in self._texts])

    def nearest(self, phrases: Sequence[str], limit: int) -> list[list[Candidate]]:
        """For each phrase (in normal form) at most ``limit`` techniques, best first; equal ones by name."""
        return [self._nearest(phrase)[:limit] for phrase in phrases] if self._names else [[] for _ in phrases]

    def _nearest(self, phrase: str) -> list[Candidate]:
        columns, values = self._embedding.sparse(phrase)
        cosine = values @ self._matrix[columns]  # a phrase has some fifty of thousands of features
        text = _text(phrase)
        if " " in text:
            cosine = np.where(self._one_word, cosine * _ONE_WORD, cosine)
        # The text is compared where the embedding sees something in common; the rest cannot reach a threshold.
        rows = np.argsort(-cosine, kind="stable")[:_COMPARED]
        best: dict[str, float] = {}
        for row in rows.tolist():
            similar = fuzz.ratio(text, self._texts[row]) / 100
            if self._one_word[row] and " " in text:
                similar *= _ONE_WORD
            owner = self._owners[row]
            best[owner] = max(best.get(owner, 0.0), _COSINE * float(cosine[row]) + _TEXT * similar)
        found = [Candidate(technique, round(min(score, 1.0), 4)) for technique, score in best.items()]
        return sorted(found, key=lambda each: (-each.score, each.technique))


def _text(phrase: str) -> str:
    """The stems in alphabetical order, so that the order of words does not matter."""
    return " ".join(sorted(stems(phrase)))
