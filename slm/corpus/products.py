"""Products of matrices, with other operators in the place of the product too."""

from __future__ import annotations

import re
from typing import ClassVar

from slm.corpus.expressions import text
from slm.corpus.family import Argument, State
from slm.corpus.planar import Planar


def _wrapped(index: str) -> str:
    return f"({index})" if " " in index else index


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
        inputs = [
            Argument("input", self.kind, self.a, f"{self.rows}*{self.depth}"),
            Argument("input", self.kind, self.b, f"{self.depth}*{self.columns}"),
        ]
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
            here = f"{self.out}[{self.row} * {self.columns} + {self.column}]"
            self.epilogue = f"{scalars[0].name} * {self.acc} + {scalars[1].name} * {here}"
        elif roll < 0.5:
            self.epilogue = f"@max({self.acc}, {self.zero})"
        elif roll < 0.6:
            self.epilogue = text(rng, self.kind, [self.acc])
        out = Argument("inout" if inout else "output", self.kind, self.out, f"{self.rows}*{self.columns}")
        sizes = self.sized((self.rows, self.rows), (self.columns, self.columns), (self.depth, self.depth))
        arrays = [*inputs, out]
        self.arguments = rng.choice(
            ([*arrays, *scalars, *sizes], [*arrays, *sizes, *scalars], [*sizes, *scalars, *arrays])
        )

    def left(self, row: str, k: str) -> str:
        return (
            f"{self.a}«{_wrapped(k)} * {self.rows} + {row}»"
            if self.flip_a
            else f"{self.a}«{_wrapped(row)} * {self.depth} + {k}»"
        )

    def right(self, k: str, column: str) -> str:
        return (
            f"{self.b}«{_wrapped(column)} * {self.depth} + {k}»"
            if self.flip_b
            else f"{self.b}«{_wrapped(k)} * {self.columns} + {column}»"
        )

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
            f"{self.kind} {self.acc} = {self.zero};",
            "@unroll",
            self.loop(self.k, self.depth),
            self.step(self.acc, self.left(self.row, self.k), self.right(self.k, self.column)),
            "}",
            self.store(self.acc, self.row),
        ]

    def render(self, state: State) -> str:
        if not state:
            return self.sequential(
                [self.loop(self.row, self.rows), self.loop(self.column, self.columns), *self.core(), "}", "}"]
            )
        if "tile" not in state:
            return self.cuda(
                state,
                [self.kernel(state, [*self.position(state), *self.inside(state, self.core())])],
                self.start(state),
            )
        idiom = state["tile"]
        size = self.tile_size(state)
        tx, ty = (self.free_word(w) for w in idiom["ty"])
        base = self.free_word("t0")
        name = idiom["name"]
        left, right = (f"{name}A", f"{name}B") if name != "s" else ("sa", "sb")
        left, right = self.free_word(left), self.free_word(right)
        head = [
            self.shared(state, left),
            self.shared(state, right),
            f"int {tx} = threadIdx.x;",
            f"int {ty} = threadIdx.y;",
            f"int {self.column} = blockIdx.x * {size} + {tx};",
            f"int {self.row} = blockIdx.y * {size} + {ty};",
        ]
        outer = f"for (int {base} = 0; {base} < {self.depth}; {base} += {size}) {{"
        if "regtile" not in state:
            return self.whole(
                state,
                self.kernel(
                    state,
                    [
                        *head,
                        f"{self.kind} {self.acc} = {self.zero};",
                        outer,
                        f"{left}[{ty}][{tx}] = {self.row} < {self.rows} && {base} + {tx} < {self.depth} ? "
                        f"{self.left(self.row, f'{base} + {tx}')} : {self.zero};",
                        f"{right}[{ty}][{tx}] = {base} + {ty} < {self.depth} && {self.column} < "
                        f"{self.columns} ? {self.right(f'{base} + {ty}', self.column)} : {self.zero};",
                        "__syncthreads();",
                        "@unroll",
                        self.loop(self.k, size),
                        self.step(self.acc, f"{left}[{ty}][{self.k}]", f"{right}[{self.k}][{tx}]"),
                        "}",
                        "__syncthreads();",
                        "}",
                        f"if ({self.row} < {self.rows} && {self.column} < {self.columns}) {{",
                        self.store(self.acc, self.row),
                        "}",
                    ],
                ),
            )
        factor = state["regtile"]["factor"]
        high = f"{size} / {factor}" if not size.isdigit() else str(int(size) // factor)
        j = self.free_word("q")
        acc = self.free_word(state["regtile"]["name"]) if state["regtile"]["name"] != self.acc else self.acc
        step = f"{j} * ({high})" if "/" in high else f"{j} * {high}"
        row_j, ty_j = f"{self.row} + {step}", f"{ty} + {step}"
        each = self.loop(j, str(factor))
        return self.whole(
            state,
            self.kernel(
                state,
                [
                    *head,
                    f"{self.kind} {acc}[{factor}] = {{}};".replace("{}", "{}"),
                    outer,
                    each,
                    f"{left}[{ty_j}][{tx}] = {row_j} < {self.rows} && {base} + {tx} < {self.depth} ? "
                    f"{self.left(row_j, f'{base} + {tx}')} : {self.zero};",
                    f"{right}[{ty_j}][{tx}] = {base} + {ty_j} < {self.depth} && {self.column} < "
                    f"{self.columns} ? {self.right(f'{base} + {ty_j}', self.column)} : {self.zero};",
                    "}",
                    "__syncthreads();",
                    "@unroll",
                    self.loop(self.k, size),
                    each,
                    self.step(f"{acc}[{j}]", f"{left}[{ty_j}][{self.k}]", f"{right}[{self.k}][{tx}]"),
                    "}",
                    "}",
                    "__syncthreads();",
                    "}",
                    each,
                    f"if ({row_j} < {self.rows} && {self.column} < {self.columns}) {{",
                    self.store(f"{acc}[{j}]", f"({row_j})"),
                    "}",
                    "}",
                ],
            ),
        )

    def techniques(self, state: State) -> set[str]:
        found = self.common(state, "@unroll") | ({"tile"} if "tile" not in state else {"pad", "regtile"})
        if "tile" in state:
            found.discard("block")
        if self.form == "max":
            found -= {"tile", "regtile"}  # zero filling of the border is wrong for a maximum
        if "regtile" in found and "regtile" not in state and self.epilogue.count(self.out) and self.acc in self.out:
            found.discard("regtile")
        return found - (set(state) - {"block"})
