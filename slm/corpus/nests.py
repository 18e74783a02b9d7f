"""Loop nests: every output by its own thread. Maps, gathers, windows, contractions, small searches and recurrences."""

from __future__ import annotations

import re
from typing import ClassVar

from slm.corpus.expressions import condition, literal, statements, text
from slm.corpus.family import WIDE, Argument, Family, Shape, State
from slm.corpus.idioms import Idiom

AXES = (("rows", ("r", "i", "row", "y", "b")), ("cols", ("c", "j", "col", "x", "h")), ("inner", ("k", "l", "z", "p", "w")))


class Nest(Family):
    """``axes`` are the parallel loops, outermost first; ``body`` the lines inside them, the same in C++ and CUDA."""

    name = "nest"
    ranks: ClassVar[tuple[int, ...]] = (1, 1, 1, 2, 2, 3)

    def setup(self) -> None:
        rng = self.rng
        rank = rng.choice(self.ranks)
        self.axes: list[tuple[str, str]] = []
        self.first = 0
        self.trailing: list[Argument] = []
        for k in range(rank):
            role, variables = AXES[k] if rank > 1 else ("size", ("i", "idx", "t", "j", "e", "id"))
            bound = self.names.take(role)
            self.axes.append((self.names.prefer(variables), bound))
            self.dims[bound] = (1003,) [0] if rank == 1 else rng.choice(((37, 45, 11), (21, 67, 5)))[k]
        self.loops = list(self.axes)
        self.inputs: list[Argument] = []
        self.outputs: list[Argument] = []
        self.scalars: list[Argument] = []
        self.direct = False
        self.fixed: set[str] = set()  # bounds that are constants above the function
        self.prelude: list[str] = []  # constants that stand before the loops
        self.known: list[str] = []  # and their names
        if rng.random() < 0.14:
            self.make_prelude()
        self.heads: list[str] = []  # pointers to the current row, between the two loops
        self.wide_index = rng.choice(("", "", "", "static_cast<size_t>({})", "(size_t){}", "static_cast<long>({})")) if rank > 1 else ""
        self.by_row = rank == 2 and rng.random() < 0.2
        self.small = self.kind == "int" and rng.random() < 0.35 and rng.choice(("uint8_t", "uint8_t", "unsigned char", "int8_t", "uint16_t"))
        self.linear = ""
        first_line = []
        if rank > 1 and rng.random() < 0.12 and not self.by_row:
            place = self.index(self.axes)
            self.linear = self.names.prefer(("i", "idx", "at", "pos", "o", "p", "index"))
            first_line = [f"const {'size_t' if 'size_t' in self.wide_index else 'long' if self.wide_index else self.index_type()} {self.linear} = {place};"]
        self.body = [*first_line, *self.make_body()]
        self.unused: list[str] = []
        if rng.random() < 0.05:
            name = self.names.take("size")
            self.unused.append(name)
            self.dims[name] = 5
            self.loops.append(("", name))
        sizes = self.sized(*((b, b) for _, b in self.loops if b in self.dims and not b.isdigit()))
        arrays = [*self.inputs, *self.outputs]
        if rng.random() < 0.15:
            arrays = [*self.outputs, *self.inputs]
        tail = [*self.scalars, *sizes] if rng.random() < 0.5 else [*sizes, *self.scalars]
        self.arguments = tail + arrays if rng.random() < 0.08 else arrays + tail
        if rng.random() < 0.15 and self.scalars:
            self.arguments = self.scalars + [a for a in self.arguments if a not in self.scalars]

    # -- arguments
    def index(self, axes: list[tuple[str, str]]) -> str:
        """Row-major index of ``axes``: Horner or a sum of products."""
        if not axes:
            return "0"
        if self.linear and axes == self.axes:
            return self.linear
        result = self.wide_index.format(axes[0][0]) if self.wide_index and len(axes) > 1 else axes[0][0]
        if len(axes) == 3 and self.rng.random() < 0.3:
            (_, _), (b, nb), (c, nc) = axes
            return f"{result} * {nb} * {nc} + {b} * {nc} + {c}"
        for variable, bound in axes[1:]:
            left = f"({result})" if " + " in result else result
            result = f"{left} * {bound} + {variable}"
        return result

    def extent(self, axes: list[tuple[str, str]]) -> str:
        return "*".join(bound for _, bound in axes) or "1"

    def input(self, axes: list[tuple[str, str]], kind: str = "") -> str:
        name = self.names.take("input")
        self.inputs.append(Argument("input", kind or self.small or self.kind, name, self.extent(axes)))
        return name

    def load(self, axes: list[tuple[str, str]]) -> str:
        """A load of a new input over ``axes``, by a pointer to its row where the program likes that."""
        name = self.input(axes)
        if self.by_row and axes == self.axes and self.rng.random() < 0.8:
            pointer = self.names.prefer(("row", "src", "line", "in_row", "from", name + "_row"))
            self.heads.append(f"const {self.inputs[-1].type}* {pointer} = {name} + {self.wide_index.format(axes[0][0]) or axes[0][0]} * {axes[1][1]};")
            return f"{pointer}«{axes[1][0]}»"
        return f"{name}«{self.index(axes)}»"

    def output(self, axes: list[tuple[str, str]], kind: str = "", inout: bool = False) -> str:
        name = self.names.take("output")
        self.outputs.append(Argument("inout" if inout else "output", kind or self.kind, name, self.extent(axes)))
        return name

    def scalar(self) -> str:
        name = self.names.take("scalar")
        self.scalars.append(Argument("scalar", self.kind, name))
        return name

    def make_prelude(self) -> None:
        rng, kind = self.rng, self.kind
        bound = rng.choice(self.axes)[1]
        one = {"float": "1.0f", "double": "1.0", "int": "1"}[kind]
        for _ in range(rng.choice((1, 1, 2))):
            name = self.names.prefer(("inv", "scale", "norm", "factor", "step", "half", "weight", "bias0", "c0"))
            leaf = self.scalar() if rng.random() < 0.5 else literal(rng, kind)
            value = rng.choice((f"{one} / {bound}", f"{leaf} * {literal(rng, kind)}", text(rng, kind, [leaf]), f"{leaf} / {bound}"))
            if kind == "int":
                value = rng.choice((f"{bound} / 2", f"{leaf} * {rng.randint(2, 9)}", f"{leaf} + {rng.randint(1, 9)}"))
            self.prelude.append(f"{'const ' if rng.random() < 0.85 else ''}{kind} {name} = {value};")
            self.known.append(name)

    def row_of(self, out: str) -> str:
        """``out`` at the current place by a pointer to its row, or "" where the program writes indexes."""
        if not self.by_row or self.rng.random() < 0.4:
            return ""
        pointer = self.names.prefer(("dst", "out_row", "to", "target_row", out + "_row", "yr"))
        self.heads.append(f"{self.kind}* {pointer} = {out} + {self.wide_index.format(self.axes[0][0]) or self.axes[0][0]} * {self.axes[1][1]};")
        return f"{pointer}[{self.axes[1][0]}]"

    def local(self) -> str:
        return self.names.take("local")

    def counter(self) -> str:
        return self.names.prefer(("k", "j", "t", "u", "it", "step", "m"))

    # -- the body
    def make_body(self) -> list[str]:
        return self.rng.choice((self.direct_map, self.direct_map, self.wild_map, self.wild_map, self.wild_map, self.indexed_map))()

    def loads(self, low: int, high: int) -> list[str]:
        rng = self.rng
        found = []
        for _ in range(rng.randint(low, high)):
            axes = self.axes
            if len(axes) > 1 and rng.random() < 0.35:
                axes = [a for a in axes if rng.random() < 0.6] or axes[-1:]
            if len(axes) > 1 and rng.random() < 0.12:
                axes = axes[::-1]
            found.append(self.load(axes))
        return found

    def target(self) -> tuple[str, list[tuple[str, str]]]:
        axes = self.axes
        if len(axes) > 1 and self.rng.random() < 0.15:
            axes = axes[::-1]
        return self.index(axes), axes

    def direct_map(self) -> list[str]:
        """One or two assignments without locals."""
        rng = self.rng
        loads = self.loads(1, 3)
        scalars = [*self.known] + [self.scalar() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        where, axes = self.target()
        self.direct = len(self.axes) == 1 and not self.small and not self.prelude
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
            self.direct = False
            value = text(rng, self.kind, loads)
            if rng.random() < 0.5:
                return [f"{out}[{where}] = {condition(rng, self.kind, loads[0])} ? {rng.choice((255, 1))} : 0;"]
            return [f"{out}[{where}] = static_cast<{self.small}>({value});"]
        if self.small:
            self.direct = False
        if roll < 0.42:
            test = condition(rng, self.kind, rng.choice(loads), scalars[0] if scalars and rng.random() < 0.4 else None)
            return [f"{out}[{where}] = {test} ? {text(rng, self.kind, loads)} : {text(rng, self.kind, scalars or loads[:1], 0)};"]
        if roll < 0.55:
            test = condition(rng, self.kind, rng.choice(loads))
            self.direct = False
            return [f"if ({test}) {{", f"{out}[{where}] = {text(rng, self.kind, loads)};", "} else {", f"{out}[{where}] = {text(rng, self.kind, scalars or loads[:1])};", "}"]  # fmt: skip
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
                lines.append(f"{out}[{where}] = {condition(rng, self.kind, rng.choice(have))} ? {rng.randint(0, 3)} : {rng.randint(0, 9)};")
            elif rng.random() < 0.15:
                lines.append(f"{self.output(axes, inout=True)}[{where}] {rng.choice(('+=', '-='))} {value};")
            else:
                out = self.output(axes)
                target = (self.row_of(out) if axes == self.axes else "") or f"{out}[{where}]"
                lines.append(f"{target} = {value};")
        if rng.random() < 0.12:
            lines.insert(rng.randint(0, len(lines) - 1) if not any(x in " ".join(lines) for x in ("} else", "@unroll")) else 0, self._comment())
        return lines

    def called(self, leaf: str) -> str:
        """``leaf`` through a function of the program's own."""
        rng = self.rng
        name, x = self.names.take("function"), rng.choice(("x", "v", "value", "t"))
        if rng.random() < 0.4:
            body = [f"return {condition(rng, self.kind, x)} ? {text(rng, self.kind, [x])} : {text(rng, self.kind, [x])};"]
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
            f"{bound} - 1 - {variable}", f"({variable} + {small}) % {bound}", f"{variable} / {rng.choice((2, 3, 4))}",
            f"{variable} > {small} ? {variable} - {small} : 0", f"({variable} * {rng.choice((3, 5, 7))} + {small}) % {bound}",
        ]  # fmt: skip
        lines: list[str] = []
        index = rng.choice(forms)
        if rng.random() < 0.3:
            table = self.names.take("input", 0.4) if rng.random() < 0.6 else self.names.prefer(("idx", "indices", "perm", "order"))
            self.inputs.append(Argument("input", "int", table, bound, bound))
            index = f"{table}«{variable}»"
        if rng.random() < 0.6:
            other = self.names.prefer(("src_i", "j", "s", "from", "m", "prev"))
            lines.append(f"{'const ' if rng.random() < 0.5 else ''}{self.index_type()} {other} = {index};")
            index = other
        elif "?" in index or " " in index:
            index = f"({index})" if outer else index
        full = index if not outer else self.index([*outer, (index if re.fullmatch(r"\w+|\(.*\)|\w+«\w+»", index) else f"({index})", bound)])
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
                lines.append(f"{out}[{place}] = {text(rng, self.kind, rng.sample(leaves, min(len(leaves), rng.choice((1, 2, 3)))), 1)};")
            return lines
        return [*lines, f"{self.output(self.axes)}[{variable}] = {text(rng, self.kind, leaves)};"]

    def edges(self) -> list[str]:
        """Neighbours of an element, with a rule for the first and the last."""
        rng, (i, n) = self.rng, self.axes[0]
        a = self.input(self.axes)
        roll = rng.random()
        if roll < 0.4:
            left, right = self.local(), self.local()
            lines = [f"{self.kind} {left} = {i} > 0 ? {a}«{i} - 1» : {a}«{i}»;", f"{self.kind} {right} = {i} < {n} - 1 ? {a}«{i} + 1» : {a}«{i}»;"]
            return [*lines, f"{self.output(self.axes)}[{i}] = {text(rng, self.kind, [left, right, f'{a}«{i}»'])};"]
        out = self.output(self.axes)
        inner = text(rng, self.kind, [f"{a}«{i} - 1»", f"{a}«{i} + 1»", *([f"{a}«{i}»"] if rng.random() < 0.6 else [])])
        if roll < 0.7:
            return [f"if ({i} == 0 || {i} == {n} - 1) {{", f"{out}[{i}] = {a}«{i}»;", "} else {", f"{out}[{i}] = {inner};", "}"]
        return [f"{out}[{i}] = {i} == 0 || {i} == {n} - 1 ? {rng.choice((self.zero, f'{a}«{i}»'))} : {inner};"]

    # -- text
    def render(self, state: State) -> str:
        if not state:
            lines: list[str] = []
            for variable, bound in self.axes:
                if self.first:
                    lines.append(f"for ({self.index_type()} {variable} = {self.first}; {variable} < {bound} - {self.first}; {self.increment(variable)}) {{")
                else:
                    lines.append(self.loop(variable, bound, kind=self.index_type()))
            if self.heads:
                lines.insert(1, "\n".join(self.heads))
                lines = "\n".join(lines).split("\n")
            void = [f"(void){name};" for name in self.unused]
            whole = self.sequential([*void, *self.prelude, *lines, *self.body, *["}"] * len(self.axes)])
            if self.small:  # std::max wants both sides of one type
                whole = whole.replace("std::max(", "std::max<int>(").replace("std::min(", "std::min<int>(")
            return whole
        if len(self.axes) > 1 and not self.flat(state):
            return self.cuda(state, [self.kernel(state, self.planar(state))], self.planar_launch(state))
        if "vec" in state:
            return self.cuda(state, [self.kernel(state, self.wide(state))], self.launch(state, self.axes[0][1], per=WIDE[self.kind][1]))
        count = " * ".join(bound for _, bound in self.axes)
        if len(self.axes) == 1:
            bound = f"{count} - {self.first}" if self.first else count
            shape = Shape(bound, lambda _: [*self.prelude, *self.body], self.axes[0][0], self.first)
        else:
            shape = Shape(count, lambda index: [*self.unflatten(index), *self.prelude, *self.heads, *self.body])
        per = state["coarsen"]["factor"] if "coarsen" in state else 1
        return self.cuda(state, [self.kernel(state, self.walk(state, shape))], self.launch(state, count, per=per))

    hopeless = frozenset(("tile", "smem", "warp", "private", "pad", "regtile", "fuse"))

    def planar_state(self, state: State) -> str:
        return "line" if len(self.axes) == 1 else "flat" if self.flat(state) else f"grid{len(self.axes)}"

    def flat(self, state: State) -> bool:
        return bool(state["parallel"]["flat"]) or len(self.axes) == 1

    def unflatten(self, index: str) -> list[str]:
        kind = self.index_type()
        if len(self.axes) == 2:
            (a, _), (b, nb) = self.axes
            return [f"{kind} {a} = {index} / {nb};", f"{kind} {b} = {index} % {nb};"]
        (a, _), (b, nb), (c, nc) = self.axes
        return [f"{kind} {c} = {index} % {nc};", f"{kind} {b} = {index} / {nc} % {nb};", f"{kind} {a} = {index} / ({nb} * {nc});"]

    def planar(self, state: State) -> list[str]:
        kind = self.index_type()
        lines, guards = [], []
        for axis, (variable, bound) in zip("xyz", reversed(self.axes), strict=False):
            if axis == "z":
                lines.append(f"{kind} {variable} = blockIdx.z;")
            else:
                lines.append(f"{kind} {variable} = {self.global_index(state, axis)};")
                guards.append((variable, bound))
        if state["parallel"]["guard"] == "return":
            test = " || ".join(f"{v} >= {b}" for v, b in guards)
            return [*lines, f"if ({test}) return;", *self.prelude, *self.heads, *self.body]
        test = " && ".join(f"{v} < {b}" for v, b in reversed(guards))
        return [*lines, f"if ({test}) {{", *self.prelude, *self.heads, *self.body, "}"]

    def planar_launch(self, state: State) -> list[str]:
        x, y = state["parallel"]["block2"]
        block, grid = (self.word(w) for w in state["parallel"]["words"])
        cols, rows = self.axes[-1][1], self.axes[-2][1]
        deep = f", {self.axes[0][1]}" if len(self.axes) == 3 else ""
        if state["parallel"]["launch"] in ("inline", "const"):
            size = f"({cols} + {x - 1}) / {x}, ({rows} + {y - 1}) / {y}{deep}"
        else:
            size = f"({cols} + {block}.x - 1) / {block}.x, ({rows} + {block}.y - 1) / {block}.y{deep}"
        return [f"dim3 {block}({x}, {y});", f"dim3 {grid}({size});", f"{self.kernel_name(state)}<<<{grid}, {block}>>>({self.passed()});"]

    def threads(self, state: State) -> int:
        if len(self.axes) > 1 and not self.flat(state):
            x, y = state["parallel"]["block2"]
            return int(x * y)
        return super().threads(state)

    def wide(self, state: State) -> list[str]:
        """Several elements a thread by vector loads, and the tail by single ones."""
        idiom = state["vec"]
        vector, width = WIDE[self.kind]
        count, variable = self.axes[0][1], self.axes[0][0]
        q = self.word(idiom["index"])
        kind = self.index_type()
        ldg = state.get("ldg", {}).get("form", "")

        def cast(name: str, const: bool) -> str:
            mark = "const " if const else ""
            return f"reinterpret_cast<{mark}{vector}*>({name})" if idiom["cast"] == "reinterpret" else f"(({mark}{vector}*){name})"

        lines: list[str] = []
        replaced: list[tuple[str, str]] = []
        used = " ".join(self.body)
        for argument in self.inputs:
            load = f"{cast(argument.name, True)}[{q}]" if not ldg else f"__ldg({cast(argument.name, True)} + {q})"
            lines.append(f"{vector} {argument.name}{width} = {load};")
            replaced.append((f"{argument.name}«{variable}»", f"{argument.name}{width}"))
        for argument in self.outputs:
            fill = f" = {cast(argument.name, False)}[{q}]" if argument.kind == "inout" else ""
            lines.append(f"{vector} {argument.name}{width}{fill};")
            replaced.append((f"{argument.name}[{variable}]", f"{argument.name}{width}"))
        del used
        for part in "xyzw"[:width]:
            for line in self.body:
                for old, new in replaced:
                    line = line.replace(old, f"{new}.{part}")
                lines.append(line)
        for argument in self.outputs:
            lines.append(f"{cast(argument.name, False)}[{q}] = {argument.name}{width};")
        start = self.global_index(state)
        if idiom["tail"] == "threads":
            tail = [f"{kind} {variable} = {count} / {width} * {width} + {q};", f"if ({variable} < {count}) {{", *self.body, "}"]
            return [f"{kind} {q} = {start};", f"if ({q} < {count} / {width}) {{", *lines, "}", f"if ({q} < {count} % {width}) {{", *tail[:1], *self.body, "}"]
        first = f"{kind} {q} = {start};"
        tail = [f"if ({q} == 0) {{", f"for ({kind} {variable} = {count} / {width} * {width}; {variable} < {count}; {self.increment(variable)}) {{", *self.body, "}", "}"]
        return [first, f"if ({q} < {count} / {width}) {{", *lines, "}", *tail]

    # -- techniques
    def techniques(self, state: State) -> set[str]:
        found = self.common(state, " ".join(self.body) + " ".join(" ".join(h) for h in self.helpers))
        if self.flat(state) and not {"gridstride", "coarsen", "vec"} & set(state):
            found |= {"gridstride", "coarsen"}
            if self.direct and self.size_type == "int" and self.kind in WIDE and not self.first:
                found.add("vec")
        if "vec" in state:
            found -= {"unroll"}
        if "gridstride" in state and state["gridstride"]["loop"] == "while" and "@unroll" not in " ".join(self.body):
            found.discard("unroll")
        return found - (set(state) - {"block"})

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        new = super().apply(state, technique, idiom)
        if new and technique == "block":
            key = "block" if self.flat(state) else "block2"
            if state["parallel"][key] == idiom[key]:
                return None
        return new


class Contraction(Nest):
    """Inner loops that reduce over one or two axes: sums, extrema, searches, windows."""

    name = "contraction"
    hopeless = frozenset(("private", "pad", "fuse"))
    ranks = (1, 1, 2, 2, 2, 3)

    def make_body(self) -> list[str]:
        forms = (self.reduce_axes,) * 4 + (self.window,) * 3 + (self.best, self.best, self.recurrence, self.iterate, self.segments)
        return self.rng.choice(forms)()

    def inner_axis(self) -> tuple[str, str]:
        rng = self.rng
        variable = self.names.prefer(("k", "j", "t", "p", "d", "l", "m", "q"))
        if rng.random() < 0.25:
            value = rng.choice((2, 3, 4, 5, 8, 16, 32))
            if rng.random() < 0.5:
                bound = self.names.prefer(("K", "D", "TAPS", "BINS", "DIM", "P", "M"))
                self.constants.append(rng.choice((f"constexpr int {bound} = {value};", f"static const int {bound} = {value};", f"#define {bound} {value}")))
                self.dims[bound] = value
                self.fixed.add(bound)
            else:
                bound = str(value)
            return variable, bound
        bound = self.names.take("inner")
        self.dims[bound] = rng.choice((9, 13, 19))
        self.loops.append((variable, bound))
        return variable, bound

    def operand(self, axes: list[tuple[str, str]]) -> str:
        """A load over a random subset of ``axes`` that holds the last one, in a random order."""
        rng = self.rng
        chosen = [a for a in axes[:-1] if rng.random() < 0.65] + axes[-1:]
        if rng.random() < 0.3:
            rng.shuffle(chosen)
        return f"{self.input(chosen)}«{self.index(chosen)}»"

    def update(self, acc: str, leaves: list[str]) -> list[str]:
        rng, kind = self.rng, self.kind
        roll = rng.random()
        if roll < 0.35 and len(leaves) > 1:
            return [f"{acc} += {leaves[0]} * {leaves[1]};"]
        if roll < 0.5 and len(leaves) > 1:
            d = self.local()
            return [f"{'const ' if rng.random() < 0.5 else ''}{kind} {d} = {leaves[0]} - {leaves[1]};", f"{acc} += {rng.choice((f'{d} * {d}', f'@abs({d})'))};"]
        if roll < 0.62:
            v = self.local()
            return [f"{kind} {v} = {text(rng, kind, leaves, 0)};", f"if ({v} {rng.choice('<>')} {acc}) {{", f"{acc} = {v};", "}"]
        if roll < 0.7:
            return [f"{acc} = @{rng.choice(('max', 'min'))}({acc}, {text(rng, kind, leaves, 0)});"]
        if roll < 0.78:
            return [f"if ({condition(rng, kind, leaves[0])}) {{", f"{acc} += {text(rng, kind, leaves[-1:], 0)};", "}"]
        return [f"{acc} += {text(rng, kind, leaves)};"]

    def reduce_axes(self) -> list[str]:
        rng, kind = self.rng, self.kind
        inner = [self.inner_axis() for _ in range(rng.choice((1, 1, 1, 2)))]
        scope = self.axes + inner
        leaves = [self.operand(scope) for _ in range(rng.choice((1, 2, 2, 2)))]
        lines, sums = [], []
        if kind == "float" and rng.random() < 0.2:
            return self.wide_sum(inner, leaves)
        for _ in range(rng.choice((1, 1, 1, 2))):
            acc = self.names.prefer(("acc", "sum", "s", "total", "best", "dot"))
            sums.append(acc)
            lines.append(f"{kind} {acc} = {self.zero if rng.random() < 0.8 else rng.choice((leaves[0].split('«')[0] + '«0»', literal(rng, kind)))};")
        for variable, bound in inner:
            lines += ["@unroll", self.loop(variable, bound, kind="int" if bound.isdigit() or bound in self.fixed else self.index_type())]
        for acc in sums:
            lines += self.update(acc, leaves)
        lines += ["}"] * len(inner)
        # one pragma: on the innermost loop
        while lines.count("@unroll") > 1:
            lines.remove("@unroll")
        extra = list(self.known) + ([self.scalar()] if rng.random() < 0.25 else [])
        if rng.random() < 0.2:
            extra.append(self.operand(self.axes[-1:]))
        where, axes = self.target()
        for acc in sums:
            value = acc if rng.random() < 0.5 else text(rng, kind, [acc, *extra])
            lines.append(f"{self.output(axes)}[{where}] = {value};")
        return lines

    def wide_sum(self, inner: list[tuple[str, str]], leaves: list[str]) -> list[str]:
        """A sum that sequential code keeps in a double; the kernel keeps it in a float."""
        rng = self.rng
        acc = self.names.prefer(("sum", "acc", "s", "total"))
        lines = [f"@wide {acc} = @wide0;"]
        for variable, bound in inner:
            lines += ["@unroll", self.loop(variable, bound, kind="int" if bound.isdigit() or bound in self.fixed else self.index_type())]
        if len(leaves) > 1 and rng.random() < 0.3:
            d = self.names.prefer(("d", "diff", "difference", "delta"))
            lines += [f"const @wide {d} = ‹{leaves[0]}› - {leaves[1]};", f"{acc} += {d} * {d};"]
        else:
            lines.append(f"{acc} += ‹{leaves[0]}›{f' * {leaves[1]}' if len(leaves) > 1 else ''};")
        lines += ["}"] * len(inner)
        while lines.count("@unroll") > 1:
            lines.remove("@unroll")
        where, axes = self.target()
        value = acc if rng.random() < 0.6 else f"{acc} / {inner[-1][1]}"
        return [*lines, f"{self.output(axes)}[{where}] = ⌊{value}⌋;"]

    def segments(self) -> list[str]:
        """One reduction over a stretch of entries whose ends stand in an array of offsets, as in sparse rows."""
        rng, kind = self.rng, self.kind
        if len(self.axes) > 1:
            return self.reduce_axes()
        variable, rows = self.axes[0]
        entries = self.names.take("size")
        self.dims[entries] = 3001
        self.loops.append(("", entries))
        offsets = self.names.prefer(("row_ptr", "offsets", "start", "ptr", "row_offsets", "begin"))
        self.inputs.append(Argument("input", "int", offsets, f"{rows}+1", "offsets:" + entries))
        e = self.names.prefer(("e", "k", "j", "p", "entry"))
        value = self.names.take("input")
        self.inputs.append(Argument("input", kind, value, entries))
        leaves = [f"{value}«{e}»"]
        if rng.random() < 0.7:
            table, source = self.names.prefer(("col", "cols", "indices", "column", "idx")), self.names.take("input")
            self.inputs += [Argument("input", "int", table, entries, rows), Argument("input", kind, source, rows)]
            leaves.append(f"{source}«{table}«{e}»»")
        acc = self.names.prefer(("sum", "acc", "s", "total"))
        wide = kind == "float" and rng.random() < 0.35
        head = f"@wide {acc} = @wide0;" if wide else f"{kind} {acc} = {self.zero};"
        update = [f"{acc} += ‹{leaves[0]}›{''.join(f' * {x}' for x in leaves[1:])};"] if wide else self.update(acc, leaves)
        ends = [f"for (int {e} = {offsets}«{variable}»; {e} < {offsets}«{variable} + 1»; {self.increment(e)}) {{"]
        before: list[str] = []
        if rng.random() < 0.4:
            lo, hi = self.names.prefer(("first", "lo", "b0")), self.names.prefer(("last", "hi", "b1"))
            before = [f"const int {lo} = {offsets}«{variable}»;", f"const int {hi} = {offsets}«{variable} + 1»;"]
            ends = [f"for (int {e} = {lo}; {e} < {hi}; {self.increment(e)}) {{"]
        out = self.output(self.axes)
        return [*before, head, "@unroll", *ends, *update, "}", f"{out}[{variable}] = {f'⌊{acc}⌋' if wide else acc};"]

    def window(self) -> list[str]:
        """A window over the last one or two axes, with a rule for the border."""
        rng, kind = self.rng, self.kind
        spread = self.axes[-2:] if len(self.axes) > 1 and rng.random() < 0.75 else self.axes[-1:]
        radius = rng.choice((1, 1, 2, 3, 4))
        shown = str(radius)
        if rng.random() < 0.3:
            shown = self.names.prefer(("R", "RADIUS", "HALF"))
            self.constants.append(rng.choice((f"constexpr int {shown} = {radius};", f"#define {shown} {radius}")))
        rule = rng.choice(("skip", "clamp", "zero"))
        acc = self.names.prefer(("acc", "sum", "s", "total", "m"))
        lines = [f"{kind} {acc} = {self.zero};"]
        place = {v: v for v, _ in self.axes}
        tests = []
        weights = rng.random() < 0.35
        offsets = []
        for variable, bound in spread:
            offset = self.names.prefer(("d" + variable, "k", "o", "dx", "dy"))
            at = self.names.prefer((variable + variable, "j", "p" + variable, "ix", "iy", "n" + variable))
            offsets.append(offset)
            lines += ["@unroll", f"for (int {offset} = -{shown}; {offset} <= {shown}; {self.increment(offset)}) {{"]
            signed = "int" if self.size_type == "int" else "long long"
            source = f"{variable} + {offset}" if signed == "int" else f"({signed}){variable} + {offset}"
            last = f"{bound}" if signed == "int" else f"({signed}){bound}"
            if rule == "clamp":
                if rng.random() < 0.4 and signed == "int":
                    lines.append(f"const int {at} = @imin(@imax({source}, 0), {last} - 1);")
                elif rng.random() < 0.5:
                    lines += [f"{signed} {at} = {source};", f"if ({at} < 0) {{", f"{at} = 0;", "}", f"if ({at} >= {last}) {{", f"{at} = {last} - 1;", "}"]
                else:
                    lines.append(f"{signed} {at} = {source} < 0 ? 0 : ({source} >= {last} ? {last} - 1 : {source});")
            else:
                lines.append(f"{'const ' if rng.random() < 0.4 else ''}{signed} {at} = {source};")
                if rule == "skip":
                    lines.append(f"if ({at} < 0 || {at} >= {last}) continue;")
                else:
                    tests.append(f"{at} >= 0 && {at} < {last}")
            place[variable] = at
        source_axes = [(place[v], b) for v, b in self.axes]
        load = f"{self.input(self.axes)}«{self.index(source_axes)}»"
        if weights:
            side = f"(2 * {shown} + 1)"
            flat = f"{offsets[0]} + {shown}" if len(offsets) == 1 else f"({offsets[0]} + {shown}) * {side} + {offsets[1]} + {shown}"
            name = self.names.take("input")
            self.inputs.append(Argument("input", kind, name, str((2 * radius + 1) ** len(offsets))))
            update = [f"{acc} += {load} * {name}«{flat}»;"]
        else:
            update = rng.choice(([f"{acc} += {load};"], [f"{acc} = @max({acc}, {load});"], [f"{acc} += {text(rng, kind, [load])};"]))
        if tests:
            update = [f"if ({' && '.join(tests)}) {{", *update, "}"]
        lines += [*update, *["}"] * len(spread)]
        while lines.count("@unroll") > 1:
            lines.remove("@unroll")
        where, axes = self.target()
        value = acc if rng.random() < 0.5 else text(rng, kind, [acc, *([self.scalar()] if rng.random() < 0.5 else [])])
        return [*lines, f"{self.output(axes)}[{where}] = {value};"]

    def best(self) -> list[str]:
        """The position of an extremum along one axis."""
        rng, kind = self.rng, self.kind
        variable, bound = self.inner_axis()
        chosen = [*self.axes, (variable, bound)]
        leaves = [self.operand(chosen) for _ in range(rng.choice((1, 1, 2)))]
        best, where_best = self.names.prefer(("best", "m", "top", "lowest")), self.names.prefer(("arg", "where", "best_k", "pos", "winner"))
        op = rng.choice("<>")
        start = {"float": "1e30f", "double": "1e300", "int": "2000000000"}[kind]
        if rng.random() < 0.3:
            name = leaves[0].split("«")[0]
            place = [*rng.sample(self.axes, 1), (variable, bound)]
            self.inputs = [a for a in self.inputs if a.name != name and not any(x.startswith(a.name + "«") for x in leaves[1:])]
            self.inputs.append(Argument("input", kind, name, self.extent(place)))
            at = lambda v: f"{name}«{self.index([place[0], (v, bound)])}»"  # noqa: E731
            kind_index = "int" if bound.isdigit() or bound in self.fixed else self.index_type()
            lines = [f"{'int' if kind_index == 'int' else kind_index} {where_best} = 0;", "@unroll", self.loop(variable, bound, "1", kind=kind_index), f"if ({at(variable)} {op} {at(where_best)}) {{", f"{where_best} = {variable};", "}", "}"]
            where, axes = self.target()
            cast = "" if kind_index == "int" else "(int)"
            return [*lines, f"{self.output(axes, 'int')}[{where}] = {cast}{where_best};"]
        v = self.local()
        value = text(rng, kind, leaves, 0)
        kind_index = "int" if bound.isdigit() or bound in self.fixed else self.index_type()
        head = [f"{kind} {best} = {'' if op == '<' else '-'}{start};", f"int {where_best} = {rng.choice((0, 0, -1))};"]
        if rng.random() < 0.3:
            head.reverse()
        cast = "" if kind_index == "int" else "(int)"
        lines = [*head, "@unroll", self.loop(variable, bound, kind=kind_index), f"{rng.choice(('const ', ''))}{kind} {v} = {value};", f"if ({v} {op} {best}) {{", f"{best} = {v};", f"{where_best} = {cast}{variable};", "}", "}"]  # fmt: skip
        where, axes = self.target()
        lines.append(f"{self.output(axes, 'int')}[{where}] = {where_best};")
        if rng.random() < 0.4:
            lines.append(f"{self.output(axes)}[{where}] = {best};")
        return lines

    def recurrence(self) -> list[str]:
        """A sequential walk along an inner axis that writes as it goes: one thread a row."""
        rng, kind = self.rng, self.kind
        variable, bound = self.inner_axis()
        axes = [*self.axes, (variable, bound)]
        acc = self.names.prefer(("acc", "run", "prev", "state", "h"))
        load = f"{self.input(axes)}«{self.index(axes)}»"
        decay = self.scalar() if rng.random() < 0.5 else {"float": "0.9f", "double": "0.9", "int": "1"}[kind]
        step = rng.choice((f"{acc} += {load};", f"{acc} = {decay} * {acc} + {load};", f"{acc} = @max({acc}, {load});"))
        write = f"{self.output(axes)}[{self.index(axes)}] = {acc};"
        order = [step, write] if rng.random() < 0.7 else [write, step]
        kind_index = "int" if bound.isdigit() or bound in self.fixed else self.index_type()
        return [f"{kind} {acc} = {self.zero};", self.loop(variable, bound, kind=kind_index), *order, "}"]

    def iterate(self) -> list[str]:
        """A bounded iteration that may stop early."""
        rng = self.rng
        if self.kind == "int":
            return self.reduce_axes()
        kind = self.kind
        x, count = self.local(), self.names.prefer(("it", "iter", "steps", "n_it"))
        load = self.loads(1, 2)
        limit = rng.choice((16, 32, 50, 64, 100))
        cap = {"float": "4.0f", "double": "4.0"}[kind]
        half = {"float": "0.5f", "double": "0.5"}[kind]
        step = rng.choice((f"{x} = {x} * {x} + {load[-1]};", f"{x} = {half} * ({x} + {load[-1]});", f"{x} = {x} * {half} + @abs({load[-1]});"))
        lines = [f"{kind} {x} = {load[0]};", f"int {count} = 0;"]
        if rng.random() < 0.5:
            lines += [f"while ({count} < {limit} && {x} < {cap}) {{", step, f"{self.increment(count)};", "}"]
        else:
            lines[-1:] = [f"int {count};"] if rng.random() < 0 else [f"int {count} = 0;"]
            lines += [f"for (; {count} < {limit}; {self.increment(count)}) {{", step, f"if ({x} > {cap}) break;", "}"]
        where, axes = self.target()
        lines.append(f"{self.output(axes)}[{where}] = {x};")
        if rng.random() < 0.5:
            lines.append(f"{self.output(axes, 'int')}[{where}] = {count};")
        return lines
