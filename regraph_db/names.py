"""Normal form of a technique's free-text name, and the resolution of aliases."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from regraph_db.errors import InputError

_TAIL = re.compile(r"\s+(optimization|technique|method|strategy)$")
_SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015/]+")
_PUNCTUATION = " .,:;\"'`"

#: Words whose last ``s`` is no plural, and plurals that the rules of :func:`_singular` would get wrong.
_IRREGULAR = {
    "alias": "alias",
    "always": "always",
    "axes": "axis",
    "bias": "bias",
    "blas": "blas",
    "caches": "cache",
    "cpus": "cpu",
    "cublas": "cublas",
    "gpus": "gpu",
    "indices": "index",
    "matrices": "matrix",
    "series": "series",
    "vertices": "vertex",
}


def _singular(word: str) -> str:
    """The singular of an English noun; a word that is none stays. Applying it twice changes nothing more."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is", "'s")) or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1]


def _word(word: str) -> str:
    return _singular(word.replace("isation", "ization"))


# A step's name is asked for by the checks, the relabeller and the store.
@lru_cache(maxsize=1 << 12)
def normalise(method: str) -> str:
    """Lower case, one space between words, no hyphens or underscores, singular, American ``-ization``, no tail such as
    "optimization"; never empty. Normalising twice changes nothing more.

    >>> normalise("Shared-Memory  Tiling Optimization")
    'shared memory tiling'
    >>> normalise("Vectorised Loads: bank conflicts")
    'vectorised load: bank conflict'
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", method).casefold())
    while True:
        words = _SEPARATORS.sub(" ", text).strip(_PUNCTUATION).split(" ")
        shorter = _TAIL.sub("", " ".join(_trimmed(word) for word in words)).strip(_PUNCTUATION)
        if shorter == text:
            break
        text = shorter
    return text or method


def _trimmed(word: str) -> str:
    """:func:`_word` of what stands before a word's trailing punctuation."""
    stem = word.rstrip(_PUNCTUATION + ")")
    return _word(stem) + word[len(stem) :]


def resolve(name: str, aliases: Mapping[str, str]) -> str:
    """Follow the chain of aliases from ``name`` to a technique. Raises :class:`InputError` on a loop."""
    seen = [name]
    while (target := aliases.get(seen[-1])) is not None and target != seen[-1]:
        if target in seen:
            raise InputError(
                f"the aliases {' → '.join([*seen, target])} close into a loop.",
                fix="Take one of them back with `regraph technique unalias`.",
            )
        seen.append(target)
    return seen[-1]
