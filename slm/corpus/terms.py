"""Expressions and conditions of free-form programs, over everything that is known at a place."""

from __future__ import annotations

from slm.corpus.expressions import condition, literal, text
from slm.corpus.family import Argument
from slm.corpus.nests import Nest

SMOOTH = ("cbrt", "atan", "erf", "asinh", "tanh", "sin", "cos")
STEPPED = ("floor", "ceil", "round", "trunc")  # of loads only: a rounding elsewhere could cross a step


class Terms(Nest):
    """What a statement may be made of; ``loose`` makes the statements."""

    values: list[str]  # expressions of the element type
    flags: list[str]
    wholes: list[str]  # integers: indexes and counters
    own_functions: list[tuple[str, int]]

    def partial_load(self) -> str:
        """A load along one axis only, or of a small table at a bounded place."""
        rng = self.rng
        if rng.random() < 0.5:
            return self.load([rng.choice(self.axes)])
        size = rng.choice((2, 3, 4, 5, 8, 16))
        name = self.names.take("input")
        self.inputs.append(Argument("input", self.kind, name, str(size)))
        axis = rng.choice(self.axes)[0]
        return f"{name}«{f'{axis} % {size}' if rng.random() < 0.6 else rng.randrange(size)}»"

    def value(self, most: int = 3) -> str:
        """An expression over what is known; now and then a ternary, a call or a cast."""
        rng = self.rng
        chosen = rng.sample(self.values, min(len(self.values), rng.randint(1, most)))
        roll = rng.random()
        if roll < 0.1:
            return f"{self.test()} ? {text(rng, self.kind, chosen, 0)} : {rng.choice(self.values)}"
        if roll < 0.16:
            inner = f"({self.test()} ? {chosen[-1]} : {literal(rng, self.kind)})"
            return f"{self.test()} ? {chosen[0]} : {inner}"
        if roll < 0.26 and self.own_functions:
            name, count = rng.choice(self.own_functions)
            call = f"{name}({', '.join(rng.choice(self.values) for _ in range(count))})"
            return rng.choice((call, f"{call} {rng.choice('+-')} {chosen[0]}", f"{chosen[0]} * {call}"))
        if roll < 0.36:
            return f"{self.cast(self.whole())} {rng.choice('+-*')} {chosen[0]}"
        if roll < 0.46 and self.kind != "int":
            name = rng.choice((*SMOOTH, *STEPPED) if "«" in chosen[0] else SMOOTH)
            return f"@{name}({chosen[0]}){rng.choice(('', f' + {chosen[-1]}', f' * {chosen[-1]}'))}"
        if roll < 0.52 and self.kind != "int":
            return f"{chosen[0]} / ({literal(rng, self.kind)} + @abs({chosen[-1]}))"
        return text(rng, self.kind, chosen)

    def cast(self, whole: str) -> str:
        """An integer as a value of the element type."""
        if self.kind == "int":
            return f"(int)({whole})" if " " in whole or self.size_type != "int" else whole
        return self.rng.choice((f"static_cast<{self.kind}>({whole})", f"({self.kind})({whole})"))

    def whole(self) -> str:
        """A small integer expression over indexes and counters."""
        rng = self.rng
        a, k = rng.choice(self.wholes), rng.randint(2, 9)
        return rng.choice(
            (a, f"{a} % {k}", f"({a} + {k}) % {k + 3}", f"{a} & {rng.choice((1, 3, 7))}", f"({a} >> 1) & 3")
        )

    def test(self) -> str:
        """A condition: of values, of indexes, of flags, or two of them together."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.2:
            return f"{self.test_of_one()} {rng.choice(('&&', '||'))} {self.test_of_one()}"
        return self.test_of_one()

    def test_of_one(self) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.35:
            a, b = rng.choice(self.wholes), rng.choice(self.wholes)
            k = rng.randint(2, 7)
            other = b if b != a and rng.random() < 0.5 else str(rng.randint(0, 9))
            return rng.choice(
                (
                    f"{a} % {k} == {rng.randrange(k)}",
                    f"{a} % {k} != 0",
                    f"{a} != {other}",
                    f"{a} >= {other}",
                    f"{a} > 0",
                )
            )
        if roll < 0.45 and self.flags:
            flag = rng.choice(self.flags)
            return rng.choice((flag, f"!{flag}"))
        if roll < 0.55:
            variable, bound = rng.choice(self.axes)
            return rng.choice(
                (
                    f"{variable} == 0",
                    f"{variable} == {bound} - 1",
                    f"{variable} + 1 < {bound}",
                    f"{variable} * 2 < {bound}",
                )
            )
        return condition(rng, self.kind, rng.choice(self.values), rng.choice((None, None, *self.values[:1])))

    def own_function(self) -> tuple[str, int]:
        """A function above the program's: name and number of arguments."""
        rng, kind = self.rng, self.kind
        name, count = self.names.take("function"), rng.choice((1, 1, 2, 2, 3))
        given = rng.sample(("x", "y_", "a0", "v", "p", "q_", "lo_", "t"), count)
        head = f"@device {kind} {name}({', '.join(f'{kind} {g}' for g in given)}) {{"
        roll = rng.random()
        if roll < 0.35:
            body = [f"return {text(rng, kind, given)};"]
        elif roll < 0.6:
            body = [
                f"if ({condition(rng, kind, given[0])}) return {text(rng, kind, given[-1:])};",
                f"return {text(rng, kind, given)};",
            ]
        elif roll < 0.8:
            body = [
                f"{rng.choice(('', 'const '))}{kind} r0 = {text(rng, kind, given)};",
                f"return {condition(rng, kind, 'r0')} ? r0 : {given[0]};",
            ]
        else:
            sum_of = f"(r1 + {text(rng, kind, given, 0)})"
            body = [
                f"{kind} r1 = {given[0]};",
                f"for (int it = 0; it < {rng.randint(2, 6)}; {self.increment('it')}) {{",
                f"r1 = {sum_of} % 997;"
                if kind == "int"
                else f"r1 = {'0.5f' if kind == 'float' else '0.5'} * {sum_of};",
                "}",
                "return r1;",
            ]
        self.helpers.append([head, *body, "}"])
        return name, count
