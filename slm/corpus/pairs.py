"""Every item against all of another set: nearest centres, fields of points, kernels, votes, similarities."""

from __future__ import annotations

import re

from slm.corpus.family import State
from slm.corpus.idioms import Idiom
from slm.corpus.work import Work


class Pairs(Work):
    """One thread an item, a loop over the others; their data may pass through shared memory a block at a time."""

    name = "pairs"

    def make(self) -> None:
        self.staged: list[tuple[str, str]] = []  # arrays over the others, and how the loop reads them
        self.rng.choice((self.field, self.field, self.nearest, self.nearest, self.votes, self.matrix))()

    def points(self, n: str, words: str, marks: str) -> list[str]:
        """One array a coordinate."""
        return [self.array(f"{m}{words} {words}{m} p{m}{words}", n) for m in marks.split()]

    def field(self) -> None:
        """A value at every place from the masses, charges or weights of all points."""
        rng, num = self.rng, self.number
        n = self.size(307, "n count bodies queries N")
        same = rng.random() < 0.5
        m = n if same else self.size(151, "m sources atoms points M")
        i, j = self.name_of("i q t"), self.name_of("j s k p")
        self.axes = [(i, n)]
        marks = rng.choice(("x y", "x y z", "x y z"))
        there = self.points(m, "s", marks)
        here = there if same else self.points(n, "q", marks)
        mass = self.array("mass m q charge weight w", m)
        own = []
        for array, mark in zip(here, marks.split(), strict=True):
            line, name = self.declare(f"{mark}i p{mark} {mark}0", f"{array}«{i}»")
            own.append(name)
            self.before.append(line)
        parts = []
        for array, name, mark in zip(there, own, marks.split(), strict=True):
            line, d = self.declare(
                f"d{mark} r{mark} diff_{mark}",
                f"{array}«{j}» - {name}" if rng.random() < 0.5 else f"{name} - {array}«{j}»",
            )
            self.inner.append(line)
            parts.append(d)
        soft = self.factor("eps2 soft softening eps") if rng.random() < 0.5 else num(0.01)
        line, r2 = self.declare("r2 d2 dist2 sq", " + ".join(f"{d} * {d}" for d in parts) + f" + {soft}")
        self.inner.append(line)
        roll = rng.random()
        weight = f"{mass}«{j}»"
        self.around = [(j, m)]
        self.staged = [(a, f"{a}«{j}»") for a in (*there, mass)]
        if roll < 0.4:
            inv, name = self.declare(
                "inv f0 s0 g", rng.choice((f"{num(1.0)} / @sqrt({r2})", f"{num(1.0)} / ({r2} * @sqrt({r2}))"))
            )
            accs = [self.name_of(f"f{k} a{k} acc_{k}") for k in marks.split()]
            self.sums = [(a, "sum") for a in accs]
            self.inner += [inv, *(f"{a} += {weight} * {d} * {name};" for a, d in zip(accs, parts, strict=True))]
            for a, mark in zip(accs, marks.split(), strict=True):
                self.after.append(f"{self.result(f'f{mark} out_{mark} a{mark}', n)}[{i}] = {a};")
        else:
            acc = self.name_of("sum acc potential density total e")
            self.sums = [(acc, "sum")]
            value = rng.choice(
                (f"{weight} / @sqrt({r2})", f"{weight} * @exp(-{r2})", f"{weight} / ({num(1.0)} + {r2})")
            )
            cut = rng.random()
            if cut < 0.3:
                limit = self.factor("cutoff2 rc2 range2 h2")
                self.inner += [f"if ({r2} < {limit}) {{", f"{acc} += {value};", "}"]
            else:
                self.inner.append(f"{acc} += {value};")
            self.after = [f"{self.result('potential out density energy', n)}[{i}] = {acc};"]
            if rng.random() < 0.3:
                self.after[0] = self.after[0].replace(f"= {acc};", f"= {acc} * {self.factor('scale norm k0')};")

    def nearest(self) -> None:
        """The nearest centre of every point, its number and perhaps its distance."""
        rng = self.rng
        n, k = self.size(411, "n points samples N count"), self.size(rng.choice((9, 17)), "k clusters centers K codes")
        flat = rng.random() < 0.2
        i, c, d = self.name_of("i p s row"), self.name_of("c k0 j cluster"), self.name_of("d f t dim_i")
        dim = (
            ""
            if flat
            else self.size(5, "dim d features D dims")
            if rng.random() < 0.7
            else self.fixed_size((2, 3, 4), "DIM D NDIM")
        )
        x = self.array("x points data samples", *((n, dim) if dim else (n,)))
        y = self.array("centers centroids mu codebook", *((k, dim) if dim else (k,)))
        best, where = self.name_of("best best_dist nearest0 min_d"), self.name_of("best_k label arg idx0 where")
        dist, diff = self.name_of("dist d2 sum acc"), self.name_of("diff delta t0 e")
        closer = rng.random() < 0.8
        labels = self.result("labels assign nearest out", n, type="int")
        distances = self.result("distances min_dist score", n) if rng.random() < 0.5 else ""
        self.axes = [(i, n)]
        if dim:
            a, b = f"{x}«{self.at((i, n), (d, dim))}»", f"{y}«{self.at((c, k), (d, dim))}»"
            if closer:
                inner = [f"{self.quiet}{self.kind} {diff} = {a} - {b};", f"{dist} += {diff} * {diff};"]
                if rng.random() < 0.2:
                    inner = [f"{dist} += @abs({a} - {b});"]
            else:
                inner = [f"{dist} += {a} * {b};"]
            count = [f"{self.kind} {dist} = {self.zero};", "@unroll", self.loop(d, dim), *inner, "}"]
        else:
            closer = True
            count = [
                f"{self.quiet}{self.kind} {diff} = {x}«{i}» - {y}«{c}»;",
                f"{self.quiet}{self.kind} {dist} = {diff} * {diff};",
            ]
        start = self.starts("min" if closer else "max")
        sign = "<" if closer else ">"
        first = [f"{self.kind} {best} = {start};", f"int {where} = 0;"]
        if rng.random() < 0.4:
            first.reverse()
        self.plain = [
            *first,
            self.loop(c, k),
            *count,
            f"if ({dist} {sign} {best}) {{",
            f"{best} = {dist};",
            f"{where} = {c};",
            "}",
            "}",
            f"{labels}[{i}] = {where};",
        ]
        if distances:
            self.plain.append(f"{distances}[{i}] = {rng.choice((best, f'@sqrt(@abs({best}))'))};")

    def votes(self) -> None:
        """How many of the others pass a test, their largest or their sum."""
        rng = self.rng
        n = self.size(503, "n count items N")
        i, j = self.name_of("i a0 q"), self.name_of("j b0 k")
        self.axes = [(i, n)]
        x = self.array("x score key values", n)
        line, own = self.declare("xi mine v own", f"{x}«{i}»")
        acc = self.name_of("rank count total best sum")
        self.before, self.around = [line], [(j, n)]
        self.staged = [(x, f"{x}«{j}»")]
        other, v = self.declare("xj other v u", f"{x}«{j}»")
        radius = self.factor("radius h tol width")
        one = self.number(1.0)
        roll = rng.random()
        test = rng.choice(
            (f"{v} < {own}", f"@abs({v} - {own}) < {radius}", f"{v} < {own} || ({v} == {own} && {j} < {i})")
        )
        if roll < 0.5:
            self.sums = [(acc, "sum")]
            self.inner = [other, f"if ({test}) {{", f"{acc} += {one};", "}"]
        elif roll < 0.75:
            count = self.name_of("hits cnt n_in")
            self.sums = [(acc, "sum"), (count, "sum")]
            self.inner = [other, f"if (@abs({v} - {own}) < {radius}) {{", f"{acc} += {v};", f"{count} += {one};", "}"]
        else:
            self.sums = [(acc, "min")]
            self.inner = [other, f"if ({j} != {i}) {{", f"{acc} = @min({acc}, @abs({v} - {own}));", "}"]
        value = acc if len(self.sums) == 1 else f"{acc} / @max({self.sums[1][0]}, {one})"
        self.after = [f"{self.result('out rank density y', n)}[{i}] = {value};"]

    def matrix(self) -> None:
        """A measure of every pair of rows of two arrays."""
        rng, num = self.rng, self.number
        m, n, dim = (
            self.size(37, "m na queries rows_a"),
            self.size(45, "n nb keys rows_b"),
            self.size(11, "dim d features width"),
        )
        i, j, k = self.name_of("i q r"), self.name_of("j p c"), self.name_of("k d t f")
        self.axes, self.around = [(i, m), (j, n)], [(k, dim)]
        a, b = self.array("a x query left", m, dim), self.array("b y key right", n, dim)
        left, right = f"{a}«{self.at((i, m), (k, dim))}»", f"{b}«{self.at((j, n), (k, dim))}»"
        if rng.random() < 0.4:
            p, q = (
                self.local_pointer(1, "ai row_a qi", a, self.at((i, m), ("0", dim)).removesuffix(" + 0")),
                self.local_pointer(2, "bj row_b kj", b, self.at((j, n), ("0", dim)).removesuffix(" + 0")),
            )
            left, right = f"{p}«{k}»", f"{q}«{k}»"
        roll = rng.random()
        acc, place = (
            self.name_of("sum acc dot s"),
            f"{self.result('out sim dist k_mat', m, n)}[{self.at((i, m), (j, n))}]",
        )
        if roll < 0.35:
            na, nb = self.name_of("na norm_a aa"), self.name_of("nb norm_b bb")
            self.sums = [(acc, "sum"), (na, "sum"), (nb, "sum")]
            self.inner = [f"{acc} += {left} * {right};", f"{na} += {left} * {left};", f"{nb} += {right} * {right};"]
            self.after = [f"{place} = {acc} / (@sqrt({na}) * @sqrt({nb}) + {num(0.001)});"]
        elif roll < 0.7:
            line, d = self.declare("diff d0 delta e", f"{left} - {right}")
            self.sums = [(acc, "sum")]
            self.inner = [line, f"{acc} += {d} * {d};"]
            gamma = self.factor("gamma scale inv_h")
            self.after = [
                f"{place} = {rng.choice((f'@exp(-{gamma} * {acc})', f'{acc} * {gamma}', f'@sqrt({acc} + {gamma})'))};"
            ]
        else:
            self.sums = [(acc, "max")]
            self.inner = [f"{acc} = @max({acc}, @abs({left} - {right}));"]
            self.after = [f"{place} = {acc};"]

    # -- the others through shared memory
    def tiles(self) -> bool:
        return bool(self.staged) and len(self.around) == 1

    def techniques(self, state: State) -> set[str]:
        found = super().techniques(state)
        if self.tiles() and not {"regtile", "smem", "warp", "gridstride", "coarsen"} & set(state):
            found.add("tile")
        if "tile" in state:
            found -= {"regtile", "gridstride", "coarsen", "smem", "warp", "tile"}
        return found

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        if technique == "tile" and not state:
            return None
        return super().apply(state, technique, idiom)

    def render(self, state: State) -> str:
        if "tile" not in state:
            return super().render(state)
        idiom = state["tile"]
        (i, n), (j, m) = self.axes[0], self.around[0]
        named = idiom["spelled"] == "constant"
        size = "TILE" if named else str(self.threads(state))
        base, k = self.word("base"), self.word("jj")
        shared = {
            a: self.word(f"{idiom['name']}_{a}" if len(self.staged) > 1 else idiom["name"]) for a, _ in self.staged
        }
        inner = "\n".join(self.inner)
        for a, load in self.staged:
            inner = inner.replace(load, f"{shared[a]}[{k}]")
        if re.search(rf"\b{j}\b", inner):
            inner = f"int {j} = {base} + {k};\n" + inner
        guard = f"if ({i} < {n}) {{"
        own = [line.replace(f"«{i}»", f"«@imin({i}, {n} - 1)»") for line in self.before]
        lines = [
            *(f"__shared__ {self.kind} {s}[{size}];" for s in shared.values()),
            f"int {i} = {self.global_index(state)};",
            *own,
            *(f"{self.kind} {name} = {self.starts(op)};" for name, op in self.sums),
            f"for (int {base} = 0; {base} < {m}; {base} += {size}) {{",
            f"if ({base} + threadIdx.x < {m}) {{",
            *(f"{shared[a]}[threadIdx.x] = {a}«{base} + threadIdx.x»;" for a, _ in self.staged),
            "}",
            "__syncthreads();",
            "@unroll",
            f"for (int {k} = 0; {k} < @imin({size}, {m} - {base}); {self.increment(k)}) {{",
            *inner.split("\n"),
            "}",
            "__syncthreads();",
            "}",
            guard,
            *self.after,
            "}",
        ]
        text = self.cuda(state, [self.kernel(state, lines)], self.launch(state, n, threads=self.threads(state)))
        if named:
            top = f"#include <cuda_runtime.h>\n\nconstexpr int TILE = {self.threads(state)};\n"
            text = text.replace("#include <cuda_runtime.h>\n", top, 1)
        return text
