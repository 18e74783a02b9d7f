"""Transpositions and stencils, which stage their input in shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from slm.corpus.expressions import literal, text
from slm.corpus.family import Argument, State
from slm.corpus.planar import Planar


class Transposition(Planar):
    """out[c][r] = f(in[r][c])."""

    name = "transposition"

    def setup(self) -> None:
        self.begin()
        self.a, self.out = self.names.take("input"), self.names.take("output")
        self.value = "§" if self.rng.random() < 0.5 else text(self.rng, self.kind, ["§"])
        area = f"{self.rows}*{self.columns}"
        self.arguments = [
            Argument("input", self.kind, self.a, area),
            Argument("output", self.kind, self.out, area),
            *self.sized((self.rows, self.rows), (self.columns, self.columns)),
        ]

    def of(self, load: str) -> str:
        return self.value.replace("§", load)

    def render(self, state: State) -> str:
        r, c = self.row, self.column
        if not state or "tile" not in state:
            core = [f"{self.out}[{c} * {self.rows} + {r}] = {self.of(f'{self.a}«{r} * {self.columns} + {c}»')};"]
            if not state:
                return self.sequential([self.loop(r, self.rows), self.loop(c, self.columns), *core, "}", "}"])
            return self.cuda(
                state, [self.kernel(state, [*self.position(state), *self.inside(state, core)])], self.start(state)
            )
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
        return self.whole(
            state,
            self.kernel(
                state,
                [
                    self.shared(state, tile),
                    f"int {tx} = threadIdx.x;",
                    f"int {ty} = threadIdx.y;",
                    f"int {c} = blockIdx.x * {size} + {tx};",
                    f"int {r} = blockIdx.y * {size} + {ty};",
                    *each,
                    f"if ({r}{down} < {self.rows} && {c} < {self.columns}) {{",
                    f"{tile}[{ty}{down}][{tx}] = {self.a}«{wrap(r + down)} * {self.columns} + {c}»;",
                    "}",
                    *end,
                    "__syncthreads();",
                    f"{c} = blockIdx.y * {size} + {tx};",
                    f"{r} = blockIdx.x * {size} + {ty};",
                    *each,
                    f"if ({r}{down} < {self.columns} && {c} < {self.rows}) {{",
                    f"{self.out}[{wrap(r + down)} * {self.rows} + {c}] = {self.of(f'{tile}[{tx}][{ty}{down}]')};",
                    "}",
                    *end,
                ],
            ),
        )

    def alike(self, technique: str) -> str:
        return self.name if technique == "coarsen" else super().alike(technique)

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
        self.offsets = (
            cross if rng.random() < 0.4 else every if rng.random() < 0.3 else rng.sample(every, rng.randint(2, 6))
        )
        if rng.random() < 0.5:
            rng.shuffle(self.offsets)
        self.border = rng.choice(("copy", "copy", "zero"))
        self.scalars = [Argument("scalar", self.kind, self.names.take("scalar")) for _ in range(rng.choice((0, 1, 2)))]
        self.weights = [
            rng.choice(("", "", literal(rng, self.kind), *(s.name for s in self.scalars))) for _ in self.offsets
        ]
        self.signs = [rng.choice("++-") for _ in self.offsets]
        self.factor = self.scalars[0].name if self.scalars and rng.random() < 0.5 else ""
        area = f"{self.rows}*{self.columns}"
        arrays = [Argument("input", self.kind, self.a, area), Argument("output", self.kind, self.out, area)]
        sizes = self.sized((self.rows, self.rows), (self.columns, self.columns))
        self.arguments = [*arrays, *self.scalars, *sizes] if rng.random() < 0.5 else [*arrays, *sizes, *self.scalars]

    @staticmethod
    def moved(word: str, by: int) -> str:
        return word if not by else f"{word} {'+' if by > 0 else '-'} {abs(by)}"

    def total(self, at: Callable[[int, int], str]) -> str:
        result = ""
        for (y, x), weight, sign in zip(self.offsets, self.weights, self.signs, strict=True):
            load = at(y, x)
            term = f"{weight} * {load}" if weight else load
            result = f"{result} {sign} {term}" if result else term
        return f"{self.factor} * ({result})" if self.factor else result

    def plain(self, y: int, x: int) -> str:
        row = self.moved(self.row, y)
        return f"{self.a}«{f'({row})' if y else row} * {self.columns} + {self.moved(self.column, x)}»"

    def cell(self, at: Callable[[int, int], str]) -> list[str]:
        r, c, here = self.row, self.column, f"{self.out}[{self.row} * {self.columns} + {self.column}]"
        outside = at(0, 0) if self.border == "copy" else self.zero
        return [
            f"if ({r} > 0 && {r} < {self.rows} - 1 && {c} > 0 && {c} < {self.columns} - 1) {{",
            f"{here} = {self.total(at)};",
            "} else {",
            f"{here} = {outside};",
            "}",
        ]

    def render(self, state: State) -> str:
        if not state:
            return self.sequential(
                [self.loop(self.row, self.rows), self.loop(self.column, self.columns), *self.cell(self.plain), "}", "}"]
            )
        if "tile" not in state:
            return self.cuda(
                state,
                [self.kernel(state, [*self.position(state), *self.inside(state, self.cell(self.plain))])],
                self.start(state),
            )
        size = self.tile_size(state)
        side = f"{size} + 2" if not size.isdigit() else str(int(size) + 2)
        tile = self.free_word(state["tile"]["name"])
        tx, ty = (self.free_word(w) for w in state["tile"]["ty"])
        y, x, gy, gx = (self.free_word(w) for w in ("yy", "xx", "gy", "gx"))

        def at(dy: int, dx: int) -> str:
            return f"{tile}[{ty} + {1 + dy}][{tx} + {1 + dx}]".replace(" + 0]", "]")

        return self.whole(
            state,
            self.kernel(
                state,
                [
                    self.shared(state, tile, side),
                    f"int {tx} = threadIdx.x;",
                    f"int {ty} = threadIdx.y;",
                    f"int {self.column} = blockIdx.x * {size} + {tx};",
                    f"int {self.row} = blockIdx.y * {size} + {ty};",
                    f"for (int {y} = {ty}; {y} < {side}; {y} += {size}) {{",
                    f"for (int {x} = {tx}; {x} < {side}; {x} += {size}) {{",
                    f"int {gy} = (int)blockIdx.y * {size} + {y} - 1;",
                    f"int {gx} = (int)blockIdx.x * {size} + {x} - 1;",
                    f"bool ok = {gy} >= 0 && {gy} < {self.rows} && {gx} >= 0 && {gx} < {self.columns};",
                    f"{tile}[{y}][{x}] = ok ? {self.a}«{gy} * {self.columns} + {gx}» : {self.zero};",
                    "}",
                    "}",
                    "__syncthreads();",
                    *self.inside(state, self.cell(at)),
                ],
            ),
        )

    def techniques(self, state: State) -> set[str]:
        found = self.common(state, "") | ({"tile"} if "tile" not in state else {"pad"})
        if "tile" in state:
            found.discard("block")
        return found - (set(state) - {"block"})
