"""The techniques nearest to a name, and how sure it is that the nearest one is meant.

The index holds the table's names, synonyms and descriptions, and the names of the labelled pairs. Three views of a name
are weighed into one confidence: the nearest known names, by embedding and by text; what all of them together say (a
kernel ridge regression onto the techniques, see ``known.py``); and how much of the name none explains.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz

from ingest.relabel.embedding import Embedding, features, stem, stems
from ingest.relabel.known import RIDGE, TOGETHER, Known, shipped_coefficients, supports
from ingest.relabel.pairs import Pair, learnt
from ingest.techniques import shipped, synonyms
from regraph_db.names import normalise

#: Shares of the embedding's cosine and of the text's similarity in a likeness; of the support beside it in the order.
_COSINE, _TEXT, _SUPPORT = 0.7, 0.3, 2.0
#: What a name of one word is worth to a longer phrase that holds the word: "texture synthesis" is no texture memory.
_ONE_WORD = 0.8
#: Names whose text is compared, those with the largest cosine; more where they have too few techniques.
_COMPARED = 32
_PUNCTUATION = re.compile(r"[(),]")
#: Stems that turn a name round: "atomic-free accumulation" is no atomic operation.
_NEGATION = frozenset({stem("avoid"), stem("without"), stem("no"), stem("non")})


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
    none: float
    """What all known names together give to no technique at all."""
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
    contained: float
    """Share of the name's weight in the words of one known name of the technique, two words at least, that it holds
    whole: "warp-per-row SpMV"."""
    negated: float
    """1 where the name or the nearest known one says "avoid", "without" or "free", and the other does not."""

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


class _Near(NamedTuple):
    """A technique's name nearest to another: likeness, cosine, likeness of the text, and whether it is negated."""

    likeness: float
    cosine: float
    text: float
    negated: bool


class Nearest:
    """An index over the shipped techniques, and over further ones by their names alone."""

    def __init__(self, further: Iterable[str] = (), *, pairs: Iterable[Pair] | None = None) -> None:
        """``further``: techniques beside the table's; ``pairs``: what to learn from; by default
        :func:`~ingest.relabel.pairs.learnt`, as it was learnt when the project was made."""
        given = learnt() if pairs is None else tuple(pairs)
        known = dict(synonyms())
        for pair in given:
            if pair.same:
                known.setdefault(pair.phrase, pair.technique)
        for entry in shipped():
            known.setdefault(normalise(_PUNCTUATION.sub(" ", entry.description)), entry.name)
        strangers = list(dict.fromkeys(p.phrase for p in given if not p.technique and p.phrase not in known))
        extra = [name for name in dict.fromkeys(further) if name not in known]
        self._owners = [*known.values(), *extra]
        names = [*known, *extra]
        # Rows: known names, names of none, further techniques. The regression is over the first two.
        self._known, self._fitted = len(known), len(known) + len(strangers)
        embedding = Embedding(list(zip(names, self._owners, strict=True)))
        self._names = Known(embedding, [*known, *strangers, *extra])
        self._techniques = [entry.name for entry in shipped()]
        self._coefficients = shipped_coefficients(self._names, self._fitted) if pairs is None else self.coefficients()
        self._texts = [_text(name) for name in names]
        self._share = np.array([1.0 if " " in text else _ONE_WORD for text in self._texts], np.float32)
        self._stems = [frozenset(stems(name)) for name in names]
        self._negated = [not _NEGATION.isdisjoint(words) for words in self._stems]
        self._vocabulary: dict[str, set[str]] = {}
        for words, owner in zip(self._stems, self._owners, strict=True):
            self._vocabulary.setdefault(owner, set()).update(words)

    def coefficients(self) -> NDArray[np.float32]:
        """``(known names and names of none, techniques and none)``: of the regression, computed anew."""
        number = {technique: i for i, technique in enumerate(self._techniques)}
        owners = [number[owner] for owner in self._owners[: self._known]]
        return self._names.coefficients([*owners, *[-1] * (self._fitted - self._known)], len(number))

    def names_digest(self) -> str:
        """Of the names that the coefficients belong to."""
        return self._names.digest(self._fitted)

    def nearest(self, phrases: Sequence[str], limit: int) -> list[list[Candidate]]:
        """For each phrase (in normal form) at most ``limit`` techniques, best first; equal ones by name."""
        return [self._candidates(found) for found in self.evidence(phrases, limit)]

    @staticmethod
    def _candidates(found: Sequence[Evidence]) -> list[Candidate]:
        weights, constant = confidence_weights()
        result: list[Candidate] = []
        ceiling = 1.0
        for each in found:  # the order is that of the evidence; a confidence never exceeds that of a better candidate
            ceiling = min(ceiling, 1.0 / (1.0 + math.exp(-float(weights @ np.array(each.numbers())) - constant)))
            result.append(Candidate(each.technique, round(ceiling, 4)))
        return result

    def evidence(self, phrases: Sequence[str], limit: int) -> list[list[Evidence]]:
        """For each phrase what speaks for the ``limit`` techniques nearest to it, the best first."""
        found: list[list[Evidence]] = []
        for begin in range(0, len(phrases), TOGETHER):
            some = list(phrases[begin : begin + TOGETHER])
            strengths = [features(phrase) for phrase in some]
            cosines = np.zeros((TOGETHER, self._names.count), np.float32)
            for row, each in enumerate(strengths):
                cosines[row] = self._names.words(each)
            # Always as many rows, so that a name's numbers do not depend on its company.
            padded = some + [""] * (TOGETHER - len(some))
            said = supports(self._names.kernels(padded, cosines, self._fitted), self._coefficients)
            found += [self._evidence(*each, limit) for each in zip(some, strengths, cosines, said, strict=False)]
        return found

    def _evidence(
        self,
        phrase: str,
        strengths: Mapping[str, float],
        cosine: NDArray[np.float32],
        said: NDArray[np.float32],
        limit: int,
    ) -> list[Evidence]:
        *backed, none = said.tolist()
        support = dict(zip(self._techniques, backed, strict=True))
        stranger = float(cosine[self._known : self._fitted].max(initial=0.0))
        weights = self._names.embedding.squares(strengths)
        total = sum(weights.values()) or 1.0
        named = np.concatenate([cosine[: self._known], cosine[self._fitted :]])
        near, contained = self._nearest_names(phrase, named, weights, limit)
        for technique, name in near.items():
            # A technique that the regression does not know stands alone: one known name, and nothing like it.
            support.setdefault(technique, name.cosine**2 / (1.0 + RIDGE))
        order = sorted(near, key=lambda each: (-near[each].likeness - _SUPPORT * support[each], each))
        unknown = sum(square for word, square in weights.items() if word not in self._names.embedding) / total
        negated = not _NEGATION.isdisjoint(weights)
        first, second = _two_largest(name.likeness for name in near.values())
        support_first, support_second = _two_largest(support.values())
        result = []
        for technique in order[:limit]:
            words = self._vocabulary[technique]
            name, backing = near[technique], support[technique]
            result.append(
                Evidence(
                    technique,
                    likeness=name.likeness,
                    lead=name.likeness - (second if name.likeness == first else first),
                    support=backing,
                    support_lead=backing - (support_second if backing == support_first else support_first),
                    none=none,
                    foreign=sum(square for word, square in weights.items() if word not in words) / total,
                    unknown=unknown,
                    stranger=stranger - name.cosine,
                    length=min(len(weights), 5) / 5,
                    text=name.text,
                    contained=contained.get(technique, 0.0) / total,
                    negated=float(negated != name.negated),
                )
            )
        return result

    def _nearest_names(
        self, phrase: str, cosine: NDArray[np.float32], weights: Mapping[str, float], limit: int
    ) -> tuple[dict[str, _Near], dict[str, float]]:
        """By technique, ``limit`` at least, its nearest name; and the weight of what ``phrase`` holds of one of the
        technique's names, where it holds the whole of it."""
        text = _text(phrase)
        several = " " in text
        if several:
            cosine = cosine * self._share
        held = frozenset(weights)
        found: dict[str, _Near] = {}
        contained: dict[str, float] = {}
        for place, row in enumerate(_by_size(cosine, _COMPARED + 1)):
            if place >= _COMPARED and len(found) >= limit:
                break
            near = cosine.item(row)
            other, owner, words = self._texts[row], self._owners[row], self._stems[row]
            similar = fuzz.ratio(text, other) / 100
            if several and " " not in other:
                similar *= _ONE_WORD
            value = _COSINE * near + _TEXT * similar
            if owner not in found or value > found[owner].likeness:
                found[owner] = _Near(value, near, similar, self._negated[row])
            if len(words) > 1 and words <= held:
                contained[owner] = max(contained.get(owner, 0.0), sum(weights[word] for word in words))
        return found, contained


@cache
def table_index() -> Nearest:
    """The index over the shipped techniques alone."""
    return Nearest()


def _by_size(values: NDArray[np.float32], first: int) -> Iterator[int]:
    """The places of ``values``, the largest first, equal ones in their order; ``first`` are sorted before the rest."""
    # From the large end: most values are zero, and a partition from the small end is ten times as slow for it.
    least = -np.partition(-values, first - 1)[first - 1] if first < len(values) else -math.inf
    for wanted in (np.greater_equal, np.less):
        places = np.flatnonzero(wanted(values, least))
        yield from places[np.argsort(-values[places], kind="stable")].tolist()


def _two_largest(values: Iterable[float]) -> tuple[float, float]:
    first, second, *_ = *sorted(values, reverse=True)[:2], 0.0, 0.0
    return first, second


def _text(phrase: str) -> str:
    """The stems in alphabetical order, so that the order of words does not matter."""
    return " ".join(sorted(stems(phrase)))
