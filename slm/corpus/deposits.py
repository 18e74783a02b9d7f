"""Scatters that meet: every thread adds what it has to places that others add to as well."""

from __future__ import annotations

import re
from typing import Any

from slm.corpus.family import Shape, State
from slm.corpus.idioms import Idiom
from slm.corpus.work import Work

ADD = re.compile(r"^@(add|max) (\S+\]) (.*);$")


class Deposit(Work):
    """Counters, sums by key, votes and grids; few enough places may be counted in shared memory first."""

    name = "deposit"
    hopeless = frozenset(("pad", "regtile", "fuse"))

    def make(self) -> None:
        self.places: list[tuple[str, str, str]] = []  # output, type, extent
        self.few = ""  # the extent of the one output, where a block may hold it
        forms = (self.levels, self.levels, self.joint, self.by_key, self.by_key, self.degrees, self.votes, self.rows,
                 self.cells, self.confusion, self.tally)  # fmt: skip
        self.rng.choice(forms)()
        self.zeroer = self.name_of("z0 b g k z")
        self.clear = self.rng.choice(("loop", "loop", "fill"))

    def counters(self, words: str, *sizes: str, type: str = "int") -> str:
        name = self.result(words, *sizes, type=type)
        self.places.append((name, type, " * ".join(sizes)))
        return name

    def add(self, place: str, value: str = "1", op: str = "add") -> str:
        return f"@{op} {place.replace(' ', '~')} {value};"

    def items(self, value: int = 1203) -> tuple[str, str]:
        n, i = self.size(value, "n count N samples total items"), self.name_of("i idx t e p")
        self.axes = [(i, n)]
        return i, n

    def bin_of(self, load: str, bins: str) -> tuple[list[str], str]:
        """Lines that find the bin of a value, clamped to the ends."""
        rng = self.rng
        b = self.name_of("b bin slot0 k0 level")
        if rng.random() < 0.5:
            low, width = self.factor("lo min_v start"), self.factor("inv_width scale0 per_unit")
            value = f"({load} - {low} * {self.number(0.25)}) * {width} * {self.number(6.0)}"
        else:
            value = f"{load} * {self.number(5.5)}"
        lines = [f"int {b} = {rng.choice(('(int)({0})', 'static_cast<int>({0})')).format(value)};"]
        if rng.random() < 0.6:
            lines += [f"{b} = {b} < 0 ? 0 : ({b} >= {bins} ? {bins} - 1 : {b});"]
        else:
            lines += [f"if ({b} < 0) {{", f"{b} = 0;", "}", f"if ({b} > {bins} - 1) {{", f"{b} = {bins} - 1;", "}"]
        return lines, b

    def levels(self) -> None:
        rng = self.rng
        i, n = self.items()
        if rng.random() < 0.4:
            bins = self.fixed_size((64, 256), "BINS NBINS LEVELS")
            x = self.array("image data bytes x", n, type="uint8_t")
            index = f"{x}«{i}»" if bins in ("256",) or self.dims.get(bins) == 256 else f"{x}«{i}» % {bins}"
            lines, b = [f"{self.quiet}int {self.name_of('v level px')} = {index};"], ""
            b = re.findall(r"int (\w+) =", lines[0])[0]
        else:
            bins = self.fixed_size((16, 32, 100), "BINS NBINS BUCKETS")
            x = self.array("x data values src", n)
            lines, b = self.bin_of(f"{x}«{i}»", bins)
        hist = self.counters("hist counts bins_out histogram", bins)
        self.few = bins
        if rng.random() < 0.2:
            limit = self.factor("limit cutoff threshold")
            w = self.array("w weight score", n)
            self.plain = [*lines, f"if ({w}«{i}» < {limit}) {{", self.add(f"{hist}[{b}]"), "}"]
        else:
            self.plain = [*lines, self.add(f"{hist}[{b}]")]

    def joint(self) -> None:
        i, n = self.items()
        bins = self.fixed_size((8, 16), "BINS NB SIDE")
        x, y = self.array("x a first", n), self.array("y b second", n)
        one, a = self.bin_of(f"{x}«{i}»", bins)
        two, b = self.bin_of(f"{y}«{i}»", bins)
        hist = self.counters("joint hist counts", bins, bins)
        self.plain = [*one, *two, self.add(f"{hist}[{a} * {bins} + {b}]")]

    def by_key(self) -> None:
        """Sums, counts or the largest of every group."""
        rng = self.rng
        rows = rng.random() < 0.5
        groups = self.size(19, "groups segments k clusters")
        if rows:
            n, dim, i, j = (
                self.size(203, "n rows points"),
                self.size(11, "dim d features"),
                self.name_of("i r p"),
                self.name_of("j c f"),
            )
            self.axes = [(i, n), (j, dim)]
            key = self.array("key label segment assign", n, type="int", values=groups)
            x, y = self.array("x data values", n, dim), self.counters("sums out centers", groups, dim, type=self.kind)
            line, g = self.declare("g k0 group", f"{key}«{i}»", "int")
            lines = [line, self.add(f"{y}[{self.at((g, groups), (j, dim))}]", f"{x}«{self.at((i, n), (j, dim))}»")]
            if rng.random() < 0.5:
                counts = self.counters("counts sizes members", groups)
                lines += [f"if ({j} == 0) {{", self.add(f"{counts}[{g}]"), "}"]
            self.plain = lines
            return
        i, n = self.items()
        key = self.array("key label segment bucket", n, type="int", values=groups)
        line, g = self.declare("g k0 group", f"{key}«{i}»", "int")
        roll = rng.random()
        if roll < 0.6:
            x, y = self.array("x amount values", n), self.counters("sums totals out", groups, type=self.kind)
            counts = self.counters("counts sizes members", groups)
            self.plain = [line, self.add(f"{y}[{g}]", f"{x}«{i}»"), self.add(f"{counts}[{g}]")]
        else:
            x, y = self.array("x score values", n, type="int"), self.counters("best largest peak", groups)
            self.plain = [line, self.add(f"{y}[{g}]", f"{x}«{i}»", "max")]

    def degrees(self) -> None:
        """Edges of a graph: degrees of both ends, or messages along them."""
        i, m = self.items(903)
        n = self.size(67, "n nodes vertices")
        a = self.array("src from_node u row_idx", m, type="int", values=n)
        b = self.array("dst to_node v col_idx", m, type="int", values=n)
        if self.rng.random() < 0.5:
            out, into = self.counters("out_deg deg_out", n), self.counters("in_deg deg_in", n)
            self.plain = [self.add(f"{out}[{a}«{i}»]"), self.add(f"{into}[{b}«{i}»]")]
            return
        w, x, y = (
            self.array("w weight edge_w", m),
            self.array("x h rank", n),
            self.counters("y out agg", n, type=self.kind),
        )
        one, s = self.declare("s0 u0 head0", f"{a}«{i}»", "int")
        two, t = self.declare("t0 v0 tail0", f"{b}«{i}»", "int")
        self.plain = [one, two, self.add(f"{y}[{t}]", f"{w}«{i}» * {x}«{s}»")]

    def votes(self) -> None:
        """Every item votes for one place in each of several tables."""
        i, n = self.items(303)
        tables, size, t = (
            self.size(5, "tables angles hashes depth"),
            self.size(32, "buckets width0 rhos slots"),
            self.name_of("t a0 h k"),
        )
        key = self.array("key ids items", n, type="int")
        y = self.counters("votes sketch acc", tables, size)
        line, b = self.declare(
            "b slot r0 pos",
            f"({key}«{i}» * ({t} * {self.rng.choice((7, 13, 31))} + {self.rng.randint(3, 99)}) + {t}) % {size}",
            "int",
        )
        self.plain = ["@unroll", self.loop(t, tables), line, self.add(f"{y}[{self.at((t, tables), (b, size))}]"), "}"]

    def rows(self) -> None:
        """A histogram of every row."""
        r, c = self.name_of("r row i"), self.name_of("c col j")
        rows, cols = self.size(23, "rows n m"), self.size(97, "cols width len")
        self.axes = [(r, rows), (c, cols)]
        bins = self.fixed_size((8, 16, 32), "BINS NB") if self.rng.random() < 0.5 else self.size(16, "bins levels nb")
        x = self.array("x data image", rows, cols)
        lines, b = self.bin_of(f"{x}«{self.at((r, rows), (c, cols))}»", bins)
        y = self.counters("hist counts out", rows, bins)
        self.plain = [*lines, self.add(f"{y}[{self.at((r, rows), (b, bins))}]")]

    def cells(self) -> None:
        """Particles into the cells of a grid, whole or shared with the neighbour."""
        i, n = self.items(603)
        w, h = self.size(21, "nx width gx"), self.size(17, "ny height gy")
        x, y, q = self.array("px xs x", n), self.array("py ys y", n), self.array("q charge mass", n)
        grid = self.counters("grid rho density", h, w, type=self.kind)
        cx, cy, ten = self.name_of("cx ix gx0"), self.name_of("cy iy gy0"), self.number(8.0)
        lines = [
            f"{self.quiet}int {cx} = @imin((int)({x}«{i}» * {ten}), {w} - 2);",
            f"{self.quiet}int {cy} = @imin((int)({y}«{i}» * {ten}), {h} - 1);",
        ]
        if self.rng.random() < 0.5:
            self.plain = [*lines, self.add(f"{grid}[{self.at((cy, h), (cx, w))}]", f"{q}«{i}»")]
            return
        line, f = self.declare("fx tx part", f"{self.number(0.25)} * {q}«{i}»")
        at = self.at((cy, h), (cx, w))
        self.plain = [*lines, line, self.add(f"{grid}[{at}]", f"{q}«{i}» - {f}"), self.add(f"{grid}[{at} + 1]", f)]

    def confusion(self) -> None:
        i, n = self.items()
        k = self.fixed_size((4, 10), "CLASSES K NC")
        a, b = self.array("truth y target", n, type="uint8_t"), self.array("pred p guess", n, type="uint8_t")
        m = self.counters("matrix confusion counts", k, k)
        self.few = f"{k} * {k}"
        self.plain = [self.add(f"{m}[{a}«{i}» % {k} * {k} + {b}«{i}» % {k}]")]

    def tally(self) -> None:
        """One counter of what passes a test, or two."""
        i, n = self.items()
        x = self.array("x values a", n)
        low = self.factor("lo limit t0")
        line, v = self.declare("v xi val", f"{x}«{i}»")
        hits = self.counters("hits count total", "1")
        lines = [line, f"if ({v} > {low}) {{", self.add(f"{hits}[0]"), "}"]
        if self.rng.random() < 0.5:
            miss = self.counters("rest below others", "1")
            lines = [*lines[:-1], "} else {", self.add(f"{miss}[0]"), "}"]
        self.plain = lines

    # -- text
    def render(self, state: State) -> str:
        """Sequential code adds; threads add atomically to places that were cleared before."""
        saved = self.body
        self.body = []
        for line in saved:
            if found := ADD.match(line):
                op, place, value = found[1], found[2].replace("~", " "), found[3]
                if state:
                    line = f"atomic{op.title()}(&{place}, {value});"
                elif op == "max":
                    line = f"{place} = @imax({place}, {value});"
                elif value == "1":
                    line = f"{self.increment(place)};" if self.style.postfix else f"{place} += 1;"
                else:
                    line = f"{place} += {value};"
            self.body.append(line)
        try:
            return self.cleared(state)
        finally:
            self.body = saved

    def cleared(self, state: State) -> str:
        if not state:
            lines = []
            for name, type, extent in self.places:
                nothing = {"float": "0.0f", "double": "0.0"}.get(type, "0")
                if extent == "1":
                    lines.append(f"{name}[0] = {nothing};")
                elif self.clear == "fill":
                    self.extra_includes = sorted({*self.extra_includes, "algorithm"})
                    lines.append(f"std::fill({name}, {name} + {extent}, {nothing});")
                else:
                    lines += [self.loop(self.zeroer, extent), f"{name}[{self.zeroer}] = {nothing};", "}"]
            nest = [self.header(v, b) for v, b in self.axes]
            return self.sequential([*lines, *nest, *self.body, *["}"] * len(nest)])
        if "private" not in state:
            return super().render(state)
        name, type, extent = self.places[0]
        local, b = self.word(state["private"]["name"]), self.word(state["private"]["loop"])
        held = [line.replace(f"(&{name}[", f"(&{local}[") for line in self.body]
        every = f"for (int {b} = threadIdx.x; {b} < {extent}; {b} += blockDim.x) {{"
        lines = [
            f"__shared__ {type} {local}[{extent}];",
            every,
            f"{local}[{b}] = 0;",
            "}",
            "__syncthreads();",
            *self.walk(state, Shape(self.axes[0][1], lambda _: held, self.axes[0][0]), last=False),
            "__syncthreads();",
            every,
            f"atomicAdd(&{name}[{b}], {local}[{b}]);",
            "}",
        ]
        per = state["coarsen"]["factor"] if "coarsen" in state else 1
        return self.cuda(state, [self.kernel(state, lines)], self.launch(state, self.axes[0][1], per=per))

    def zeros(self, state: State) -> list[str]:
        memset = state["parallel"]["memset"]
        return [f"{memset}({name}, 0, {self.bytes(extent, type)});" for name, type, extent in self.places]

    def launch(self, state: State, count: str, **options: Any) -> list[str]:
        return [*self.zeros(state), *super().launch(state, count, **options)]

    def planar_launch(self, state: State) -> list[str]:
        return [*self.zeros(state), *super().planar_launch(state)]

    def bytes(self, extent: str, type: str) -> str:
        return f"sizeof({type})" if extent == "1" else f"{extent} * sizeof({type})"

    def techniques(self, state: State) -> set[str]:
        found = super().techniques(state)
        if self.few and "private" not in state:
            found.add("private")
        return found

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        if technique == "private" and not self.few:
            return None
        return super().apply(state, technique, idiom)
