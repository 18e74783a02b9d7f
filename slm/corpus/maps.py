"""Maps: one output element from a few inputs, at the same place or at others."""

from __future__ import annotations

import re

from slm.corpus.expressions import condition, statements, text
from slm.corpus.family import Argument
from slm.corpus.nests import Nest


class Map(Nest):
    """Loop nests without inner reductions."""

    name = "nest"

    # -- the body
    def make_body(self) -> list[str]:
        return self.rng.choice(
            (self.direct_map, self.direct_map, self.wild_map, self.wild_map, self.wild_map, self.indexed_map)
        )()

    def direct_map(self) -> list[str]:
        """One or two assignments without locals."""
        rng = self.rng
        loads = self.loads(1, 3)
        scalars = [*self.known] + [self.scalar() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        where, axes = self.target()
        roll = rng.random()
        if roll < 0.25:
            out = self.output(axes, inout=True)
            own = f"{out}[{where}]"
            if rng.random() < 0.5:
                return [f"{own} {rng.choice(('+=', '-=', '*='))} {text(rng, self.kind, loads + scalars)};"]
            return [f"{own} = {text(rng, self.kind, [own, *loads, *scalars])};"]
        out = self.output(axes)
        if self.small and rng.random() < 0.7:
            self.outputs[-1] = Argument("output", self.small, out, self.extent(axes))
            value = text(rng, self.kind, loads)
            if rng.random() < 0.5:
                return [f"{out}[{where}] = {condition(rng, self.kind, loads[0])} ? {rng.choice((255, 1))} : 0;"]
            return [f"{out}[{where}] = static_cast<{self.small}>({value});"]
        if roll < 0.42:
            test = condition(rng, self.kind, rng.choice(loads), scalars[0] if scalars and rng.random() < 0.4 else None)
            return [
                f"{out}[{where}] = {test} ? {text(rng, self.kind, loads)} : "
                f"{text(rng, self.kind, scalars or loads[:1], 0)};"
            ]
        if roll < 0.55:
            test = condition(rng, self.kind, rng.choice(loads))
            return [
                f"if ({test}) {{",
                f"{out}[{where}] = {text(rng, self.kind, loads)};",
                "} else {",
                f"{out}[{where}] = {text(rng, self.kind, scalars or loads[:1])};",
                "}",
            ]
        target = (self.row_of(out) if axes == self.axes else "") or f"{out}[{where}]"
        lines = [f"{target} = {text(rng, self.kind, loads + scalars)};"]
        if rng.random() < 0.2:
            lines.append(f"{self.output(axes)}[{where}] = {text(rng, self.kind, loads)};")
        return lines

    def wild_map(self) -> list[str]:
        """Random statements: locals, branches, ternaries, short loops; one to three outputs."""
        rng = self.rng
        loads = self.loads(1, 4)
        leaves = loads + self.known + [self.scalar() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        if rng.random() < 0.2:
            leaves = [self.called(leaves[0]), *leaves[1:]]
        lines, have = statements(rng, self.kind, leaves, self.local, rng.randint(1, 5), self.counter, self.increment)
        where, axes = self.target()
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            value = text(rng, self.kind, rng.sample(have, min(len(have), rng.randint(1, 2))), rng.randint(0, 1))
            if rng.random() < 0.15:
                value = f"{condition(rng, self.kind, rng.choice(have))} ? {rng.choice(have)} : {value}"
            if rng.random() < 0.1:
                out = self.output(axes, "int")
                lines.append(
                    f"{out}[{where}] = {condition(rng, self.kind, rng.choice(have))} ? {rng.randint(0, 3)} "
                    f": {rng.randint(0, 9)};"
                )
            elif rng.random() < 0.15:
                lines.append(f"{self.output(axes, inout=True)}[{where}] {rng.choice(('+=', '-='))} {value};")
            else:
                out = self.output(axes)
                target = (self.row_of(out) if axes == self.axes else "") or f"{out}[{where}]"
                lines.append(f"{target} = {value};")
        if rng.random() < 0.12:
            lines.insert(
                rng.randint(0, len(lines) - 1) if not any(x in " ".join(lines) for x in ("} else", "@unroll")) else 0,
                self.remark(),
            )
        return lines

    def called(self, leaf: str) -> str:
        """``leaf`` through a function of the program's own."""
        rng = self.rng
        name, x = self.names.take("function"), rng.choice(("x", "v", "value", "t"))
        if rng.random() < 0.4:
            body = [
                f"return {condition(rng, self.kind, x)} ? {text(rng, self.kind, [x])} : {text(rng, self.kind, [x])};"
            ]
        else:
            body = [f"return {text(rng, self.kind, [x], 2)};"]
        self.helpers.append([f"@device {self.kind} {name}({self.kind} {x}) {{", *body, "}"])
        return f"{name}({leaf})"

    def indexed_map(self) -> list[str]:
        """Loads at other indexes: reversed, shifted, gathered, strided, clamped."""
        rng = self.rng
        if len(self.axes) == 1 and rng.random() < 0.3:
            return self.interleaved() if rng.random() < 0.5 else self.edges()
        variable, bound = self.axes[-1]
        outer = self.axes[:-1]
        small = rng.randint(1, 9)
        forms = [
            f"{bound} - 1 - {variable}",
            f"({variable} + {small}) % {bound}",
            f"{variable} / {rng.choice((2, 3, 4))}",
            f"{variable} > {small} ? {variable} - {small} : 0",
            f"({variable} * {rng.choice((3, 5, 7))} + {small}) % {bound}",
        ]
        lines: list[str] = []
        index = rng.choice(forms)
        if rng.random() < 0.3:
            table = (
                self.names.take("input", 0.4)
                if rng.random() < 0.6
                else self.names.prefer(("idx", "indices", "perm", "order"))
            )
            self.inputs.append(Argument("input", "int", table, bound, bound))
            index = f"{table}«{variable}»"
        if rng.random() < 0.6:
            other = self.names.prefer(("src_i", "j", "s", "from", "m", "prev"))
            lines.append(f"{'const ' if rng.random() < 0.5 else ''}{self.index_type()} {other} = {index};")
            index = other
        elif "?" in index or " " in index:
            index = f"({index})" if outer else index
        full = (
            index
            if not outer
            else self.index([*outer, (index if re.fullmatch(r"\w+|\(.*\)|\w+«\w+»", index) else f"({index})", bound)])
        )
        leaves = [f"{self.input(self.axes)}«{full}»"]
        if rng.random() < 0.4:
            leaves += self.loads(1, 1)
        where, axes = self.target()
        value = leaves[0] if rng.random() < 0.4 and len(leaves) == 1 else text(rng, self.kind, leaves)
        return [*lines, f"{self.output(axes)}[{where}] = {value};"]

    def interleaved(self) -> list[str]:
        """Pairs, triples or quadruples that lie side by side: complex numbers, points, pixels."""
        rng, (variable, bound) = self.rng, self.axes[0]
        width = rng.choice((2, 2, 3, 4))
        lines, leaves = [], []
        for _ in range(rng.choice((1, 2)) if width == 2 else 1):
            name = self.names.take("input")
            self.inputs.append(Argument("input", self.small or self.kind, name, f"{width}*{bound}"))
            for part in range(width):
                local = self.local()
                place = f"{width} * {variable} + {part}" if part else f"{width} * {variable}"
                lines.append(f"{'const ' if rng.random() < 0.6 else ''}{self.kind} {local} = {name}«{place}»;")
                leaves.append(local)
        if rng.random() < 0.5:
            out = self.names.take("output")
            self.outputs.append(Argument("output", self.kind, out, f"{width}*{bound}"))
            for part in range(width):
                place = f"{width} * {variable} + {part}" if part else f"{width} * {variable}"
                lines.append(
                    f"{out}[{place}] = "
                    f"{text(rng, self.kind, rng.sample(leaves, min(len(leaves), rng.choice((1, 2, 3)))), 1)};"
                )
            return lines
        return [*lines, f"{self.output(self.axes)}[{variable}] = {text(rng, self.kind, leaves)};"]

    def edges(self) -> list[str]:
        """Neighbours of an element, with a rule for the first and the last."""
        rng, (i, n) = self.rng, self.axes[0]
        a = self.input(self.axes)
        roll = rng.random()
        if roll < 0.4:
            left, right = self.local(), self.local()
            lines = [
                f"{self.kind} {left} = {i} > 0 ? {a}«{i} - 1» : {a}«{i}»;",
                f"{self.kind} {right} = {i} < {n} - 1 ? {a}«{i} + 1» : {a}«{i}»;",
            ]
            return [*lines, f"{self.output(self.axes)}[{i}] = {text(rng, self.kind, [left, right, f'{a}«{i}»'])};"]
        out = self.output(self.axes)
        inner = text(rng, self.kind, [f"{a}«{i} - 1»", f"{a}«{i} + 1»", *([f"{a}«{i}»"] if rng.random() < 0.6 else [])])
        if roll < 0.7:
            return [
                f"if ({i} == 0 || {i} == {n} - 1) {{",
                f"{out}[{i}] = {a}«{i}»;",
                "} else {",
                f"{out}[{i}] = {inner};",
                "}",
            ]
        return [f"{out}[{i}] = {i} == 0 || {i} == {n} - 1 ? {rng.choice((self.zero, f'{a}«{i}»'))} : {inner};"]
