"""Remarks above a function, as people write them: words, a formula, or a sentence with signs and numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence

_WORDS = (
    "of the each over for and elements per row sum one value every with row-major n x is are not in-place at index "
    "max(a, b) a*b+c [0, 1) 10^9 1e-6 2n 32 0 -1 (n-1) k/2 that above border, which stay as they out-of-range "
    "means mean(x^2) sqrt(v) exp(-x) i.e. e.g. e^x `n` weights' it's"
)
WORDS = tuple(_WORDS.split())


def remark(rng: random.Random, known: Sequence[str], pieces: Sequence[str]) -> str:
    """One `//` line or two; ``known`` are the program's own names, ``pieces`` any other words."""

    def word() -> str:
        roll = rng.random()
        if roll < 0.3 and known:
            return rng.choice(known)
        return rng.choice(pieces) if roll < 0.5 and pieces else rng.choice(WORDS)

    def line() -> str:
        kind = rng.random()
        words = [word() for _ in range(rng.randint(2, 14))]
        if kind < 0.35:
            return " ".join(words[:7])
        if kind < 0.6:
            signs = [rng.choice(("+", "-", "*", "/", "<", ">=", "^", "= ", "of", "in")) for _ in words]
            terms = (f"{w.rstrip(',')} {s}" for w, s in zip(words[:6], signs, strict=False))  # ", =" is cut in two ways
            return f"{word().rstrip(',')} = {' '.join(terms)} {word()}"
        return " ".join(w + rng.choice(("",) * 8 + (",", ";", ".", ":", " (" + word() + ")")) for w in words)

    lines = [line() for _ in range(1 if rng.random() < 0.8 else 2)]
    lines[0] = lines[0][:1].upper() + lines[0][1:] if rng.random() < 0.7 else lines[0]
    return "// " + "\n// ".join(text.rstrip(";:,{") for text in lines) + rng.choice((".", ".", ""))
