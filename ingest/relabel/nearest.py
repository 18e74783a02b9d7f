"""The techniques nearest to a name, and how sure it is that the nearest one is meant.

The index holds the table's names, synonyms and descriptions, and the names of the labelled pairs. Three views of a name
are weighed into one confidence: the nearest known names, by embedding and by text; what all of them together say (a
kernel ridge regression onto the techniques, the squared cosine as its kernel); and how much of the name none explains.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz

from ingest.relabel.embedding import Embedding, features, stems
from ingest.relabel.pairs import Pair, tuning
from ingest.techniques import shipped, synonyms
from regraph_db.names import normalise

#: Shares of the embedding's cosine and of the text's similarity in a likeness; of the support beside it in the order.
_COSINE, _TEXT, _SUPPORT = 0.7, 0.3, 0.5
#: What a name of one word is worth to a longer phrase that holds the word: "texture synthesis" is no texture memory.
_ONE_WORD = 0.8
#: Names whose text is compared, those with the largest cosine; more where they have too few techniques.
_COMPARED = 64
#: The ridge: how far the regression trusts a single known name.
_RIDGE = 0.1
_PUNCTUATION = re.compile(r"[(),]")


@dataclass(frozen=True)
class Candidate:
    """A technique that a name may mean, with the confidence that it does, 0 to 1."""

    technique: str
    score: float


@dataclass(frozen=True)
class Evidence:
    """What speaks for a technique and against it. The fields' names are those of ``confidence.toml``."""

    technique: str
    likeness: float
    """Of the nearest known name of the technique, by embedding and text."""
    lead: float
    """Likeness over that of the next technique."""
    support: float
    """What all known names together give to the technique; 1 for a known name."""
    support_lead: float
    foreign: float
    """Share of the name's weight in words that no known name of the technique has."""
    unknown: float
    """Share in words that no known name at all has."""
    stranger: float
    """Cosine to the nearest name that is known to be of no technique, over that to the technique."""
    length: float
    """Words, at most five, as a share of five."""
    text: float
    """Likeness of the text alone."""

    def numbers(self) -> tuple[float, ...]:
        """The fields that are numbers, in their order."""
        return tuple(value for value in vars(self).values() if not isinstance(value, str))


@cache
def confidence_weights() -> tuple[NDArray[np.float64], float]:
    """Weights of the numbers of an :class:`Evidence`, in their order, and the constant, by ``fitting.py``."""
    text = files("ingest").joinpath("relabel/confidence.toml").read_text(encoding="utf-8")
    table: Mapping[str, float] = tomllib.loads(text)
    names = [name for name in Evidence.__annotations__ if name != "technique"]
    return np.array([table[name] for name in names]), table["constant"]


class Nearest:
    """An index over the shipped techniques, and over further ones by their names alone."""

    def __init__(self, further: Iterable[str] = (), *, pairs: Iterable[Pair] | None = None) -> None:
        """``further``: techniques beside the table's; ``pairs``: what to learn from, all tuning sets by default."""
        learnt = [pair for each in tuning() for pair in each] if pairs is None else list(pairs)
        known = dict(synonyms())
        for pair in learnt:
            if pair.same:
                known.setdefault(pair.phrase, pair.technique)
        for entry in shipped():
            known.setdefault(normalise(_PUNCTUATION.sub(" ", entry.description)), entry.name)
        strangers = [pair.phrase for pair in learnt if not pair.technique and pair.phrase not in known]
        extra = [name for name in dict.fromkeys(further) if name not in known]
        names = [*known, *extra]
        self._owners = [*known.values(), *extra]
        self._embedding = Embedding(list(zip(names, self._owners, strict=True)))
        # Rows: known names, names of none, further techniques. The regression is over the first two.
        self._known, self._fitted = len(known), len(known) + len(strangers)
        rows = self._embedding.vectors([*known, *strangers, *extra])
        self._matrix = np.ascontiguousarray(rows.T)
        self._techniques = [entry.name for entry in shipped()]
        self._coefficients = self._regression(rows[: self._fitted])
        self._texts = [_text(name) for name in names]
        self._one_word = np.array([" " not in text for text in self._texts])
        self._vocabulary: dict[str, set[str]] = {}
        for name, owner in zip(names, self._owners, strict=True):
            self._vocabulary.setdefault(owner, set()).update(stems(name))

    def _regression(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """``(fitted rows, techniques)``: coefficients of the squared cosines."""
        column = {technique: i for i, technique in enumerate(self._techniques)}
        wanted = np.zeros((len(rows), len(column)))
        for row, owner in enumerate(self._owners[: self._known]):
            wanted[row, column[owner]] = 1.0
        kernel = (rows @ rows.T).astype(np.float64) ** 2
        kernel[np.diag_indices_from(kernel)] += _RIDGE
        return np.linalg.solve(kernel, wanted).astype(np.float32)

    def nearest(self, phrases: Sequence[str], limit: int) -> list[list[Candidate]]:
        """For each phrase (in normal form) at most ``limit`` techniques, best first; equal ones by name."""
        return [self._candidates(self.evidence(phrase, limit)) for phrase in phrases]

    @staticmethod
    def _candidates(found: Sequence[Evidence]) -> list[Candidate]:
        weights, constant = confidence_weights()
        result: list[Candidate] = []
        ceiling = 1.0
        for each in found:  # the order is that of the evidence; a confidence never exceeds that of a better candidate
            ceiling = min(ceiling, 1.0 / (1.0 + math.exp(-float(weights @ np.array(each.numbers())) - constant)))
            result.append(Candidate(each.technique, round(ceiling, 4)))
        return result

    def evidence(self, phrase: str, limit: int) -> list[Evidence]:
        """What speaks for the ``limit`` techniques nearest to ``phrase``, the best first."""
        strengths = features(phrase)
        columns, values = self._embedding.sparse(strengths)
        cosine = values @ self._matrix[columns]  # a phrase has some fifty of thousands of features
        support = dict(zip(self._techniques, (cosine[: self._fitted] ** 2 @ self._coefficients).tolist(), strict=True))
        stranger = float(cosine[self._known : self._fitted].max(initial=0.0))
        likeness, closest, alike = self._likeness(phrase, np.delete(cosine, slice(self._known, self._fitted)), limit)
        for technique, near in closest.items():
            # A technique that the regression does not know stands alone: one known name, and nothing like it.
            support.setdefault(technique, near * near / (1.0 + _RIDGE))
        order = sorted(likeness, key=lambda each: (-likeness[each] - _SUPPORT * support[each], each))
        weights = self._embedding.squares(strengths)
        total = sum(weights.values()) or 1.0
        unknown = sum(square for word, square in weights.items() if word not in self._embedding) / total
        length = min(len(weights), 5) / 5
        first, second = _two_largest(likeness.values())
        support_first, support_second = _two_largest(support.values())
        result = []
        for technique in order[:limit]:
            words = self._vocabulary[technique]
            like, backing = likeness[technique], support[technique]
            result.append(
                Evidence(
                    technique,
                    likeness=like,
                    lead=like - (second if like == first else first),
                    support=backing,
                    support_lead=backing - (support_second if backing == support_first else support_first),
                    foreign=sum(square for word, square in weights.items() if word not in words) / total,
                    unknown=unknown,
                    stranger=stranger - closest[technique],
                    length=length,
                    text=alike[technique],
                )
            )
        return result

    def _likeness(
        self, phrase: str, cosine: NDArray[np.float32], limit: int
    ) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """By technique, ``limit`` at least, the likeness of its nearest name, and that name's cosine and text."""
        text = _text(phrase)
        if " " in text:
            cosine = np.where(self._one_word, cosine * _ONE_WORD, cosine)
        # The text is compared where the embedding sees something in common; the rest cannot reach a threshold.
        rows = np.argsort(-cosine, kind="stable")
        likeness: dict[str, float] = {}
        closest: dict[str, float] = {}
        alike: dict[str, float] = {}
        for place, row in enumerate(rows):
            if place >= _COMPARED and len(likeness) >= limit:
                break
            near = float(cosine[row])
            similar = fuzz.ratio(text, self._texts[row]) / 100
            if self._one_word[row] and " " in text:
                similar *= _ONE_WORD
            owner = self._owners[row]
            value = _COSINE * near + _TEXT * similar
            if value > likeness.get(owner, -1.0):
                likeness[owner], closest[owner], alike[owner] = value, near, similar
        return likeness, closest, alike


@cache
def table_index() -> Nearest:
    """The index over the shipped techniques alone."""
    return Nearest()


def _two_largest(values: Iterable[float]) -> tuple[float, float]:
    first, second, *_ = *sorted(values, reverse=True)[:2], 0.0, 0.0
    return first, second


def _text(phrase: str) -> str:
    """The stems in alphabetical order, so that the order of words does not matter."""
    return " ".join(sorted(stems(phrase)))
