"""Families that training never draws from: what the evaluation calls unseen families."""

from __future__ import annotations

from typing import ClassVar

from slm.corpus.family import Argument
from slm.corpus.nests import Nest


class Pooling(Nest):
    """The largest or the mean value of each cell of 2 × 2 inputs."""

    name = "pooling"
    ranks = (2,)
    kinds: ClassVar[tuple[str, ...]] = ("float", "double")

    def make_body(self) -> list[str]:
        (y, rows), (x, cols) = self.axes
        a = self.names.take("input")
        self.inputs.append(Argument("input", self.kind, a, f"4*{rows}*{cols}"))
        at = [
            f"{a}«({dy}) * 2 * {cols} + {dx}»"
            for dy in (f"2 * {y}", f"2 * {y} + 1")
            for dx in (f"2 * {x}", f"2 * {x} + 1")
        ]
        quarter = "0.25f" if self.kind == "float" else "0.25"
        value = (
            f"@max(@max({at[0]}, {at[1]}), @max({at[2]}, {at[3]}))"
            if self.rng.random() < 0.5
            else f"({' + '.join(at)}) * {quarter}"
        )
        return [f"{self.output(self.axes)}[{self.index(self.axes)}] = {value};"]


class Horner(Nest):
    """A polynomial whose coefficients are walked from the highest to the lowest."""

    name = "horner"
    ranks = (1,)
    kinds: ClassVar[tuple[str, ...]] = ("float", "double")

    def make_body(self) -> list[str]:
        (i, _), terms = self.axes[0], self.names.take("inner")
        self.dims[terms] = 7
        self.loops.append(("", terms))
        c = self.names.take("input")
        self.inputs.append(Argument("input", self.kind, c, terms))
        x, acc, k = f"{self.input(self.axes)}«{i}»", self.names.take("local"), self.counter()
        index = self.index_type() if self.index_type() != "size_t" else "long long"
        return [
            f"{self.kind} {acc} = {c}«{terms} - 1»;",
            f"for ({index} {k} = {terms} - 2; {k} >= 0; --{k}) {{",
            f"{acc} = {acc} * {x} + {c}«{k}»;",
            "}",
            f"{self.output(self.axes)}[{i}] = {acc};",
        ]


class Particles(Nest):
    """Forces between all pairs of points on a line."""

    name = "particles"
    ranks = (1,)
    kinds: ClassVar[tuple[str, ...]] = ("float", "double")

    def make_body(self) -> list[str]:
        (i, n), j = self.axes[0], self.counter()
        p, mass, force, d = self.input(self.axes), self.input(self.axes), self.local(), self.local()
        one, tiny = ("1.0f", "0.01f") if self.kind == "float" else ("1.0", "0.01")
        return [
            f"{self.kind} {force} = {self.zero};",
            self.loop(j, n, kind=self.index_type()),
            f"if ({j} != {i}) {{",
            f"{self.kind} {d} = {p}«{j}» - {p}«{i}»;",
            f"{force} += {mass}«{j}» * {d} * ({one} / ({d} * {d} + {tiny}));",
            "}",
            "}",
            f"{self.output(self.axes)}[{i}] = {force};",
        ]


class Interpolation(Nest):
    """Linear interpolation in a table at positions between its entries."""

    name = "interpolation"
    ranks = (1,)
    kinds: ClassVar[tuple[str, ...]] = ("float", "double")

    def make_body(self) -> list[str]:
        (i, n) = self.axes[0]
        table, at, whole, part = self.input(self.axes), self.input(self.axes), self.local(), self.local()
        return [
            f"int {whole} = (int){at}«{i}»;",
            f"{self.kind} {part} = {at}«{i}» - {whole};",
            f"int {whole}_next = {whole} + 1 < {n} ? {whole} + 1 : {whole};",
            f"{self.output(self.axes)}[{i}] = {table}«{whole}» + {part} * ({table}«{whole}_next» - {table}«{whole}»);",
        ]


class Cross(Nest):
    """Cross products of vectors whose parts lie in six arrays."""

    name = "cross"
    ranks = (1,)

    def make_body(self) -> list[str]:
        i = self.axes[0][0]
        a, b = ([f"{self.input(self.axes)}«{i}»" for _ in range(3)] for _ in range(2))
        return [
            f"{self.output(self.axes)}[{i}] = {a[p]} * {b[q]} - {a[q]} * {b[p]};" for p, q in ((1, 2), (2, 0), (0, 1))
        ]


class Collatz(Nest):
    """Steps until a number reaches one, at most a few hundred."""

    name = "collatz"
    ranks = (1,)
    kinds: ClassVar[tuple[str, ...]] = ("int",)

    def make_body(self) -> list[str]:
        i, v, steps = self.axes[0][0], self.local(), self.counter()
        self.small = ""
        return [
            f"int {v} = {self.input(self.axes)}«{i}»;",
            f"int {steps} = 0;",
            f"while ({v} > 1 && {steps} < 300) {{",
            f"if ({v} % 2 == 0) {{",
            f"{v} = {v} / 2;",
            "} else {",
            f"{v} = 3 * {v} + 1;",
            "}",
            f"{self.increment(steps)};",
            "}",
            f"{self.output(self.axes)}[{i}] = {steps};",
        ]


UNSEEN = (Pooling, Horner, Particles, Interpolation, Cross, Collatz)
