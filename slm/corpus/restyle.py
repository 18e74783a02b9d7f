"""Real code in another person's layout: what changes is how it is written down, alike before and after."""

from __future__ import annotations

import random
import re

from slm.corpus.layout import TIGHT

_INDENT = re.compile(r"^( {4})+", re.MULTILINE)
_COUNT_UP = re.compile(r"; \+\+(\w+)\)")
_COUNT_AFTER = re.compile(r"; (\w+)\+\+\)")
_CAST = re.compile(r"static_cast<(\w+)>\((\w+)\)(?![\[.(])")
# Not of size_t: a pointer may stand behind it, which a static_cast refuses.
_C_CAST = re.compile(r"\((int|float|double)\)([A-Za-z_]\w*)(?![\w\[.(<])")
_STAR = re.compile(r"\b(float4?|double|int|unsigned|u?int\d+_t)\* (?=\w)")
# Not of integers: one may be the size of an array.
_LOCAL = re.compile(r"^( +)const (float|double|bool) (?=\w+ = )", re.MULTILINE)


def restyled(rng: random.Random, before: str, after: str) -> tuple[str, str]:
    """Both texts with the same new habits; none of them changes what the code does."""
    texts = [before, after]
    if rng.random() < 0.4:
        width = rng.choice(("  ", "  ", "\t", "   "))
        texts = [_INDENT.sub(lambda m: width * (len(m[0]) // 4), text) for text in texts]
    roll = rng.random()
    if roll < 0.3:
        texts = [_COUNT_UP.sub(r"; \1++)", text) for text in texts]
    elif roll < 0.6:
        texts = [_COUNT_AFTER.sub(r"; ++\1)", text) for text in texts]
    roll = rng.random()
    if roll < 0.25:
        texts = [_CAST.sub(r"(\1)\2", text) for text in texts]
    elif roll < 0.5:
        texts = [_C_CAST.sub(r"static_cast<\1>(\2)", text) for text in texts]
    if rng.random() < 0.3:
        texts = [_STAR.sub(r"\1 *", text) for text in texts]
    if rng.random() < 0.25:
        texts = [_LOCAL.sub(r"\1\2 ", text) for text in texts]
    if rng.random() < 0.15:
        for place in rng.sample(sorted(TIGHT), 2):
            texts = [re.sub(*TIGHT[place], text) for text in texts]
    return texts[0], texts[1]
