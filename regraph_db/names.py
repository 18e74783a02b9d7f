"""Normal form of a technique's free-text name, and the resolution of aliases."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from regraph_db.errors import InputError

_TAILS = re.compile(r"\s+(optimi[sz]ations?|techniques?|methods?|strategy|strategies)$")
_SEPARATORS = re.compile(r"[\s_\-\u2010-\u2015/]+")


def normalise(method: str) -> str:
    """Lower case, one space between words, no hyphens or underscores, no "optimization" tail; never empty.

    >>> normalise("Shared-Memory  Tiling Optimization")
    'shared memory tiling'
    """
    text = unicodedata.normalize("NFKC", method).casefold()
    text = _SEPARATORS.sub(" ", text).strip(" .,:;\"'`")
    shorter = _TAILS.sub("", text)
    return shorter or text or method


def resolve(name: str, aliases: Mapping[str, str]) -> str:
    """Follow the chain of aliases from ``name`` to a technique. Raises :class:`InputError` on a loop."""
    seen = [name]
    while (target := aliases.get(seen[-1])) is not None and target != seen[-1]:
        if target in seen:
            raise InputError(f"the aliases {' → '.join([*seen, target])} close into a loop.", fix="Take one of them back with `regraph technique unalias`.")
        seen.append(target)
    return seen[-1]
