"""Functions of several stages: what one nest of loops leaves in a scratch array, the next one reads."""

from __future__ import annotations

import re

from slm.corpus.family import Argument, Shape, State
from slm.corpus.work import Axis, Work


class Staged(Work):
    """Two or three nests one after the other, each a kernel of its own; perhaps repeated by a loop on the host."""

    name = "staged"
    hopeless = frozenset(("private", "pad"))  # the others a person could do here

    def make(self) -> None:
        self.stages: list[tuple[list[Axis], list[str]]] = []
        self.scratch: list[Argument] = []
        self.repeat: Axis | None = None
        forms = (self.separable, self.centred, self.covariance, self.layers, self.chain, self.gradient, self.channels,
                 self.sweeps, self.sweeps, self.scaled)  # fmt: skip
        self.rng.choice(forms)()
        self.axes, self.plain = self.stages[0]
        self.holder = self.rng.choice(("vector", "vector", "new"))

    def kept(self, words: str, *sizes: str) -> str:
        """A scratch array."""
        name = self.name_of(words)
        self.scratch.append(Argument("output", self.kind, name, " * ".join(sizes)))
        return name

    def stage(self, axes: list[Axis], *lines: str) -> None:
        self.stages.append((axes, list(lines)))

    def summed(self, words: str, around: list[Axis], term: str) -> tuple[list[str], str]:
        acc = self.name_of(words)
        loops = [self.loop(v, b) for v, b in around]
        loops.insert(len(loops) - 1, "@unroll")
        return [f"{self.kind} {acc} = {self.zero};", *loops, f"{acc} += {term};", *["}"] * len(around)], acc

    def matrix_axes(self) -> tuple[str, str, str, str]:
        rows, cols = self.size(37, "rows height m h n"), self.size(45, "cols width w d")
        return self.name_of("r i y row"), rows, self.name_of("c j x col"), cols

    def separable(self) -> None:
        y, h, x, w = self.matrix_axes()
        radius = (
            self.fixed_size((1, 2, 3), "R RADIUS HALF") if self.rng.random() < 0.5 else self.size(2, "radius r0 half")
        )
        source, weights = self.array("image src in", h, w), self.array("weights k taps", f"(2 * {radius} + 1)")
        line, out = self.kept("tmp mid line_sums pass1", h, w), self.result("out dst smooth", h, w)
        parts = []
        for array, target, (v, bound), words in ((source, line, (x, w), "dx kx t"), (line, out, (y, h), "dy ky s")):
            k, site, acc = (
                self.name_of(words),
                self.name_of(f"s{words[1]} at_{words[1]} p{words[1]}"),
                self.name_of("sum acc total s0 a1"),
            )
            places = [(y, h), (site, w)] if v == x else [(site, h), (x, w)]
            parts.append([
                f"{self.kind} {acc} = {self.zero};",
                "@unroll",
                f"for (int {k} = -{radius}; {k} <= {radius}; {self.increment(k)}) {{",
                f"{self.quiet}int {site} = @imin(@imax({v} + {k}, 0), {bound} - 1);",
                f"{acc} += {weights}«{k} + {radius}» * {array}«{self.at(*places)}»;",
                "}",
                f"{target}[{self.at((y, h), (x, w))}] = {acc};",
            ])  # fmt: skip
        for lines in parts:
            self.stage([(y, h), (x, w)], *lines)

    def centred(self) -> None:
        """Columns moved to mean zero, perhaps to deviation one."""
        r, rows, c, cols = self.matrix_axes()
        x, out = self.array("x data in", rows, cols), self.result("out y z", rows, cols)
        mean = self.kept("mean mu avg", cols)
        load = f"{x}«{self.at((r, rows), (c, cols))}»"
        lines, acc = self.summed("sum acc s0", [(r, rows)], load)
        self.stage([(c, cols)], *lines, f"{mean}[{c}] = {acc} / {rows};")
        value = f"{load} - {mean}«{c}»"
        if self.rng.random() < 0.5:
            dev = self.kept("std dev sigma", cols)
            lines, acc = self.summed("sq var ss", [(r, rows)], f"({load} - {mean}«{c}») * ({load} - {mean}«{c}»)")
            self.stage([(c, cols)], *lines, f"{dev}[{c}] = @sqrt({acc} / {rows} + {self.number(1e-05)});")
            value = f"({value}) / {dev}«{c}»"
        self.stage([(r, rows), (c, cols)], f"{out}[{self.at((r, rows), (c, cols))}] = {value};")

    def covariance(self) -> None:
        r, rows, c, cols = self.matrix_axes()
        i, j = self.name_of("i0 p a"), self.name_of("j0 q b")
        x, out, mean = (
            self.array("x data in", rows, cols),
            self.result("cov out gram", cols, cols),
            self.kept("mean mu", cols),
        )
        lines, acc = self.summed("sum acc", [(r, rows)], f"{x}«{self.at((r, rows), (c, cols))}»")
        self.stage([(c, cols)], *lines, f"{mean}[{c}] = {acc} / {rows};")
        left, right = (f"({x}«{self.at((r, rows), (v, cols))}» - {mean}«{v}»)" for v in (i, j))
        lines, acc = self.summed("dot s1 total", [(r, rows)], f"{left} * {right}")
        self.stage([(i, cols), (j, cols)], *lines, f"{out}[{self.at((i, cols), (j, cols))}] = {acc} / ({rows} - 1);")

    def layers(self) -> None:
        """Two dense layers with a function between them."""
        n, a, b, c = (
            self.size(23, "batch n rows"),
            self.size(13, "in_dim d a0"),
            self.size(19, "hidden h units"),
            self.size(11, "out_dim k classes"),
        )
        i, j, k, q = self.name_of("i r s"), self.name_of("j u hid"), self.name_of("k d0 t"), self.name_of("o c q")
        x, w1, b1 = self.array("x in", n, a), self.array("w1 W1 first", a, b), self.array("b1 bias1", b)
        w2, y = self.array("w2 W2 second", b, c), self.result("out y", n, c)
        mid = self.kept("hidden_v act mid h1", n, b)
        lines, acc = self.summed(
            "sum acc", [(k, a)], f"{x}«{self.at((i, n), (k, a))}» * {w1}«{self.at((k, a), (j, b))}»"
        )
        value = self.rng.choice((f"@max({acc} + {b1}«{j}», {self.zero})", f"@tanh({acc} + {b1}«{j}»)"))
        self.stage([(i, n), (j, b)], *lines, f"{mid}[{self.at((i, n), (j, b))}] = {value};")
        lines, acc = self.summed(
            "total s1 dot", [(j, b)], f"{mid}«{self.at((i, n), (j, b))}» * {w2}«{self.at((j, b), (q, c))}»"
        )
        self.stage([(i, n), (q, c)], *lines, f"{y}[{self.at((i, n), (q, c))}] = {acc};")

    def chain(self) -> None:
        """A matrix and then its transpose, or another matrix, times a vector."""
        r, rows, c, cols = self.matrix_axes()
        a, x, mid = self.array("A a mat", rows, cols), self.array("x v p", cols), self.kept("tmp ax t0", rows)
        y = self.result("y out q", cols)
        lines, acc = self.summed("sum acc", [(c, cols)], f"{a}«{self.at((r, rows), (c, cols))}» * {x}«{c}»")
        self.stage([(r, rows)], *lines, f"{mid}[{r}] = {acc};")
        lines, acc = self.summed("dot s1 total", [(r, rows)], f"{a}«{self.at((r, rows), (c, cols))}» * {mid}«{r}»")
        self.stage([(c, cols)], *lines, f"{y}[{c}] = {acc};")

    def gradient(self) -> None:
        """Differences of an image, then something of both."""
        y, h, x, w = self.matrix_axes()
        source, out = self.array("image u in", h, w), self.result("out edges mag", h, w)
        gx, gy = self.kept("gx dx ix", h, w), self.kept("gy dy iy", h, w)
        here = self.at((y, h), (x, w))
        half = self.number(0.5)
        lines = []
        for grad, (v, bound), words in ((gx, (x, w), ("left0 xl", "right0 xr")), (gy, (y, h), ("up yu", "down yd"))):
            low, high = (self.name_of(s) for s in words)
            lines += [
                f"{self.quiet}int {low} = {v} > 0 ? {v} - 1 : 0;",
                f"{self.quiet}int {high} = {v} < {bound} - 1 ? {v} + 1 : {bound} - 1;",
            ]
            a, b = ((self.at((y, h), (s, w)) if v == x else self.at((s, h), (x, w))) for s in (low, high))
            lines.append(f"{grad}[{here}] = {half} * ({source}«{b}» - {source}«{a}»);")
        self.stage([(y, h), (x, w)], *lines)
        p, q = f"{gx}«{here}»", f"{gy}«{here}»"
        value = self.rng.choice((f"@sqrt({p} * {p} + {q} * {q})", f"@abs({p}) + @abs({q})", f"{p} * {p} - {q} * {q}"))
        self.stage([(y, h), (x, w)], f"{out}[{here}] = {value};")

    def channels(self) -> None:
        """Moments of every channel of a batch, then the batch with them."""
        n, c, s = (
            (self.name_of("b n0 img"), self.size(3, "batch n N")),
            (self.name_of("c ch k"), self.size(5, "channels C")),
            (self.name_of("p s i"), self.size(45, "pixels spatial hw")),
        )
        sizes = [b for _, b in (n, c, s)]
        x, out = self.array("x in feat", *sizes), self.result("out y", *sizes)
        mean, inv = self.kept("mean mu", c[1]), self.kept("inv_std rstd scale1", c[1])
        gamma, beta = self.array("gamma weight g", c[1]), self.array("beta bias b0", c[1])
        load = f"{x}«{self.at(n, c, s)}»"
        total, square, v = self.name_of("sum total"), self.name_of("sq sum2"), self.name_of("v val")
        m, count = self.name_of("m mu0 avg"), f"({n[1]} * {s[1]})"
        spread = f"@max({square} / {count} - {m} * {m}, {self.zero})"
        self.stage(
            [c],
            f"{self.kind} {total} = {self.zero};",
            f"{self.kind} {square} = {self.zero};",
            self.loop(*n),
            self.loop(*s),
            f"{self.quiet}{self.kind} {v} = {load};",
            f"{total} += {v};",
            f"{square} += {v} * {v};",
            "}",
            "}",
            f"{self.quiet}{self.kind} {m} = {total} / {count};",
            f"{mean}[{c[0]}] = {m};",
            f"{inv}[{c[0]}] = {self.number(1.0)} / @sqrt({spread} + {self.number(0.01)});",
        )
        value = f"({load} - {mean}«{c[0]}») * {inv}«{c[0]}» * {gamma}«{c[0]}» + {beta}«{c[0]}»"
        self.stage([n, c, s], f"{out}[{self.at(n, c, s)}] = {value};")

    def sweeps(self) -> None:
        """Two arrays that take turns in a loop over time."""
        y, h, x, w = self.matrix_axes()
        self.repeat = (self.name_of("t step it sweep"), self.size(3, "steps iters sweeps nt"))
        a, b = self.array("u a grid_a t0", h, w, kind="inout"), self.kept("v_new b grid_b next", h, w)
        k = self.factor("alpha k0 rate") if self.rng.random() < 0.6 else self.number(0.5)
        quarter = self.number(0.25)
        five = self.rng.random() < 0.7
        for old, new in ((a, b), (b, a)):
            here = self.at((y, h), (x, w))
            near = [
                self.at((f"({y} - 1)", h), (x, w)),
                self.at((f"({y} + 1)", h), (x, w)),
                self.at((y, h), (f"{x} - 1", w)),
                self.at((y, h), (f"{x} + 1", w)),
            ]
            loads = " + ".join(f"{old}«{p}»" for p in (near if five else near[2:]))
            inside = [f"{y} == 0", f"{y} == {h} - 1", f"{x} == 0", f"{x} == {w} - 1"]
            edge = " || ".join(inside if five else inside[2:])
            mean = f"{quarter if five else self.number(0.5)} * ({loads})"
            value = f"{old}«{here}» + {k} * {quarter} * ({mean} - {old}«{here}»)"
            self.stage(
                [(y, h), (x, w)],
                f"if ({edge}) {{", f"{new}[{here}] = {old}«{here}»;", "} else {", f"{new}[{here}] = {value};", "}",
            )  # fmt: skip

    def scaled(self) -> None:
        """A value of every row, used by every element of another array."""
        r, rows, c, cols = self.matrix_axes()
        x, y, out = (
            self.array("x a in", rows, cols),
            self.array("y b other", rows, cols),
            self.result("out z", rows, cols),
        )
        norm = self.kept("norm scale0 len", rows)
        load = f"{x}«{self.at((r, rows), (c, cols))}»"
        lines, acc = self.summed(
            "sum acc", [(c, cols)], self.rng.choice((f"{load} * {load}", f"@abs({load})", f"@exp(-{load})"))
        )
        self.stage([(r, rows)], *lines, f"{norm}[{r}] = {self.number(1.0)} / ({acc} + {self.number(0.01)});")
        value = f"{load} * {norm}«{r}» + {y}«{self.at((r, rows), (c, cols))}»"
        self.stage([(r, rows), (c, cols)], f"{out}[{self.at((r, rows), (c, cols))}] = {value};")

    def lines(self) -> list[str]:
        return [line for _, body in self.stages for line in body]

    # -- text
    def render(self, state: State) -> str:
        kind = self.kind
        if not state:
            lines: list[str] = []
            for axes, body in self.stages:
                lines += [*(self.header(v, b) for v, b in axes), *body, *["}"] * len(axes)]
            if self.repeat:
                lines = [self.loop(*self.repeat), *lines, "}"]
            if self.holder == "vector":
                self.extra_includes = sorted({*self.extra_includes, "vector"})
                held = [f"std::vector<{kind}> {a.name}({a.size});" for a in self.scratch]
                return self.sequential([*held, *lines])
            held = [f"{kind}* {a.name} = new {kind}[{a.size}];" for a in self.scratch]
            return self.sequential([*held, *lines, *(f"delete[] {a.name};" for a in self.scratch)])
        block, grid = (self.word(w) for w in state["parallel"]["words"])
        x, y = state["parallel"]["block2"]
        kernels, calls, grids = [], [], []
        for k, (axes, body) in enumerate(self.stages):
            self.axes, self.body = axes, body
            name = f"{self.kernel_name(state)}_{k + 1}"
            text = " ".join((*body, *(b for _, b in axes)))
            taken = [a for a in (*self.arguments, *self.scratch) if re.search(rf"\b{a.name}\b", text)]
            parameters = ", ".join(self.parameter(state, self.read_only(a, text)) for a in taken)
            passed = ", ".join(a.name for a in taken)
            if len(axes) > 1 and not self.flat(state):
                lines = self.planar(state)
                deep = f", {self.product(axes[:-2])}" if len(axes) > 2 else ""
                grids.append(
                    f"dim3 {grid}{k + 1}(({axes[-1][1]} + {x - 1}) / {x}, ({axes[-2][1]} + {y - 1}) / {y}{deep});"
                )
                calls.append(f"{name}<<<{grid}{k + 1}, {block}>>>({passed});")
                threads = x * y
            else:
                count = self.product(axes)
                shape = Shape(count, lambda index: [*(self.unflatten(index) if len(self.axes) > 1 else []), *self.body],
                              axes[0][0] if len(axes) == 1 else "")  # fmt: skip
                lines = self.walk(state, shape)
                threads = int(state["parallel"]["block"])
                calls.append(f"{name}<<<({count} + {threads - 1}) / {threads}, {threads}>>>({passed});")
            kernels.append(self.kernel(state, lines, name=name, signature=parameters, threads=str(threads)))
        self.axes, self.body = self.stages[0]
        held = [f"{kind}* {a.name};" for a in self.scratch]
        held += [f"cudaMalloc(&{a.name}, {a.size} * sizeof({kind}));" for a in self.scratch]
        shapes = [f"dim3 {block}({x}, {y});", *grids] if grids else []
        if self.repeat:
            calls = [self.loop(*self.repeat), *calls, "}"]
        return self.cuda(state, kernels, [*held, *shapes, *calls, *(f"cudaFree({a.name});" for a in self.scratch)])

    @staticmethod
    def read_only(argument: Argument, text: str) -> Argument:
        """A scratch or in-out array as this stage sees it."""
        if argument.kind in ("output", "inout") and f"{argument.name}[" not in text:
            return Argument("input", argument.type, argument.name, argument.size)
        return argument

    def planar_state(self, state: State) -> str:
        return "flat" if self.flat(state) else "grid2"

    def flat(self, state: State) -> bool:
        return bool(state["parallel"]["flat"]) or len(self.axes) == 1

    def techniques(self, state: State) -> set[str]:
        joined = " ".join(line for _, body in self.stages for line in body)
        found = self.common(state, joined + ("" if self.repeat else " @unroll" if "@unroll" in joined else ""))
        if self.repeat:
            found -= {"ldg", "unroll"}
        return found - {"block"} - set(state)

    def apply(self, state: State, technique: str, idiom: dict[str, object]) -> State | None:
        if not state and technique != "parallel":
            return None
        return super().apply(state, technique, idiom)
