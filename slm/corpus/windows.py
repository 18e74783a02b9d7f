"""Windowed sums over one to three dimensions, with a rule for the border, with channels and planes."""

from __future__ import annotations

from typing import ClassVar

from slm.corpus.family import State
from slm.corpus.idioms import Idiom
from slm.corpus.work import Axis, Work

MODES = ("clamp", "zero", "skip", "wrap", "mean")


class Window(Work):
    """Filters, poolings, morphology and convolutions: a sum or an extremum over the neighbours of each output."""

    name = "window"
    spans: ClassVar[tuple[int, ...]] = (1, 2, 2, 2, 2, 3)

    def make(self) -> None:
        rng = self.rng
        if rng.random() < 0.35:
            self.convolution()
        else:
            self.filter()

    def filter(self) -> None:
        """A window of a radius round each place of an image; planes before it are each filtered alone."""
        rng = self.rng
        span = rng.choice(self.spans)
        words = ("depth nz D planes slices", "height h rows ny H", "width w cols nx W")[3 - span :]
        values = ((131, 1003)[span == 1],) if span == 1 else (23, 45) if span == 2 else (5, 13, 37)
        marks = ("z zz d s", "y r i row", "x c j col")[3 - span :]
        if span < 3 and rng.random() < 0.25:
            planes, plane = self.size(3, "planes channels batch images C n_img"), self.name_of("p plane ch b n")
            self.axes.append((plane, planes))
        space: list[Axis] = []
        for mark, word, value in zip(marks, words, values, strict=True):
            bound = self.size(value, word)
            space.append((self.name_of(mark), bound))
        self.axes += space
        self.mode = rng.choice(MODES)
        self.op = "sum" if self.mode in ("zero", "mean") else rng.choice(("sum", "sum", "sum", "max", "min"))
        self.space = space
        sizes = [b for _, b in self.axes]
        self.radius: str
        self.source = self.array("image src input in field x signal grid_in vol", *sizes)
        if rng.random() < 0.65:
            self.radius = str(rng.choice((1, 1, 2, 3)))
            if rng.random() < 0.5:
                number = self.radius
                self.radius = self.name_of("R RADIUS HALF K_HALF")
                self.constants.append(
                    rng.choice(("constexpr int {} = {};", "#define {} {}")).format(self.radius, number)
                )
                self.dims[self.radius] = int(number)
        else:
            self.radius = self.size(2, "radius r half k rad reach")
        acc = self.name_of("sum acc total s best value")
        self.sums = [(acc, self.op)]
        self.steps = [self.name_of(w) for w in ("dz kz oz", "dy ky oy di", "dx kx ox dj k")[3 - span :]]
        self.sites = [self.name_of(w) for w in ("sz zz0 pz", "sy yy py ii", "sx xx px jj")[3 - span :]]
        side = f"2 * {self.radius} + 1"
        self.weights = ""
        if self.op == "sum" and rng.random() < 0.6:
            self.weights = self.array("weight w kernel filter taps coeff mask", *([f"({side})"] * span))
        self.counting = self.mode == "mean"
        if self.counting:
            self.count = self.name_of("count n_in used cnt total_w")
            self.sums.append((self.count, "sum"))
        self.store = self.result("out dst blurred smooth result filtered y", *sizes)
        self.load_form = rng.choice(("direct", "local"))
        self.value = self.name_of("v value pixel val sample")
        self.around = [(step, "") for step in self.steps]
        self.inner = self.taps(self.read([*self.plane(), *zip(self.sites, [b for _, b in space], strict=True)]))
        self.after = self.finish()

    def plane(self) -> list[tuple[str, str]]:
        return list(self.axes[: len(self.axes) - len(self.space)])

    def read(self, places: list[tuple[str, str]]) -> str:
        return f"{self.source}«{self.at(*places)}»"

    def opened(self) -> list[str]:
        if self.around and self.around[0][1]:
            return super().opened()
        lines = []
        for k, step in enumerate(self.steps):
            if k == len(self.steps) - 1:
                lines.append("@unroll")
            lines.append(f"for (int {step} = -{self.radius}; {step} <= {self.radius}; {self.increment(step)}) {{")
        return lines

    def site_lines(self) -> list[str]:
        """Where a tap reads: clamped, wrapped, or tested afterwards."""
        lines = []
        for (variable, bound), step, site in zip(self.space, self.steps, self.sites, strict=True):
            value = f"{variable} + {step}"
            if self.mode == "clamp":
                value = f"@imin(@imax({value}, 0), {bound} - 1)"
            elif self.mode == "wrap":
                value = f"({value} + {bound}) % {bound}"
            lines.append(f"{self.quiet}int {site} = {value};")
        return lines

    def outside(self) -> str:
        tests = [f"{site} < 0 || {site} >= {bound}" for (_, bound), site in zip(self.space, self.sites, strict=True)]
        return " || ".join(tests)

    def within(self) -> str:
        tests = [f"{site} >= 0 && {site} < {bound}" for (_, bound), site in zip(self.space, self.sites, strict=True)]
        return " && ".join(tests)

    def weight(self) -> str:
        side = f"(2 * {self.radius} + 1)"
        places = [(f"{step} + {self.radius}", side) for step in self.steps]
        cast, self.cast = self.cast, "{}"
        index = self.at(*places)
        self.cast = cast
        return f"{self.weights}«{index}»"

    def taps(self, load: str) -> list[str]:
        rng, acc = self.rng, self.sums[0][0]
        lines: list[str] = self.site_lines()
        term = load
        if self.load_form == "local":
            term = self.value
        if self.op == "sum":
            add = f"{acc} += {term}{' * ' + self.weight() if self.weights else ''};"
            update = [add]
        else:
            sign = ">" if self.op == "max" else "<"
            update = rng.choice(
                (
                    [f"{acc} = @{self.op}({acc}, {term});"],
                    [f"if ({term} {sign} {acc}) {{", f"{acc} = {term};", "}"],
                    [f"{acc} = {term} {sign} {acc} ? {term} : {acc};"],
                )
            )
        if self.counting:
            one = self.number(1.0)
            update = [*update, f"{self.count} += {self.weight() if self.weights else one};"]
        local = [f"{self.quiet}{self.kind} {self.value} = {load};"] if self.load_form == "local" else []
        if self.mode in ("clamp", "wrap"):
            return [*lines, *local, *update]
        if self.mode == "zero" and self.load_form == "local" and rng.random() < 0.5:
            return [*lines, f"{self.quiet}{self.kind} {self.value} = {self.within()} ? {load} : {self.zero};", *update]
        if rng.random() < 0.5:
            return [*lines, f"if ({self.outside()}) {{", "continue;", "}", *local, *update]
        return [*lines, f"if ({self.within()}) {{", *local, *update, "}"]

    def finish(self) -> list[str]:
        rng, acc = self.rng, self.sums[0][0]
        place = f"{self.store}[{self.at(*self.axes)}]"
        if self.counting:
            return [f"{place} = {acc} / {self.count};"]
        if self.op != "sum" or self.weights:
            here = self.read(list(self.axes))
            value = rng.choice((acc, acc, f"{acc} + {self.factor('bias shift')}", f"@max({acc}, {self.zero})"))
            if rng.random() < 0.15:
                value = f"{acc} - {here}"
            return [f"{place} = {value};"]
        side = f"(2 * {self.radius} + 1)"
        area = f"({' * '.join([side] * len(self.space))})"
        line, area_name = self.declare("area norm inv_area size0", f"{self.number(1.0)} / {area}")
        return rng.choice(
            ([f"{place} = {acc} / {area};"], [line, f"{place} = {acc} * {area_name};"], [f"{place} = {acc};"])
        )

    # -- convolutions with channels, stride and padding
    def convolution(self) -> None:
        rng = self.rng
        flat = rng.random() < 0.35  # one dimension
        cin = self.size(rng.choice((3, 4)), "in_channels C c_in channels ci_n IC")
        cout = self.size(rng.choice((5, 6)), "out_channels K c_out filters co_n OC")
        side = (
            self.fixed_size((3, 3, 5), "K KSIZE KERNEL FS")
            if rng.random() < 0.5
            else self.size(3, "k ksize kernel taps")
        )
        stride = self.size(2, "stride step s") if rng.random() < 0.5 else ""
        pad = self.size(1, "pad padding p") if rng.random() < 0.6 else "" if rng.random() < 0.5 else "1"
        batch = self.size(2, "batch n N images") if rng.random() < 0.5 else ""
        heights = [] if flat else [(self.size(19, "height h in_h H"), self.size(8, "out_h oh H_out ho"))]
        widths = (self.size(37, "width w in_w W length"), self.size(17, "out_w ow W_out wo out_len"))
        dims = [*heights, widths]
        space: list[Axis] = [
            (self.name_of(w), o) for w, (_, o) in zip(("y oy i r", "x ox j c")[-len(dims) :], dims, strict=True)
        ]
        self.space = space
        co, ci = self.name_of("co oc k_out f"), self.name_of("ci ic c_in ch")
        b = self.name_of("b n img")
        self.axes = [*([(b, batch)] if batch else []), (co, cout), *space]
        steps = [self.name_of(w) for w in ("ky kh dy", "kx kw dx t")[-len(dims) :]]
        sites = [self.name_of(w) for w in ("iy sy yy", "ix sx xx")[-len(dims) :]]
        source = self.array("input x image in feat src", *([batch] if batch else []), cin, *(i for i, _ in dims))
        weight = self.array("weight w kernel filter", cout, cin, *([side] * len(dims)))
        bias = self.array("bias b0 beta", cout) if rng.random() < 0.6 else ""
        target = self.result("output y out result", *([batch] if batch else []), cout, *(o for _, o in dims))
        acc = self.name_of("sum acc value total s")
        self.sums = [(acc, "sum")]
        self.around = [(ci, cin), *((s, side) for s in steps)]
        lines = []
        for (variable, _), step, site in zip(space, steps, sites, strict=True):
            first = f"{variable} * {stride} + {step}" if stride else f"{variable} + {step}"
            lines.append(f"{self.quiet}int {site} = {first}{' - ' + pad if pad else ''};")
        test_in = " && ".join(f"{s} >= 0 && {s} < {i}" for s, (i, _) in zip(sites, dims, strict=True))
        test_out = " || ".join(f"{s} < 0 || {s} >= {i}" for s, (i, _) in zip(sites, dims, strict=True))
        first_axes = [(b, batch)] if batch else []
        load = f"{source}«{self.at(*first_axes, (ci, cin), *zip(sites, [i for i, _ in dims], strict=True))}»"
        term = f"{weight}«{self.at((co, cout), (ci, cin), *((s, side) for s in steps))}»"
        update = f"{acc} += {load} * {term};" if rng.random() < 0.6 else f"{acc} += {term} * {load};"
        guarded = (
            [f"if ({test_in}) {{", update, "}"]
            if rng.random() < 0.6
            else [f"if ({test_out}) {{", "continue;", "}", update]
        )
        self.inner = [*lines, *guarded]
        value = acc + (f" + {bias}«{co}»" if bias else "")
        if rng.random() < 0.2:
            value = f"@max({value}, {self.zero})"
        self.after = [f"{target}[{self.at(*self.axes)}] = {value};"]
        self.mode = "convolution"

    # -- a tile with a halo in shared memory
    def tiles(self) -> bool:
        return (
            self.mode in ("clamp", "zero", "skip", "mean")
            and len(self.axes) == len(self.space) == 2
            and not (set(self.sizes) & {self.radius})
        )

    def shareable(self) -> bool:
        return self.mode == "convolution" and super().shareable()

    def stacks(self) -> bool:
        return bool(self.sums)

    def techniques(self, state: State) -> set[str]:
        found = super().techniques(state)
        if self.tiles() and not self.flat(state) and not {"regtile", "tile"} & set(state):
            found.add("tile")
        if "tile" in state:
            found -= {"regtile", "gridstride", "coarsen", "block", "ldg"}
        return found

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        if technique == "tile" and (idiom["size"] == 8 or not state):
            return None
        return super().apply(state, technique, idiom)

    def threads(self, state: State) -> int:
        return int(state["tile"]["size"]) ** 2 if "tile" in state else super().threads(state)

    def render(self, state: State) -> str:
        if "tile" not in state:
            return super().render(state)
        idiom = state["tile"]
        size, radius = int(idiom["size"]), self.radius
        tile = self.word(idiom["name"])
        (y, rows), (x, columns) = self.space
        tx, ty = (self.word(w) for w in idiom["ty"])
        named = idiom["spelled"] == "constant"
        side = "TILE" if named else str(size)
        full = f"{side} + 2 * {radius}" if named or not radius.isdigit() else str(size + 2 * int(radius))
        at, gy, gx = self.word("l"), self.word("gy"), self.word("gx")
        whole = full if full.isdigit() else f"({full})"
        place = self.at((gy, rows), (gx, columns))
        if self.mode == "clamp":
            where = (
                f"@imin(@imax({{}} + {at} / {whole} - {radius}, 0), {rows} - 1)",
                f"@imin(@imax({{}} + {at} % {whole} - {radius}, 0), {columns} - 1)",
            )
            load = f"{self.source}«{place}»"
        else:
            where = (f"{{}} + {at} / {whole} - {radius}", f"{{}} + {at} % {whole} - {radius}")
            fill = self.starts(self.op)
            load = f"{gy} >= 0 && {gy} < {rows} && {gx} >= 0 && {gx} < {columns} ? {self.source}«{place}» : {fill}"
        fetch = [
            f"__shared__ {self.kind} {tile}[{full}][{full}];",
            f"int {tx} = threadIdx.x;",
            f"int {ty} = threadIdx.y;",
            f"for (int {at} = {ty} * {side} + {tx}; {at} < {whole} * {whole}; {at} += {side} * {side}) {{",
            f"int {gy} = {where[0].format(f'blockIdx.y * {side}')};".replace("blockIdx", "(int)blockIdx"),
            f"int {gx} = {where[1].format(f'blockIdx.x * {side}')};".replace("blockIdx", "(int)blockIdx"),
            f"{tile}[{at} / {whole}][{at} % {whole}] = {load};",
            "}",
            "__syncthreads();",
            f"int {x} = blockIdx.x * {side} + {tx};",
            f"int {y} = blockIdx.y * {side} + {ty};",
        ]
        sy, sx = self.sites
        near = f"{tile}[{ty} + {self.steps[0]} + {self.radius}][{tx} + {self.steps[1]} + {self.radius}]"
        old = f"{self.source}«{self.at((sy, rows), (sx, columns))}»"
        body = []
        for line in self.body:
            if self.mode == "clamp" and line in self.site_lines():
                continue
            body.append(line.replace(old, near))
        guard = f"if ({y} < {rows} && {x} < {columns}) {{"
        if state["parallel"]["guard"] == "return":
            body = [f"if ({y} >= {rows} || {x} >= {columns}) return;", *body]
        else:
            body = [guard, *body, "}"]
        block, grid = (self.word(w) for w in state["parallel"]["words"])
        host = [
            f"dim3 {block}({side}, {side});",
            f"dim3 {grid}(({columns} + {side} - 1) / {side}, ({rows} + {side} - 1) / {side});",
            f"{self.kernel_name(state)}<<<{grid}, {block}>>>({self.passed()});",
        ]
        text = self.cuda(state, [self.kernel(state, [*fetch, *body])], host)
        if named:
            text = text.replace(
                "#include <cuda_runtime.h>\n", f"#include <cuda_runtime.h>\n\nconstexpr int TILE = {size};\n", 1
            )
        return text
