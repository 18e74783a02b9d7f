"""The same change to the same line of two codes: what a technique leaves alone must be copied, whatever it says.

A line that stands once in the code before and once in the code after gets other operators, numbers and calls, so that
it makes no sense any more. Nothing but copying can then produce it; a network that recalls what such lines usually say
is wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from slm.corpus.lexicon import RESERVED

_TOKEN = re.compile(
    r"[A-Za-z_]\w*|\d[\w.]*(?:[eE][-+]?\d+f?)?|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|->|::|\s+|."
)
ARITHMETIC = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")
COMPARISON = ("<", ">", "<=", ">=", "==", "!=")
LOGIC = ("&&", "||")
ASSIGNMENT = ("+=", "-=", "*=", "/=", "|=", "&=", "^=", "<<=", ">>=", "%=")
SIGNS = ("!", "~", "?", ":", "::", "->", ".", ",", "(", ")", "[", "]", "=", "++", "--")
CLASSES = (ARITHMETIC, COMPARISON, LOGIC, ASSIGNMENT)
# Lines that say how a kernel is launched and where a thread stands, and lines that are more than their words.
_FIXED = re.compile(
    r"#|<<<|\b(blockIdx|threadIdx|blockDim|gridDim|"
    r"extern|dim3|__\w+|cuda\w+|template|using|return;)|^//"
)
_WORD = re.compile(r"[A-Za-z_]\w*")


def number(rng: random.Random) -> str:
    """A number in some spelling."""
    value = rng.choice((rng.randint(0, 9), rng.randint(10, 99), rng.randint(100, 99999)))
    return rng.choice(
        (
            str(value),
            str(value),
            f"{value / 8}f",
            f"{rng.uniform(0, 3):.{rng.randint(1, 6)}f}",
            f"{rng.uniform(0, 9):.{rng.randint(1, 4)}f}f",
            f"1e-{rng.randint(1, 12)}{rng.choice(('', 'f'))}",
            hex(value),
            f"{value}{rng.choice(('u', 'U', 'L', 'ULL', 'LL'))}",
            f".{value}f",
        )
    )


def name(rng: random.Random, fresh: Sequence[str]) -> str:
    """An identifier that no language or header owns."""
    while True:
        word = rng.choice(fresh)
        if rng.random() < 0.35:
            word += rng.choice(("_", "")) + rng.choice(fresh)
        if rng.random() < 0.15:
            word += str(rng.randint(0, 99))
        if word not in RESERVED and not word[0].isdigit():
            return word


def soup(rng: random.Random, fresh: Sequence[str], known: Sequence[str]) -> str:
    """Words and signs in no order."""
    parts = []
    for _ in range(rng.randint(3, 12)):
        roll = rng.random()
        if roll < 0.45:
            parts.append(rng.choice(fresh))
        elif roll < 0.6 and known:
            parts.append(rng.choice(known))
        elif roll < 0.7:
            parts.append(number(rng))
        else:
            parts.append(rng.choice((*rng.choice(CLASSES), *SIGNS)))
    return "".join(part + rng.choice((" ", " ", "")) for part in parts).strip().rstrip("\\")


def changed(rng: random.Random, line: str, fresh: Sequence[str], *, operators: bool) -> str:
    """``line`` (without its indentation) with other operators, numbers, accesses; its ends stay what they are."""
    tokens = _TOKEN.findall(line)
    out: list[str] = []
    share = rng.choice((0.15, 0.3, 0.6))
    for k, token in enumerate(tokens):
        following = tokens[k + 1] if k + 1 < len(tokens) else ""
        spaced = 0 < k < len(tokens) - 1 and tokens[k - 1].isspace() and following.isspace()
        if rng.random() >= share:
            out.append(token)
        elif token[0].isdigit():
            out.append(number(rng))
        elif spaced and operators:
            kinds = [kind for kind in CLASSES if token in kind]
            out.append(rng.choice(kinds[0]) if kinds else token)
        elif _WORD.fullmatch(token) and token not in RESERVED and following not in ("(", "::", "<") and k > 1:
            named = following.isspace() and tokens[k - 1].isspace() and "=" in tokens[k:]
            if named or tokens[k - 1] in ("::", ".", "->"):
                out.append(token)  # part of a longer name, or perhaps the name that a declaration gives
                continue
            out.append(
                rng.choice(
                    (
                        f"{name(rng, fresh)}({token})",
                        f"{name(rng, fresh)}({token}, {number(rng)})",
                        f"({token} {rng.choice(ARITHMETIC)} {number(rng)})",
                        f"{name(rng, fresh)}[{token}]",
                        f"{token}.{name(rng, fresh)}",
                        f"{token}->{name(rng, fresh)}",
                        f"!{token}",
                        f"-{token}",
                        f"~{token}",
                        f"(float){token}",
                        f"std::{name(rng, fresh)}({token})",
                        f"({token} {rng.choice(COMPARISON)} {name(rng, fresh)} ? {token} : {number(rng)})",
                    )
                )
            )
        else:
            out.append(token)
    return "".join(out)


def scrambled(
    rng: random.Random, before: str, after: str, fresh: Sequence[str], *, operators: bool, most: int
) -> tuple[str, str]:
    """Change up to ``most`` lines that both codes hold once, alike in both; with ``operators`` those too."""
    lines_a, lines_b = before.split("\n"), after.split("\n")
    bare_a, bare_b = [line.strip() for line in lines_a], [line.strip() for line in lines_b]
    places = [
        k
        for k, line in enumerate(bare_a)
        if len(line) > 6
        and lines_a[k].startswith((" ", "\t"))
        and not _FIXED.search(line)
        and bare_a.count(line) == 1
        and bare_b.count(line) == 1
    ]
    rng.shuffle(places)
    for k in places[:most]:
        new, there = changed(rng, bare_a[k], fresh, operators=operators), bare_b.index(bare_a[k])
        lines_a[k] = lines_a[k][: len(lines_a[k]) - len(bare_a[k])] + new
        lines_b[there] = lines_b[there][: len(lines_b[there]) - len(bare_b[there])] + new
    return "\n".join(lines_a), "\n".join(lines_b)
