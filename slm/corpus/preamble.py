"""What real files hold above a function, the same before and after: remarks, constants, types, functions."""

from __future__ import annotations

import random
from collections.abc import Sequence

from slm.corpus import scramble

HOST_WORDS = ("static inline ", "static inline ", "static ", "inline ")
HOST_TABLES = ("static const", "static constexpr", "const", "constexpr")


def added(rng: random.Random, before: str, after: str, fresh: Sequence[str]) -> tuple[str, str]:
    """One to three blocks below the includes of both codes; a function or a table becomes one of the device with the
    code that may use it."""
    text = "\n\n".join("\n".join(_block(rng, fresh)) for _ in range(rng.choice((1, 1, 2, 3))))
    host = text.replace("§table", rng.choice(HOST_TABLES)).replace("§", rng.choice(HOST_WORDS))
    device = text.replace("§table", "__constant__").replace("§", "__device__ __forceinline__ ")
    return _below_includes(before, host, device), _below_includes(after, host, device)


def _below_includes(code: str, host: str, device: str) -> str:
    lines = code.strip("\n").split("\n")
    heads = [k for k, line in enumerate(lines) if line.startswith("#include")]
    at = heads[-1] + 1 if heads else 0
    head = [*lines[:at], ""] if at else []
    rest = lines[at:]
    while rest and not rest[0]:
        rest = rest[1:]
    return "\n".join([*head, device if "__global__" in code else host, "", *rest]) + "\n"


def _block(rng: random.Random, fresh: Sequence[str]) -> list[str]:
    def name() -> str:
        return scramble.name(rng, fresh)

    kind = rng.choice(("float", "float", "double", "int", "unsigned"))
    roll = rng.random()
    if roll < 0.25:
        words = [
            scramble.soup(rng, fresh, ())
            if rng.random() < 0.4
            else " ".join(
                rng.choice(fresh) + rng.choice(("",) * 8 + (",", ".", ";")) for _ in range(rng.randint(2, 12))
            )
            for _ in range(rng.choice((1, 1, 2, 3)))
        ]
        if rng.random() < 0.2:
            words = [line.replace("*/", "") for line in words]
            return ["/*", *(f" * {line}" for line in words), " */"]
        return [f"// {line}" for line in words]
    if roll < 0.5:
        return [
            rng.choice(
                (
                    f"#define {name().upper()} {scramble.number(rng)}",
                    f"constexpr {kind} {name()} = {scramble.number(rng)};",
                    f"static constexpr int {name()} = {rng.randint(1, 4096)};",
                    f"#define {name().upper()}(x) ((x) {rng.choice('+-*')} {scramble.number(rng)})",
                    f"using {name()} = {kind};",
                )
            )
            for _ in range(rng.choice((1, 1, 2)))
        ]
    if roll < 0.58:
        held = ", ".join(scramble.number(rng) for _ in range(rng.randint(2, 6)))
        return [f"§table {kind} {name()}[{rng.randint(2, 9) if rng.random() < 0.6 else ''}] = {{{held}}};"]
    if roll < 0.66:
        return [f"struct {name()} {{", *(f"    {kind} {name()};" for _ in range(rng.randint(1, 4))), "};"]
    first, second, own, number = name(), name(), name(), scramble.number(rng)
    two = rng.random() < 0.5
    term = f"{first} {rng.choice('+-*')} {second if two and rng.random() < 0.7 else scramble.number(rng)}"
    test = f"{first} {rng.choice(scramble.COMPARISON)} {number}"
    mixing = [f"    {first} ^= {first} >> {rng.randint(1, 31)};", f"    {first} *= {hex(rng.randint(9, 10**9))}u;"]
    body = rng.choice(
        (
            [f"    return {term};"],
            [f"    const {kind} {own} = {term};", f"    return {own} {rng.choice('+-*')} {first};"],
            [f"    if ({test}) return {first};", f"    return {term};"],
            [f"    return {test} ? {term} : {first};"],
            [*mixing, f"    return {first};"],
        )
    )
    return [f"§{kind} {name()}({kind} {first}{f', {kind} {second}' if two else ''}) {{", *body, "}"]
