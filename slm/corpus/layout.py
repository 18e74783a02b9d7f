"""From lines with braces to text: indentation, braces, pointer stars, and the dialects of C++ and CUDA.

Lines carry marks that a dialect resolves: ``a«i»`` a load of an input, ``@exp(x)`` a mathematical function,
``⟪x⊗y⊕z⟫`` a product and a sum that may become one fused operation.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

SUFFIX = {"float": "f", "double": ""}
FAST = frozenset(("exp", "log", "sin", "cos", "pow"))
_LOAD = re.compile(r"(\w+)«([^«»]*)»")
_FMA = re.compile(r"⟪([^⟪⟫⊗⊕]*)⊗([^⟪⟫⊗⊕]*)⊕([^⟪⟫⊗⊕]*)⟫")
_WIDEN = re.compile(r"‹([^‹›]*)›")  # a value that sequential code widens to double before it is added
_NARROW = re.compile(r"⌊([^⌊⌋]*)⌋")  # and back
_MATH = re.compile(r"@(\w+)\(")
TIGHT = {  # habits: what is written without its space
    "head": (r"\b(if|for|while) \(", r"\1("),
    "brace": (r"\) \{", "){"),
    "comma": (r"(?<=[\w)\]]), (?=[\w(])", ","),
    "sign": (r"(?<=[\w)\]]) ([*/%]) (?=[\w(])", r"\1"),
    "sum": (r"(?<=[\w)\]]) ([-+]) (?=[A-Za-z(\d])", r"\1"),
    "set": (r"(?<=[\w)\]]) (=|<|\+=|<=) (?=[\w(])", r"\1"),
}
_SINGLE = ("if (", "for (", "while (", "else")


@dataclass(frozen=True)
class Style:
    """One person's habits."""

    indent: int = 4
    allman: bool = False
    bare: bool = False  # no braces round one statement
    one_line: bool = False  # `if (c) x;`
    star_right: bool = False  # float *x
    postfix: bool = False  # i++
    math: str = "std"  # std | suffix | plain: how the sequential code calls mathematical functions
    tight: frozenset[str] = frozenset()  # habits of TIGHT
    tab: bool = False  # a tab a level
    wrap: int = 0  # columns after which a list of parameters goes on in the next line; 0: never
    hang: int = 0  # columns of that line, 0: below the first parameter


def draw_style(rng: random.Random) -> Style:
    plain = rng.random() < 0.4
    flag = (lambda p: False) if plain else (lambda p: rng.random() < p)
    return Style(
        indent=rng.choice((4, 4, 4, 2)),
        allman=flag(0.2),
        bare=flag(0.5),
        one_line=flag(0.35),
        star_right=flag(0.35),
        postfix=rng.random() < 0.4,
        math=rng.choice(("std", "std", "suffix", "plain")),
        tight=frozenset(place for place in TIGHT if rng.random() < 0.4) if rng.random() < 0.15 else frozenset(),
        tab=rng.random() < 0.03,
        wrap=rng.choice((80, 100, 100, 120)) if rng.random() < 0.3 else 0,
        hang=rng.choice((0, 0, 4, 8)),
    )


def resolve(
    text: str, kind: str, *, device: bool, math: str, ldg: str = "", fast: bool = False, fma: bool = False
) -> str:
    """Resolve the marks for element type ``kind``; ``ldg`` is "", "&a[i]" or "a + i"."""
    suffix = SUFFIX.get(kind, "")
    if math == "plain" and ("@min(" in text or "@max(" in text):
        math = "std"  # exp() of a float would be a double, which std::min refuses beside a float
    while "«" in text:
        if ldg and device:
            text = _LOAD.sub(r"__ldg(&\1[\2])" if ldg == "&a[i]" else r"__ldg(\1 + \2)", text)
        else:
            text = _LOAD.sub(r"\1[\2]", text)
    if "‹" in text:
        text = _WIDEN.sub(r"\1" if device else r"static_cast<double>(\1)" if math == "std" else r"(double)\1", text)
    if "@wide" in text or "⌊" in text:  # an accumulator that is a double in sequential code only
        zero = "0.0f" if kind == "float" else "0.0"
        text = text.replace("@wide0", zero if device else "0.0").replace("@wide ", f"{kind} " if device else "double ")
        text = _NARROW.sub(
            r"\1" if device else rf"static_cast<{kind}>(\1)" if math == "std" else rf"({kind})(\1)", text
        )
    while "⟪" in text:
        text = _FMA.sub(rf"fma{suffix}(\1, \2, \3)" if fma else r"\1 * \2 + \3", text)

    def name(match: re.Match[str]) -> str:
        base = match[1]
        if base == "popcount":
            return "__popc(" if device else "__builtin_popcount("
        if base in ("imin", "imax"):  # of indexes
            return f"{base[1:]}(" if device else f"std::{base[1:]}("
        whole = kind not in SUFFIX
        if device:
            if whole:
                return f"{base}("
            if base in ("min", "max", "abs"):
                return f"f{base}{suffix}("
            return f"__{base}f(" if fast and base in FAST and kind == "float" else f"{base}{suffix}("
        if whole or math == "std" or base in ("min", "max"):
            return f"std::{base}("
        if base == "abs":
            base = "fabs"
        return f"{base}{suffix if math == 'suffix' else ''}("

    return _MATH.sub(name, text)


def lay_out(lines: list[str], style: Style) -> str:
    """Indent ``lines``; a line ending in ``{`` opens and one starting with ``}`` closes a block."""
    work = _braces(lines, style)
    depth = 0
    out: list[str] = []
    for line in work:
        extra = 0
        while line.startswith("\t"):
            extra += 1
            line = line[1:]
        if line.startswith("}"):
            depth -= 1
        pad = "\t" * (depth + extra) if style.tab else " " * (style.indent * (depth + extra))
        out.append(pad + line if line else "")
        if line.endswith("{"):
            depth += 1
    text = "\n".join(out) + "\n"
    if style.star_right:
        text = re.sub(
            r"\b(float|double|int|unsigned|long long|uint8_t|int8_t|uint16_t|unsigned char)\* (?=\w)", r"\1 *", text
        )
    for place in style.tight:
        text = re.sub(*TIGHT[place], text)
    return _wrapped(text, style) if style.wrap else text


def _wrapped(text: str, style: Style) -> str:
    """Long heads of functions in several lines."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith(("extern", "__global__", "static inline", "__device__")):
            pad = " " * (style.hang or line.find("(") + 1)
            while len(line) > style.wrap and (cut := line.rfind(", ", len(pad) + 1, style.wrap)) > 0:
                lines.append(line[: cut + 1])
                line = pad + line[cut + 2 :]
        lines.append(line)
    return "\n".join(lines)


def _braces(lines: list[str], style: Style) -> list[str]:
    work = list(lines)
    if style.bare or style.one_line:
        k = 0
        while k + 2 < len(work):
            head, body, tail = work[k : k + 3]
            simple = (
                head.startswith(_SINGLE)
                and head.endswith(" {")
                and tail == "}"
                and body.endswith(";")
                and not re.match(r"(const |int |float |double |unsigned |long )", body)
                and not body.startswith("\t")
            )
            if simple and style.one_line and head.startswith("if"):
                work[k : k + 3] = [f"{head[:-2]} {body}"]
            elif simple and style.bare:
                work[k : k + 3] = [head[:-2], "\t" + body]
            k += 1
    if style.allman:
        split: list[str] = []
        for line in work:
            if line.startswith("} else"):
                split += ["}", line[2:-2], "{"]
            elif line.endswith(" {") and not line.startswith("\t"):
                split += [line[:-2], "{"]
            else:
                split.append(line)
        work = split
    return work
