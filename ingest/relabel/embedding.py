"""An offline embedding of technique names: weighted words, word pairs and letters of the trade's own vocabulary.

Deterministic, from small tables of text. What words mean beyond them stands in ``meaning.py``.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from regraph_db.names import normalise

_PARENTHESES = re.compile(r"[(\[][^)\]]*[)\]]")
_WORD = re.compile(r"[a-z][a-z0-9.]*[a-z0-9]|\d+d\b|\d+\.5d\b|\d+(?=\sbit)|[a-z]")
_ENDINGS = tuple(
    sorted(
        [
            "izations",
            "ization",
            "ational",
            "ations",
            "ation",
            "izers",
            "izing",
            "ising",
            "ized",
            "ised",
            "izes",
            "ises",
            "izer",
            "ize",
            "ise",
            "encies",
            "ences",
            "ence",
            "ancy",
            "ance",
            "ings",
            "ing",
            "ions",
            "ion",
            "ables",
            "able",
            "ants",
            "ant",
            "ents",
            "ent",
            "ments",
            "ment",
            "ers",
            "er",
            "ors",
            "or",
            "ed",
            "es",
            "ly",
            "al",
            "ive",
            "ity",
            "e",
            "s",
            "y",
        ],
        key=len,
        reverse=True,
    )
)
#: Letters that a stem keeps at least.
_STEM = 3
#: Strengths, beside a stem's 1, of a pair of stems, of four letters, and of a word in parentheses.
_PAIR, _LETTERS, _ASIDE = 0.35, 0.15, 0.35
#: The strength of what stands behind one of these words: "warp per row *for coalesced access*" is first of all warp
#: per row.
_BEHIND = 0.7
_HINGE = re.compile(
    r"\s(?:with|for|by|and|via|using|instead of|against|plus|over|to|of|between|across|among|within|inside|through|from"
    r"|without|before|so that|when|while|into|onto|as|that|where|until|after|in|on|at|per)\s|[:,;]\s"
)
#: The weight of a word that no name of the table holds, as a share of the largest: it may only qualify, or name
#: something new.
_UNKNOWN = 0.7


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A word without its English endings, mapped to the first of its group in ``words.toml``."""
    _, groups, exact = _words()
    if word in exact:
        return exact[word]
    bare = _bare(word)
    return groups.get(bare, bare)


def _bare(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM:
            word = word[: -len(ending)]
            break
    if len(word) > _STEM and word[-1] == word[-2] and word[-1] not in "sl":
        return word[:-1]
    return word


_TOKEN = re.compile(r"[a-z0-9]+|[^a-z0-9\s]+")


@lru_cache(maxsize=65_536)
def spelt(phrase: str) -> str:
    """A phrase with what its abbreviations and signs stand for: "smem" is shared memory."""
    short = _short()
    return _TOKEN.sub(lambda found: f" {short[found[0]]} " if found[0] in short else found[0], phrase)


@cache
def _short() -> dict[str, str]:
    table = tomllib.loads(files("ingest").joinpath("relabel/words.toml").read_text(encoding="utf-8"))
    short: dict[str, str] = table["short"]
    return short


@cache
def _words() -> tuple[frozenset[str], dict[str, str], dict[str, str]]:
    """The stems of empty words; for each grouped stem its group's first; and the same for words that count as they
    stand."""
    table = tomllib.loads(files("ingest").joinpath("relabel/words.toml").read_text(encoding="utf-8"))
    groups = {_bare(word): _bare(group[0]) for group in table["same"] for word in group}
    exact = {word: _bare(group[0]) for group in table["exact"] for word in group}
    return frozenset(map(_bare, table["empty"])), groups, exact


def stems(phrase: str) -> list[str]:
    """The stems of a phrase in order, empty words left out."""
    empty = _words()[0]
    return [each for word in _WORD.findall(spelt(phrase).replace("_", "")) if (each := stem(word)) not in empty]


def features(phrase: str) -> dict[str, float]:
    """What a name in normal form is made of, by strength before the weights: stems, pairs of stems, letters of each
    stem.

    What stands behind a preposition or in parentheses counts less, unless nothing else is there.
    """
    asides = _PARENTHESES.findall(phrase)
    outside = normalise(_PARENTHESES.sub(" ", phrase)) if asides else phrase
    result: dict[str, float] = {}
    parts = _HINGE.split(outside, maxsplit=1)
    main = stems(parts[0])
    _count(result, main, 1.0)
    if len(parts) > 1:
        behind = [each for each in stems(parts[1]) if each not in main]
        _count(result, behind, _BEHIND if main else 1.0)
        main += behind
    inside = [each for aside in asides for each in stems(normalise(aside.strip("()[]"))) if each not in main]
    _count(result, inside, _ASIDE if main else 1.0)
    return result


def _count(result: dict[str, float], words: Sequence[str], strength: float) -> None:
    """Add the features of ``words``; what is there already was counted at no less a strength."""
    letters = strength * _LETTERS
    for word in words:
        result.setdefault(word, strength)
        for key in _letters(word):
            result.setdefault(key, letters)
    for first, second in pairwise(words):
        key = " ".join(sorted((first, second)))
        result.setdefault(key, strength * _PAIR)


@lru_cache(maxsize=65_536)
def _letters(word: str) -> tuple[str, ...]:
    """Each four letters of a stem that stand together, its ends marked."""
    marked = f"<{word}>"
    return tuple("#" + marked[i : i + 4] for i in range(len(marked) - 3))


class Embedding:
    """Vectors over the features of the names it was made from.

    A feature weighs the more the fewer techniques have it: "warp" and "memory" say little, "shuffle" says much.
    """

    def __init__(self, owners: Iterable[tuple[str, str]]) -> None:
        """``owners``: every (name, technique) that the vocabulary comes from."""
        techniques: dict[str, set[str]] = {}
        count = set()
        for name, technique in owners:
            count.add(technique)
            for feature in features(name):
                techniques.setdefault(feature, set()).add(technique)
        total = len(count) + 1
        self._weights: dict[str, float] = {f: math.log(total / len(owned)) + 0.1 for f, owned in techniques.items()}
        self._columns = {feature: (i, self._weights[feature]) for i, feature in enumerate(sorted(techniques))}
        self._unknown = _UNKNOWN * math.log(total)

    @property
    def dimensions(self) -> int:
        """Entries of a vector."""
        return len(self._columns)

    def __contains__(self, feature: str) -> bool:
        return feature in self._columns

    def sparse(self, strengths: Mapping[str, float]) -> tuple[list[int], NDArray[np.float32]]:
        """The columns of a phrase's vector that are not zero, and their values, from the phrase's features. A phrase of
        known features has length 1; unknown ones shorten it."""
        columns: list[int] = []
        values: list[float] = []
        square = 0.0
        for feature, strength in strengths.items():
            known = self._columns.get(feature)
            if known is not None:
                column, weight = known
                values.append(weight * strength)
                columns.append(column)
            elif _is_stem(feature):
                square += (self._unknown * strength) ** 2
        square += sum(value * value for value in values)
        return columns, np.array(values, np.float32) / np.float32(math.sqrt(square) or 1.0)

    def squares(self, strengths: Mapping[str, float]) -> dict[str, float]:
        """The squared weight of each stem among a phrase's features, unknown ones included."""
        return {
            feature: (self._weights.get(feature, self._unknown) * strength) ** 2
            for feature, strength in strengths.items()
            if _is_stem(feature)
        }


def _is_stem(feature: str) -> bool:
    return feature[0] != "#" and " " not in feature
