"""Families that stage data in shared memory: products of matrices, transpositions, stencils."""

from __future__ import annotations

import re
from typing import ClassVar

from slm.corpus.expressions import literal, text
from slm.corpus.family import Argument, Family, State
from slm.corpus.idioms import Idiom


class Planar(Family):
    """A rows × columns output on a two-dimensional grid."""

    hopeless = frozenset(("private", "warp", "smem", "fuse"))

    def planar_state(self, state: State) -> str:
        del state
        return "grid2"

    def begin(self) -> None:
        rng = self.rng
        self.row = self.names.prefer(("r", "row", "i", "y"))
        self.column = self.names.prefer(("c", "col", "j", "x"))
        self.rows, self.columns = self.names.take("rows"), self.names.take("cols")
        self.dims = {self.rows: 45, self.columns: 71}
        self.size_type = "int"
        self.square = rng.choice((16, 16, 32))

    def threads(self, state: State) -> int:
        x, y = self.block(state)
        return x * y

    def block(self, state: State) -> tuple[int, int]:
        if "tile" in state:
            size = state["tile"]["size"]
            return size, size // state.get("regtile", {}).get("factor", state.get("coarsen", {}).get("factor", 1))
        x, y = state["parallel"]["block2"]
        return int(x), int(y)

    def position(self, state: State) -> list[str]:
        return [f"int {self.column} = {self.global_index(state)};", f"int {self.row} = {self.global_index(state, 'y')};"]

    def inside(self, state: State, body: list[str], rows: str = "", columns: str = "") -> list[str]:
        rows, columns = rows or self.rows, columns or self.columns
        if state["parallel"]["guard"] == "return":
            return [f"if ({self.row} >= {rows} || {self.column} >= {columns}) return;", *body]
        return [f"if ({self.row} < {rows} && {self.column} < {columns}) {{", *body, "}"]

    def start(self, state: State) -> list[str]:
        x, y = self.block(state)
        block, grid = (self.word(w) for w in state["parallel"]["words"])
        if "tile" in state:
            size = self.tile_size(state)
            cover = f"({self.columns} + {size} - 1) / {size}, ({self.rows} + {size} - 1) / {size}"
            if not size.isdigit():
                shape = f"{size}, {size}" if y == x else f"{size}, {size} / {x // y}"
                return [f"dim3 {block}({shape});", f"dim3 {grid}({cover});", f"{self.kernel_name(state)}<<<{grid}, {block}>>>({self.passed()});"]
            cover = f"({self.columns} + {int(size) - 1}) / {size}, ({self.rows} + {int(size) - 1}) / {size}"
        elif state["parallel"]["launch"] in ("inline", "const"):
            cover = f"({self.columns} + {x - 1}) / {x}, ({self.rows} + {y - 1}) / {y}"
        else:
            cover = f"({self.columns} + {block}.x - 1) / {block}.x, ({self.rows} + {block}.y - 1) / {block}.y"
        return [f"dim3 {block}({x}, {y});", f"dim3 {grid}({cover});", f"{self.kernel_name(state)}<<<{grid}, {block}>>>({self.passed()});"]

    def tile_size(self, state: State) -> str:
        return "TILE" if state["tile"]["spelled"] == "constant" else str(state["tile"]["size"])

    def shared(self, state: State, name: str, columns: str = "") -> str:
        size = self.tile_size(state)
        pad = state.get("pad", {}).get("by", 0)
        width = columns or size
        if pad:
            width = f"{width} + {pad}" if not width.isdigit() else str(int(width) + pad)
        return f"__shared__ {self.kind} {name}[{columns or size}][{width}];"

    def free_word(self, word: str) -> str:
        return word if self.names.free(word) and word not in (self.row, self.column) else word + "_l"

    def whole(self, state: State, kernel: list[str]) -> str:
        if "tile" in state and state["tile"]["spelled"] == "constant":
            self.constants.append(f"constexpr int TILE = {state['tile']['size']};")
            try:
                return self.cuda(state, [kernel], self.start(state))
            finally:
                self.constants.pop()
        return self.cuda(state, [kernel], self.start(state))

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        if state and technique == "block" and state["parallel"]["block2"] == idiom["block2"]:
            return None
        if technique in ("regtile", "coarsen") and state and "tile" in state and state["tile"]["size"] // idiom["factor"] < 2:
            return None
        return super().apply(state, technique, idiom)


class Product(Planar):
    """out[r][c] = a reduction over k of a(r, k) and b(k, c), in four layouts, with an epilogue."""

    name = "product"
    kinds: ClassVar[tuple[str, ...]] = ("float",) * 4 + ("double", "int")

    def setup(self) -> None:
        rng = self.rng
        self.begin()
        self.depth = self.names.take("inner")
        self.dims[self.depth] = 39
        self.k = self.names.prefer(("k", "l", "p", "t"))
        self.acc = self.names.prefer(("acc", "sum", "s", "total"))
        self.a, self.b, self.out = self.names.take("input"), self.names.take("input"), self.names.take("output")
        self.flip_a, self.flip_b = rng.random() < 0.2, rng.random() < 0.3
        self.form = rng.choice(("mul",) * 6 + ("dist", "max", "abs"))
        inputs = [Argument("input", self.kind, self.a, f"{self.rows}*{self.depth}"), Argument("input", self.kind, self.b, f"{self.depth}*{self.columns}")]
        self.epilogue = f"{self.acc}"
        scalars = []
        inout = False
        roll = rng.random()
        if roll < 0.15:
            scalars.append(Argument("scalar", self.kind, self.names.take("scalar")))
            self.epilogue = f"{scalars[0].name} * {self.acc}"
        elif roll < 0.3:
            bias = self.names.take("input")
            inputs.append(Argument("input", self.kind, bias, self.columns))
            self.epilogue = f"{self.acc} + {bias}«{self.column}»"
        elif roll < 0.4:
            scalars += [Argument("scalar", self.kind, self.names.take("scalar")) for _ in range(2)]
            inout = True
            self.epilogue = f"{scalars[0].name} * {self.acc} + {scalars[1].name} * {self.out}[{self.row} * {self.columns} + {self.column}]"
        elif roll < 0.5:
            self.epilogue = f"@max({self.acc}, {self.zero})"
        elif roll < 0.6:
            self.epilogue = text(rng, self.kind, [self.acc])
        out = Argument("inout" if inout else "output", self.kind, self.out, f"{self.rows}*{self.columns}")
        sizes = self.sized((self.rows, self.rows), (self.columns, self.columns), (self.depth, self.depth))
        arrays = [*inputs, out]
        self.arguments = rng.choice(([*arrays, *scalars, *sizes], [*arrays, *sizes, *scalars], [*sizes, *scalars, *arrays]))

    def left(self, row: str, k: str) -> str:
        wrap = lambda x: f"({x})" if " " in x else x  # noqa: E731
        return f"{self.a}«{wrap(k)} * {self.rows} + {row}»" if self.flip_a else f"{self.a}«{wrap(row)} * {self.depth} + {k}»"

    def right(self, k: str, column: str) -> str:
        wrap = lambda x: f"({x})" if " " in x else x  # noqa: E731
        return f"{self.b}«{wrap(column)} * {self.depth} + {k}»" if self.flip_b else f"{self.b}«{wrap(k)} * {self.columns} + {column}»"

    def step(self, acc: str, x: str, y: str) -> str:
        if self.form == "mul":
            return f"{acc} += {x} * {y};"
        if self.form == "dist":
            return f"{acc} += ({x} - {y}) * ({x} - {y});"
        if self.form == "abs":
            return f"{acc} += @abs({x} - {y});"
        return f"{acc} = @max({acc}, {x} * {y});"

    def store(self, acc: str, row: str) -> str:
        value = re.sub(rf"\b{self.acc}\b", lambda _: acc, self.epilogue)
        if acc != self.acc:
            value = value.replace(f"{self.out}[{self.row} *", f"{self.out}[{row} *")
        return f"{self.out}[{row} * {self.columns} + {self.column}] = {value};"

    def core(self) -> list[str]:
        return [
            f"{self.kind} {self.acc} = {self.zero};", "@unroll", self.loop(self.k, self.depth),
            self.step(self.acc, self.left(self.row, self.k), self.right(self.k, self.column)), "}", self.store(self.acc, self.row),
        ]  # fmt: skip

    def render(self, state: State) -> str:
        if not state:
            return self.sequential([self.loop(self.row, self.rows), self.loop(self.column, self.columns), *self.core(), "}", "}"])
        if "tile" not in state:
            return self.cuda(state, [self.kernel(state, [*self.position(state), *self.inside(state, self.core())])], self.start(state))
        idiom = state["tile"]
        size = self.tile_size(state)
        tx, ty = (self.free_word(w) for w in idiom["ty"])
        base = self.free_word("t0")
        name = idiom["name"]
        left, right = (f"{name}A", f"{name}B") if name != "s" else ("sa", "sb")
        left, right = self.free_word(left), self.free_word(right)
        head = [
            self.shared(state, left), self.shared(state, right), f"int {tx} = threadIdx.x;", f"int {ty} = threadIdx.y;",
            f"int {self.column} = blockIdx.x * {size} + {tx};", f"int {self.row} = blockIdx.y * {size} + {ty};",
        ]  # fmt: skip
        outer = f"for (int {base} = 0; {base} < {self.depth}; {base} += {size}) {{"
        if "regtile" not in state:
            return self.whole(state, self.kernel(state, [
                *head, f"{self.kind} {self.acc} = {self.zero};", outer,
                f"{left}[{ty}][{tx}] = {self.row} < {self.rows} && {base} + {tx} < {self.depth} ? {self.left(self.row, f'{base} + {tx}')} : {self.zero};",
                f"{right}[{ty}][{tx}] = {base} + {ty} < {self.depth} && {self.column} < {self.columns} ? {self.right(f'{base} + {ty}', self.column)} : {self.zero};",
                "__syncthreads();", "@unroll", self.loop(self.k, size), self.step(self.acc, f"{left}[{ty}][{self.k}]", f"{right}[{self.k}][{tx}]"), "}",
                "__syncthreads();", "}", f"if ({self.row} < {self.rows} && {self.column} < {self.columns}) {{", self.store(self.acc, self.row), "}",
            ]))  # fmt: skip
        factor = state["regtile"]["factor"]
        high = f"{size} / {factor}" if not size.isdigit() else str(int(size) // factor)
        j = self.free_word("q")
        acc = self.free_word(state["regtile"]["name"]) if state["regtile"]["name"] != self.acc else self.acc
        step = f"{j} * ({high})" if "/" in high else f"{j} * {high}"
        row_j, ty_j = f"{self.row} + {step}", f"{ty} + {step}"
        each = self.loop(j, str(factor))
        return self.whole(state, self.kernel(state, [
            *head, f"{self.kind} {acc}[{factor}] = {{}};".replace("{}", "{}"), outer, each,
            f"{left}[{ty_j}][{tx}] = {row_j} < {self.rows} && {base} + {tx} < {self.depth} ? {self.left(row_j, f'{base} + {tx}')} : {self.zero};",
            f"{right}[{ty_j}][{tx}] = {base} + {ty_j} < {self.depth} && {self.column} < {self.columns} ? {self.right(f'{base} + {ty_j}', self.column)} : {self.zero};",
            "}", "__syncthreads();", "@unroll", self.loop(self.k, size), each,
            self.step(f"{acc}[{j}]", f"{left}[{ty_j}][{self.k}]", f"{right}[{self.k}][{tx}]"), "}", "}", "__syncthreads();", "}",
            each, f"if ({row_j} < {self.rows} && {self.column} < {self.columns}) {{", self.store(f"{acc}[{j}]", f"({row_j})"), "}", "}",
        ]))  # fmt: skip

    def techniques(self, state: State) -> set[str]:
        found = self.common(state, "@unroll") | ({"tile"} if "tile" not in state else {"pad", "regtile"})
        if "tile" in state:
            found.discard("block")
        if self.form == "max":
            found -= {"tile", "regtile"}  # zero filling of the border is wrong for a maximum
        if "regtile" in found and "regtile" not in state and self.epilogue.count(self.out) and self.acc in self.out:
            found.discard("regtile")
        return found - (set(state) - {"block"})


class Transposition(Planar):
    """out[c][r] = f(in[r][c])."""

    name = "transposition"

    def setup(self) -> None:
        self.begin()
        self.a, self.out = self.names.take("input"), self.names.take("output")
        self.value = "§" if self.rng.random() < 0.5 else text(self.rng, self.kind, ["§"])
        area = f"{self.rows}*{self.columns}"
        self.arguments = [Argument("input", self.kind, self.a, area), Argument("output", self.kind, self.out, area), *self.sized((self.rows, self.rows), (self.columns, self.columns))]

    def of(self, load: str) -> str:
        return self.value.replace("§", load)

    def render(self, state: State) -> str:
        r, c = self.row, self.column
        if not state or "tile" not in state:
            core = [f"{self.out}[{c} * {self.rows} + {r}] = {self.of(f'{self.a}«{r} * {self.columns} + {c}»')};"]
            if not state:
                return self.sequential([self.loop(r, self.rows), self.loop(c, self.columns), *core, "}", "}"])
            return self.cuda(state, [self.kernel(state, [*self.position(state), *self.inside(state, core)])], self.start(state))
        idiom = state["tile"]
        size = self.tile_size(state)
        tile = self.free_word(idiom["name"])
        tx, ty = (self.free_word(w) for w in idiom["ty"])
        factor = state["coarsen"]["factor"] if "coarsen" in state else 1
        k = self.free_word("k")
        high = f"{size} / {factor}" if not size.isdigit() else str(int(size) // factor)
        down = f" + {k}" if factor > 1 else ""
        wrap = (lambda x: f"({x})") if factor > 1 else (lambda x: x)
        each = ["@unroll", f"for (int {k} = 0; {k} < {size}; {k} += {high}) {{"] if factor > 1 else []
        end = ["}"] if factor > 1 else []
        return self.whole(state, self.kernel(state, [
            self.shared(state, tile), f"int {tx} = threadIdx.x;", f"int {ty} = threadIdx.y;",
            f"int {c} = blockIdx.x * {size} + {tx};", f"int {r} = blockIdx.y * {size} + {ty};", *each,
            f"if ({r}{down} < {self.rows} && {c} < {self.columns}) {{",
            f"{tile}[{ty}{down}][{tx}] = {self.a}«{wrap(r + down)} * {self.columns} + {c}»;", "}", *end, "__syncthreads();",
            f"{c} = blockIdx.y * {size} + {tx};", f"{r} = blockIdx.x * {size} + {ty};", *each,
            f"if ({r}{down} < {self.columns} && {c} < {self.rows}) {{",
            f"{self.out}[{wrap(r + down)} * {self.rows} + {c}] = {self.of(f'{tile}[{tx}][{ty}{down}]')};", "}", *end,
        ]))  # fmt: skip

    def techniques(self, state: State) -> set[str]:
        found = self.common(state, self.value) | ({"tile"} if "tile" not in state else {"pad", "coarsen"})
        if "tile" in state:
            found.discard("block")
        return found - (set(state) - {"block"})


class Stencil(Planar):
    """A weighted sum of a cell and its neighbours; the border is copied, clamped or zero."""

    name = "stencil"
    kinds: ClassVar[tuple[str, ...]] = ("float",) * 3 + ("double",)

    def setup(self) -> None:
        rng = self.rng
        self.begin()
        self.a, self.out = self.names.take("input"), self.names.take("output")
        cross = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]
        every = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)]
        self.offsets = cross if rng.random() < 0.4 else every if rng.random() < 0.3 else rng.sample(every, rng.randint(2, 6))
        if rng.random() < 0.5:
            rng.shuffle(self.offsets)
        self.border = rng.choice(("copy", "copy", "zero"))
        self.scalars = [Argument("scalar", self.kind, self.names.take("scalar")) for _ in range(rng.choice((0, 1, 2)))]
        self.weights = [rng.choice(("", "", literal(rng, self.kind), *(s.name for s in self.scalars))) for _ in self.offsets]
        self.signs = [rng.choice("++-") for _ in self.offsets]
        self.factor = self.scalars[0].name if self.scalars and rng.random() < 0.5 else ""
        area = f"{self.rows}*{self.columns}"
        arrays = [Argument("input", self.kind, self.a, area), Argument("output", self.kind, self.out, area)]
        sizes = self.sized((self.rows, self.rows), (self.columns, self.columns))
        self.arguments = [*arrays, *self.scalars, *sizes] if rng.random() < 0.5 else [*arrays, *sizes, *self.scalars]

    @staticmethod
    def moved(word: str, by: int) -> str:
        return word if not by else f"{word} {'+' if by > 0 else '-'} {abs(by)}"

    def total(self, at) -> str:  # type: ignore[no-untyped-def]
        result = ""
        for (y, x), weight, sign in zip(self.offsets, self.weights, self.signs, strict=True):
            load = at(y, x)
            term = f"{weight} * {load}" if weight else load
            result = f"{result} {sign} {term}" if result else term
        return f"{self.factor} * ({result})" if self.factor else result

    def plain(self, y: int, x: int) -> str:
        row = self.moved(self.row, y)
        return f"{self.a}«{f'({row})' if y else row} * {self.columns} + {self.moved(self.column, x)}»"

    def cell(self, at) -> list[str]:  # type: ignore[no-untyped-def]
        r, c, here = self.row, self.column, f"{self.out}[{self.row} * {self.columns} + {self.column}]"
        outside = at(0, 0) if self.border == "copy" else self.zero
        return [
            f"if ({r} > 0 && {r} < {self.rows} - 1 && {c} > 0 && {c} < {self.columns} - 1) {{", f"{here} = {self.total(at)};",
            "} else {", f"{here} = {outside};", "}",
        ]  # fmt: skip

    def render(self, state: State) -> str:
        if not state:
            return self.sequential([self.loop(self.row, self.rows), self.loop(self.column, self.columns), *self.cell(self.plain), "}", "}"])
        if "tile" not in state:
            return self.cuda(state, [self.kernel(state, [*self.position(state), *self.inside(state, self.cell(self.plain))])], self.start(state))
        size = self.tile_size(state)
        side = f"{size} + 2" if not size.isdigit() else str(int(size) + 2)
        tile = self.free_word(state["tile"]["name"])
        tx, ty = (self.free_word(w) for w in state["tile"]["ty"])
        y, x, gy, gx = (self.free_word(w) for w in ("yy", "xx", "gy", "gx"))

        def at(dy: int, dx: int) -> str:
            return f"{tile}[{ty} + {1 + dy}][{tx} + {1 + dx}]".replace(" + 0]", "]")

        return self.whole(state, self.kernel(state, [
            self.shared(state, tile, side), f"int {tx} = threadIdx.x;", f"int {ty} = threadIdx.y;",
            f"int {self.column} = blockIdx.x * {size} + {tx};", f"int {self.row} = blockIdx.y * {size} + {ty};",
            f"for (int {y} = {ty}; {y} < {side}; {y} += {size}) {{", f"for (int {x} = {tx}; {x} < {side}; {x} += {size}) {{",
            f"int {gy} = (int)blockIdx.y * {size} + {y} - 1;", f"int {gx} = (int)blockIdx.x * {size} + {x} - 1;",
            f"bool ok = {gy} >= 0 && {gy} < {self.rows} && {gx} >= 0 && {gx} < {self.columns};",
            f"{tile}[{y}][{x}] = ok ? {self.a}«{gy} * {self.columns} + {gx}» : {self.zero};", "}", "}", "__syncthreads();",
            *self.inside(state, self.cell(at)),
        ]))  # fmt: skip

    def techniques(self, state: State) -> set[str]:
        found = self.common(state, "") | ({"tile"} if "tile" not in state else {"pad"})
        if "tile" in state:
            found.discard("block")
        return found - (set(state) - {"block"})
