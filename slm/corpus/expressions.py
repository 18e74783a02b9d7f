"""Random expressions and statements over given leaves, as text with the marks of ``layout``."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Text = tuple[str, int]  # the text and how tightly it binds: 0 comparison, 1 sum, 2 product, 3 atom


def literal(rng: random.Random, kind: str, *, positive: bool = True) -> str:
    if kind in ("float", "double"):
        value = rng.choice(
            (0.5, 2.0, 1.0, 0.25, 1.5, 3.0, 0.1, 4.0, 0.01, 10.0, round(rng.uniform(0, 5), rng.randint(1, 3)))
        )
        return f"{value}f" if kind == "float" else f"{value}"
    return str(rng.choice((1, 2, 3, 4, 5, 7, rng.randint(2, 99))))


def zero(kind: str) -> str:
    return {"float": "0.0f", "double": "0.0"}.get(kind, "0")


def _wrap(part: Text, level: int) -> str:
    return f"({part[0]})" if part[1] < level else part[0]


def _unary(rng: random.Random, kind: str, part: Text) -> Text:
    text = part[0]
    if kind in ("float", "double"):
        forms: list[Callable[[], Text]] = [
            lambda: (f"@exp(-{_wrap(part, 3)})", 3),
            lambda: (
                f"@log({_wrap(part, 1)} * {_wrap(part, 2)} + {literal(rng, kind)})"
                if part[1] == 3 and len(text) < 16
                else f"@log(@abs({text}) + {_one(kind)})",
                3,
            ),
            lambda: (f"@sin({text})", 3),
            lambda: (f"@cos({text})", 3),
            lambda: (f"@tanh({text})", 3),
            lambda: (f"@sqrt(@abs({text}))", 3),
            lambda: (f"@abs({text})", 3),
            lambda: (f"@max({text}, {zero(kind)})", 3),
            lambda: (f"@min({text}, {literal(rng, kind)})", 3),
            lambda: (f"{_one(kind)} / ({_one(kind)} + @exp(-{_wrap(part, 3)}))", 2),
            lambda: (f"{text} * {text}", 2) if part[1] == 3 and len(text) < 16 else (f"@abs({text})", 3),
        ]
    else:
        forms = [
            lambda: (f"@abs({text})", 3),
            lambda: (f"({_wrap(part, 2)} & {rng.choice((1, 3, 7, 15, 63, 255))})", 3),
            lambda: (f"({_wrap(part, 2)} >> {rng.randint(1, 4)})", 3),
            lambda: (f"@max({text}, {rng.randint(0, 9)})", 3),
            lambda: (f"@min({text}, {rng.randint(1, 99)})", 3),
            lambda: (f"{_wrap(part, 3)} % {rng.randint(2, 17)}", 2),
            lambda: (f"({_wrap(part, 2)} ^ {rng.randint(1, 63)})", 3),
        ]
    return rng.choice(forms)()


def _one(kind: str) -> str:
    return {"float": "1.0f", "double": "1.0"}.get(kind, "1")


def expression(rng: random.Random, kind: str, leaves: Sequence[str], extra: int = 1) -> Text:
    """Every leaf once, up to ``extra`` constants, some functions."""
    parts: list[Text] = [(leaf, 3) for leaf in leaves]
    for _ in range(rng.randint(0 if len(leaves) > 1 else min(1, extra), extra)):
        parts.append((literal(rng, kind), 4))
    rng.shuffle(parts)
    if parts[0][1] == 4 and len(parts) > 1:
        parts[0], parts[1] = parts[1], parts[0]

    def maybe(part: Text) -> Text:
        return _unary(rng, kind, part) if part[1] != 4 and rng.random() < 0.25 else part

    tree = maybe(parts[0])
    for item in parts[1:]:
        part = maybe(item)
        left, right = (tree, part) if part[1] == 4 or rng.random() < 0.75 else (part, tree)
        op = rng.choice("++**-")
        if op == "*":
            tree = (f"{_wrap(left, 2)} * {_wrap(right, 2 if right[1] > 2 else 3)}", 2)
            if rng.random() < 0.25 and part[1] != 4:
                tree = (f"⟪{_wrap(left, 2)}⊗{_wrap(right, 3)}⊕{literal(rng, kind)}⟫", 1)
        elif op == "+" and left[1] == 2 and left[0].count(" * ") == 1 and "(" not in left[0] and "/" not in left[0]:
            first, second = left[0].split(" * ")
            tree = (f"⟪{first}⊗{second}⊕{_wrap(right, 1)}⟫", 1)
        else:
            tree = (f"{_wrap(left, 1)} {op} {_wrap(right, 2 if op == '-' else 1)}", 1)
        if rng.random() < 0.12:
            tree = maybe((tree[0], min(tree[1], 3)))
    return tree


def text(rng: random.Random, kind: str, leaves: Sequence[str], extra: int = 1) -> str:
    return expression(rng, kind, leaves, extra)[0]


def condition(rng: random.Random, kind: str, left: str, right: str | None = None) -> str:
    op = rng.choice(("<", ">", "<", ">", "<=", ">="))
    return f"{left} {op} {right or literal(rng, kind)}"


def statements(
    rng: random.Random,
    kind: str,
    leaves: Sequence[str],
    local: Callable[[], str],
    count: int,
    counter: Callable[[], str],
    increment: Callable[[str], str],
) -> tuple[list[str], list[str]]:
    """Definitions, branches, ternaries and short loops -> (lines, names that hold a value)."""
    lines: list[str] = []
    todo = list(leaves)
    rng.shuffle(todo)
    have: list[str] = []
    fixed: set[str] = set()

    def some() -> list[str]:
        got = [todo.pop() for _ in range(min(len(todo), rng.randint(1, 2)))]
        if have and rng.random() < 0.7:
            got.append(rng.choice(have))
        return list(dict.fromkeys(got)) or [rng.choice(have or list(leaves))]

    while len(lines) < count or (todo and len(have) < 6):
        free = [v for v in have if v not in fixed]
        roll = rng.random()
        if roll < 0.5 or not free:
            name = local()
            const = "const " if rng.random() < 0.35 else ""
            roll = rng.random()
            if roll < 0.2 and have:
                pick = rng.choice(have)
                value = f"{condition(rng, kind, pick)} ? {text(rng, kind, some())} : {text(rng, kind, some(), 0)}"
            elif roll < 0.45 and todo:
                value = todo.pop()
            else:
                value = text(rng, kind, some())
            lines.append(f"{const}{kind} {name} = {value};")
            have.append(name)
            if const:
                fixed.add(name)
        elif roll < 0.72:
            name = rng.choice(free)
            other = rng.choice(have) if rng.random() < 0.3 else None
            lines += [f"if ({condition(rng, kind, name, other)}) {{", f"{name} = {text(rng, kind, some())};"]
            if rng.random() < 0.4:
                lines += ["} else {", f"{name} {rng.choice(('=', '+=', '-='))} {text(rng, kind, some())};"]
            lines.append("}")
        elif roll < 0.86:
            name = rng.choice(free)
            lines.append(f"{name} {rng.choice(('+=', '-=', '*=', '+='))} {text(rng, kind, some(), 0)};")
        else:
            name, step = rng.choice(free), counter()
            half = literal(rng, kind) if kind == "int" else {"float": "0.5f", "double": "0.5"}[kind]
            head = f"for (int {step} = 0; {step} < {rng.choice((2, 3, 4, 5, 8, 10))}; {increment(step)}) {{"
            if kind == "int":
                inner = f"{name} = ({name} * {half} + {step}) % 1009;"
            else:
                sign = rng.choice("+-")
                inner = f"{name} = {name} * {half} {sign} "
                inner += text(rng, kind, [x for x in some() if x != name] or [leaves[0]], 0) + ";"
            lines += ["@unroll", head, inner, "}"]
    return lines, have
