"""Loop nests: every output by its own thread. What stands inside the loops is for ``maps`` and ``contractions``."""

from __future__ import annotations

from typing import ClassVar

from slm.corpus.expressions import literal, text
from slm.corpus.family import WIDE, Argument, Family, Shape, State
from slm.corpus.idioms import Idiom
from slm.corpus.vectors import takes_vectors, vectorised

AXES = (
    ("rows", ("r", "i", "row", "y", "b")),
    ("cols", ("c", "j", "col", "x", "h")),
    ("inner", ("k", "l", "z", "p", "w")),
)


class Nest(Family):
    """``axes`` are the parallel loops, outermost first; ``body`` the lines inside them, the same in C++ and CUDA."""

    name = "nest"
    ranks: ClassVar[tuple[int, ...]] = (1, 1, 1, 2, 2, 3)
    counts: ClassVar[bool] = False  # whether the number of elements may be computed first

    def setup(self) -> None:
        rng = self.rng
        rank = rng.choice(self.ranks)
        self.axes: list[tuple[str, str]] = []
        self.trailing: list[Argument] = []
        for k in range(rank):
            role, variables = AXES[k] if rank > 1 else ("size", ("i", "idx", "t", "j", "e", "id"))
            bound = self.names.take(role)
            self.axes.append((self.names.prefer(variables), bound))
            self.dims[bound] = (1003,)[0] if rank == 1 else rng.choice(((37, 45, 11), (21, 67, 5)))[k]
        self.loops = list(self.axes)
        self.counted: list[str] = []  # the number of elements, where it is a product of two sizes
        self.products: dict[str, str] = {}
        if self.counts and rank == 1 and rng.random() < 0.18:
            self.count_first()
        self.inputs: list[Argument] = []
        self.outputs: list[Argument] = []
        self.scalars: list[Argument] = []
        self.fixed: set[str] = set()  # bounds that are constants above the function
        self.prelude: list[str] = []  # constants that stand before the loops
        self.known: list[str] = []  # and their names
        if rng.random() < 0.2:
            self.make_prelude()
        self.heads: list[str] = []  # pointers to the current row, between the two loops
        self.wide_index = (
            rng.choice(("", "", "", "static_cast<size_t>({})", "(size_t){}", "static_cast<long>({})"))
            if rank > 1
            else ""
        )
        self.by_row = rank == 2 and rng.random() < 0.2
        self.small = (
            self.kind == "int"
            and rng.random() < 0.35
            and rng.choice(("uint8_t", "uint8_t", "unsigned char", "int8_t", "uint16_t"))
        )
        self.linear = ""
        first_line = []
        if rank > 1 and rng.random() < 0.12 and not self.by_row:
            place = self.index(self.axes)
            self.linear = self.names.prefer(("i", "idx", "at", "pos", "o", "p", "index"))
            wide = "size_t" if "size_t" in self.wide_index else "long" if self.wide_index else self.index_type()
            first_line = [f"const {wide} {self.linear} = {place};"]
        self.written = rng.choice(("", "", "", "", "", "", "plus", "down", "last", "while"))
        self.body = [*first_line, *self.make_body()]
        self.unused: list[str] = []
        if rng.random() < 0.1:
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

    def count_first(self) -> None:
        """One loop over all elements of something with two sizes."""
        variable, given = self.axes[0]
        del self.dims[given]
        first, second = self.names.take("rows"), self.names.take("cols")
        self.dims |= {first: 17, second: 59}
        total = self.names.prefer(("total", "pixels", "count", "elements", "all", "cells"))
        self.axes = [(variable, total)]
        self.loops = [("", first), ("", second)]
        self.products[total] = f"{first}*{second}"
        kind = self.index_type()
        product = f"static_cast<{kind}>({first}) * {second}" if kind == "size_t" else f"{first} * {second}"
        self.counted = [f"{'const ' if self.rng.random() < 0.8 else ''}{kind} {total} = {product};"]

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
        return "*".join(self.products.get(bound, bound) for _, bound in axes) or "1"

    def input(self, axes: list[tuple[str, str]], kind: str = "") -> str:
        name = self.names.take("input")
        self.inputs.append(Argument("input", kind or self.small or self.kind, name, self.extent(axes)))
        return name

    def load(self, axes: list[tuple[str, str]]) -> str:
        """A load of a new input over ``axes``, by a pointer to its row where the program likes that."""
        name = self.input(axes)
        if self.by_row and axes == self.axes and self.rng.random() < 0.8:
            pointer = self.names.prefer(("row", "src", "line", "in_row", "from", name + "_row"))
            self.heads.append(
                f"const {self.inputs[-1].type}* {pointer} = {name} + "
                f"{self.wide_index.format(axes[0][0]) or axes[0][0]} * {axes[1][1]};"
            )
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
            value = rng.choice(
                (f"{one} / {bound}", f"{leaf} * {literal(rng, kind)}", text(rng, kind, [leaf]), f"{leaf} / {bound}")
            )
            if kind == "int":
                value = rng.choice((f"{bound} / 2", f"{leaf} * {rng.randint(2, 9)}", f"{leaf} + {rng.randint(1, 9)}"))
            self.prelude.append(f"{'const ' if rng.random() < 0.85 else ''}{kind} {name} = {value};")
            self.known.append(name)

    def row_of(self, out: str) -> str:
        """``out`` at the current place by a pointer to its row, or "" where the program writes indexes."""
        if not self.by_row or self.rng.random() < 0.4:
            return ""
        pointer = self.names.prefer(("dst", "out_row", "to", "target_row", out + "_row", "yr"))
        self.heads.append(
            f"{self.kind}* {pointer} = {out} + "
            f"{self.wide_index.format(self.axes[0][0]) or self.axes[0][0]} * {self.axes[1][1]};"
        )
        return f"{pointer}[{self.axes[1][0]}]"

    def local(self) -> str:
        return self.names.take("local")

    def counter(self) -> str:
        return self.names.prefer(("k", "j", "t", "u", "it", "step", "m"))

    def make_body(self) -> list[str]:
        """The lines inside the parallel loops; declares the arguments that they need."""
        raise NotImplementedError

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

    # -- text
    def header(self, variable: str, bound: str) -> str:
        """The head of a parallel loop; how it is written does not matter to the threads that replace it."""
        kind = self.index_type()
        if self.written == "plus":
            return f"for ({kind} {variable} = 0; {variable} < {bound}; {variable} += 1) {{"
        if self.written == "down" and kind != "size_t":
            return f"for ({kind} {variable} = {bound} - 1; {variable} >= 0; --{variable}) {{"
        if self.written == "last" and kind != "size_t":
            return f"for ({kind} {variable} = 0; {variable} <= {bound} - 1; {self.increment(variable)}) {{"
        return self.loop(variable, bound, kind=kind)

    def render(self, state: State) -> str:
        if not state:
            lines: list[str] = []
            for variable, bound in self.axes:
                lines.append(self.header(variable, bound))
            if self.heads:
                lines.insert(1, "\n".join(self.heads))
                lines = "\n".join(lines).split("\n")
            void = [f"(void){name};" for name in self.unused]
            ends = ["}"] * len(self.axes)
            if self.written == "while" and "@skip" not in self.body:
                variable, bound = self.axes[-1]
                lines.remove(self.header(variable, bound))
                lines += [f"{self.index_type()} {variable} = 0;", f"while ({variable} < {bound}) {{"]
                ends.insert(0, f"{self.increment(variable)};")
            whole = self.sequential([*void, *self.counted, *self.prelude, *lines, *self.body, *ends])
            if self.small:  # std::max wants both sides of one type
                whole = whole.replace("std::max(", "std::max<int>(").replace("std::min(", "std::min<int>(")
            return whole
        if len(self.axes) > 1 and not self.flat(state):
            return self.cuda(state, [self.kernel(state, self.planar(state))], self.planar_launch(state))
        if "vec" in state:
            return self.cuda(
                state,
                [self.kernel(state, self.wide(state))],
                self.launch(state, self.axes[0][1], per=WIDE[self.kind][1]),
            )
        count = " * ".join(bound for _, bound in self.axes)
        if len(self.axes) == 1:
            shape = Shape(count, lambda _: [*self.prelude, *self.heads, *self.body], self.axes[0][0])
        else:
            shape = Shape(count, lambda index: [*self.unflatten(index), *self.prelude, *self.heads, *self.body])
        per = state["coarsen"]["factor"] if "coarsen" in state else 1
        kernel = self.kernel(state, [*self.counted, *self.walk(state, shape)])
        return self.cuda(state, [kernel], [*self.counted, *self.launch(state, count, per=per)])

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
        return [
            f"{kind} {c} = {index} % {nc};",
            f"{kind} {b} = {index} / {nc} % {nb};",
            f"{kind} {a} = {index} / ({nb} * {nc});",
        ]

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
        return [
            f"dim3 {block}({x}, {y});",
            f"dim3 {grid}({size});",
            f"{self.kernel_name(state)}<<<{grid}, {block}>>>({self.passed()});",
        ]

    def threads(self, state: State) -> int:
        if len(self.axes) > 1 and not self.flat(state):
            x, y = state["parallel"]["block2"]
            return int(x * y)
        return super().threads(state)

    def wide(self, state: State) -> list[str]:
        """Several elements a thread by vector loads, and the tail by single ones."""
        variable, count = self.axes[0]
        return [*self.prelude, *vectorised(self, state, count, variable, self.inputs, self.outputs, self.body)]

    # -- techniques
    def techniques(self, state: State) -> set[str]:
        found = self.common(state, " ".join(self.body) + " ".join(" ".join(h) for h in self.helpers))
        if self.flat(state) and not {"gridstride", "coarsen", "vec"} & set(state):
            found |= {"gridstride", "coarsen"}
            variable, count = self.axes[0]
            short = len(self.axes) == 1 and len(self.body) < 12
            if short and takes_vectors(self, [*self.inputs, *self.outputs], variable, count, self.body):
                found.add("vec")
        if "vec" in state:
            found -= {"unroll"}
        if "gridstride" in state and state["gridstride"]["loop"] == "while" and "@unroll" not in " ".join(self.body):
            found.discard("unroll")
        return found - (set(state) - {"block"})

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        new = super().apply(state, technique, idiom)
        if new and new.get("gridstride", {}).get("loop") == "while" and "@skip" in self.body:
            return None  # `continue` would step over the loop's increment
        if new and technique == "block":
            key = "block" if self.flat(state) else "block2"
            if state["parallel"][key] == idiom[key]:
                return None
        return new
