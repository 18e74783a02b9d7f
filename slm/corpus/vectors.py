"""Vector accesses: one thread handles the elements of one vector, and the tail goes one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slm.corpus.family import WIDE, Argument, Family, State

_DECLARES = re.compile(r"(const |bool |int |float |double |unsigned |auto |long |size_t )")


def takes_vectors(family: Family, arrays: Sequence[Argument], variable: str, count: str, body: Sequence[str]) -> bool:
    """Whether ``body`` uses its index for nothing but elements of arrays of ``count`` elements of one type."""
    joined = " ".join(body)
    for argument in arrays:
        if argument.type != family.kind or argument.size != count:
            return False
        joined = joined.replace(f"{argument.name}«{variable}»", "").replace(f"{argument.name}[{variable}]", "")
        if re.search(rf"\b{argument.name}\b", joined):
            return False
    alone = re.search(rf"\b{variable}\b", joined) is None
    return alone and family.size_type == "int" and not re.search(r"@skip|//|@wide|atomicAdd\(&\w+\[0\]", joined)


def vectorised(
    family: Family,
    state: State,
    count: str,
    variable: str,
    inputs: Sequence[Argument],
    outputs: Sequence[Argument],
    body: list[str],
) -> list[str]:
    """The lines of the kernel: loads, ``body`` for each part, stores, and ``body`` as it is for the tail."""
    idiom = state["vec"]
    vector, width = WIDE[family.kind]
    q = family.word(idiom["index"])
    ldg = "ldg" in state

    def cast(name: str, const: bool) -> str:
        mark = f"{'const ' if const else ''}{vector}*"
        return f"reinterpret_cast<{mark}>({name})" if idiom["cast"] == "reinterpret" else f"(({mark}){name})"

    lines: list[str] = []
    replaced: list[tuple[str, str]] = []
    for argument in inputs:
        load = f"__ldg({cast(argument.name, True)} + {q})" if ldg else f"{cast(argument.name, True)}[{q}]"
        lines.append(f"{vector} {argument.name}{width} = {load};")
        replaced.append((f"{argument.name}«{variable}»", f"{argument.name}{width}"))
    for argument in outputs:
        fill = f" = {cast(argument.name, False)}[{q}]" if argument.kind == "inout" else ""
        lines.append(f"{vector} {argument.name}{width}{fill};")
        replaced.append((f"{argument.name}[{variable}]", f"{argument.name}{width}"))
    scoped = any(_DECLARES.match(line) for line in body)
    for part in "xyzw"[:width]:
        lines += ["{"] if scoped else []
        for line in body:
            for old, new in replaced:
                line = line.replace(old, f"{new}.{part}")
            lines.append(line)
        lines += ["}"] if scoped else []
    lines += [f"{cast(argument.name, False)}[{q}] = {argument.name}{width};" for argument in outputs]
    head = [f"int {q} = {family.global_index(state)};", f"if ({q} < {count} / {width}) {{", *lines, "}"]
    first = f"{count} / {width} * {width}"
    if idiom["tail"] == "threads":
        return [*head, f"if ({q} < {count} % {width}) {{", f"int {variable} = {first} + {q};", *body, "}"]
    walk = f"for (int {variable} = {first}; {variable} < {count}; {family.increment(variable)}) {{"
    return [*head, f"if ({q} == 0) {{", walk, *body, "}", "}"]
