"""Recurrences along one dimension, in parallel over others; small fixed-size matrices, each by one thread."""

from __future__ import annotations

from slm.corpus.work import Work


class Sweep(Work):
    """A state carried from step to step: filters, recurrent cells, scans of columns, solvers, simulations."""

    name = "sweep"

    def make(self) -> None:
        forms = (
            self.smooth, self.scan, self.cell, self.filter2, self.orbit, self.solve, self.dynamic, self.multiply,
            self.multiply, self.invert, self.turn, self.factorise,
        )  # fmt: skip
        self.rng.choice(forms)()

    def lanes(self) -> None:
        """The parallel axes, and the order in which steps lie in memory."""
        rng = self.rng
        self.steps = self.size(19, "steps T seq len nt rows depth")
        self.step = self.name_of("t s k step row")
        if rng.random() < 0.5:
            self.axes = [(self.name_of("c i lane0 ch col"), self.size(301, "channels C n width streams lanes"))]
        else:
            self.axes = [
                (self.name_of("b n batch_i"), self.size(7, "batch B nb")),
                (self.name_of("c d ch j"), self.size(45, "channels C dim width")),
            ]
        self.inside_out = rng.random() < 0.4  # steps last

    def at_step(self, step: str) -> str:
        places = [*self.axes]
        places.insert(len(places) if self.inside_out else len(places) - 1, (step, self.steps))
        return self.at(*places)

    def series(self, words: str, *, out: bool = False) -> str:
        sizes = [b for _, b in self.axes]
        sizes.insert(len(sizes) if self.inside_out else len(sizes) - 1, self.steps)
        return self.array(words, *sizes, kind="output" if out else "input")

    def of_lane(self, words: str, *, out: bool = False) -> tuple[str, str]:
        """(load, name) of an array over the last axis, or all of them where it is an output."""
        axes = self.axes if out else self.axes[-1:]
        name = self.array(words, *(b for _, b in axes), kind="output" if out else "input")
        return f"{name}«{self.at(*axes)}»", f"{name}[{self.at(*axes)}]"

    def forward(self) -> str:
        return self.loop(self.step, self.steps)

    def backward(self) -> str:
        return f"for (int {self.step} = {self.steps} - 1; {self.step} >= 0; --{self.step}) {{"

    def smooth(self) -> None:
        rng = self.rng
        self.lanes()
        x, y, one = self.series("x in src signal"), self.series("y out dst", out=True), self.number(1.0)
        a = (
            self.factor("alpha decay a0")
            if rng.random() < 0.4
            else self.number(0.25)
            if rng.random() < 0.5
            else self.of_lane("decay alpha lam")[0]
        )
        s = self.name_of("state s0 prev acc")
        a = a if not a.replace(".", "").isdigit() else self.number(0.25)
        half = self.number(0.5)
        update = rng.choice(
            (
                f"{s} = {a} * {half} * {s} + {x}«{self.at_step(self.step)}»;",
                f"{s} += {half} * ({x}«{self.at_step(self.step)}» - {s}) * {a};",
            )
        )
        start = rng.choice(
            (self.zero, f"{x}«{self.at_step('0').replace(' + 0', '') if self.inside_out else self.at_step('0')}»")
        )
        head = self.forward() if rng.random() < 0.7 else self.backward()
        self.plain = [f"{self.kind} {s} = {start};", head, update, f"{y}[{self.at_step(self.step)}] = {s};", "}"]
        if rng.random() < 0.4:
            self.plain.append(f"{self.of_lane('last final carry', out=True)[1]} = {s};")
        del one

    def scan(self) -> None:
        rng = self.rng
        self.lanes()
        x, y = self.series("x in src values"), self.series("y out sums", out=True)
        s, here = self.name_of("running acc sum total"), f"{x}«{self.at_step(self.step)}»"
        form = rng.choice(("sum", "exclusive", "max", "reset"))
        put = f"{y}[{self.at_step(self.step)}] = {s};"
        if form == "sum":
            body = [f"{s} += {here};", put]
        elif form == "exclusive":
            body = [put, f"{s} += {here};"]
        elif form == "max":
            body = [f"{s} = @max({s}, {here});", put]
        else:
            limit = self.factor("limit cap threshold")
            body = [f"{s} = {s} > {limit} ? {here} : {s} + {here};", put]
        start = self.starts("max") if form == "max" else self.zero
        self.plain = [
            f"{self.kind} {s} = {start};",
            self.forward() if rng.random() < 0.75 else self.backward(),
            *body,
            "}",
        ]

    def cell(self) -> None:
        """A gated recurrence: a forget gate, an input gate, a candidate."""
        self.lanes()
        one = self.number(1.0)
        f, i, z = self.series("f forget fg"), self.series("i_gate ig u"), self.series("z cand v")
        y = self.series("h out y", out=True)
        c, at = self.name_of("c0 state cell0"), self.name_of("at idx o")
        fg, ig = self.name_of("fv f1 keep"), self.name_of("iv i1 take0")
        where = self.at_step(self.step)
        kind = "size_t" if "size_t" in self.cast else "long" if "long" in self.cast else "int"
        self.plain = [
            f"{self.kind} {c} = {self.zero};",
            self.forward(),
            f"const {kind} {at} = {where};",
            f"{self.quiet}{self.kind} {fg} = {one} / ({one} + @exp(-{f}«{at}»));",
            f"{self.quiet}{self.kind} {ig} = {one} / ({one} + @exp(-{i}«{at}»));",
            f"{c} = {fg} * {c} + {ig} * @tanh({z}«{at}»);",
            f"{y}[{at}] = {self.rng.choice((c, f'@tanh({c})'))};",
            "}",
        ]

    def filter2(self) -> None:
        """A second-order filter, its two last states in locals."""
        self.lanes()
        x, y, num = self.series("x in signal"), self.series("y out", out=True), self.number
        b0, b1 = self.factor("b0 c0 gain"), self.factor("b1 c1 k1")
        s1, s2, o, v = (self.name_of(w) for w in ("s1 z1 d1", "s2 z2 d2", "o r w0", "v x0 in_v"))
        at = self.at_step(self.step)
        self.plain = [
            f"{self.kind} {s1} = {self.zero}, {s2} = {self.zero};"
            if self.rng.random() < 0.5
            else f"{self.kind} {s1} = {self.zero};\n{self.kind} {s2} = {self.zero};",
            self.forward(),
            f"{self.quiet}{self.kind} {v} = {x}«{at}»;",
            f"{self.quiet}{self.kind} {o} = {b0} * {v} + {num(0.25)} * {s1} - {num(0.125)} * {s2};",
            f"{s2} = {s1};",
            f"{s1} = {v} * {b1} + {num(0.1)} * {o};",
            f"{y}[{at}] = {o};",
            "}",
        ]
        self.plain = "\n".join(self.plain).split("\n")

    def orbit(self) -> None:
        """A particle, a price, an orbit: several values stepped together."""
        rng, num = self.rng, self.number
        n, steps = self.size(501, "n paths particles count"), self.size(12, "steps iters nsteps")
        i, t = self.name_of("i p id"), self.name_of("t s it")
        self.axes = [(i, n)]
        x, v = self.array("x0 pos start", n), self.array("v0 vel speed", n)
        dt, k = self.factor("dt h tau"), self.factor("k stiffness omega")
        p, q, a = self.name_of("px xi p0"), self.name_of("vx vi q0"), self.name_of("acc f a0")
        out_x, out_v = self.result("x_out xs pos_out", n), self.result("v_out vs vel_out", n)
        step, half = num(0.01), num(0.5)
        self.plain = [
            f"{self.kind} {p} = {x}«{i}»;",
            f"{self.kind} {q} = {v}«{i}»;",
            "@unroll",
            self.loop(t, steps),
            f"{self.quiet}{self.kind} {a} = {rng.choice((f'-{k} * {p}', f'-{k} * @sin({p})', f'{half} - {k} * {p}'))};",
            f"{q} += {a} * {dt} * {step};",
            f"{p} += {q} * {dt} * {step};",
            *([f"if ({p} < {self.zero}) {{", f"{p} = -{p};", f"{q} = -{q};", "}"] if rng.random() < 0.4 else []),
            "}",
            f"{out_x}[{i}] = {p};",
            f"{out_v}[{i}] = {q};",
        ]

    def solve(self) -> None:
        """Tridiagonal systems, one a thread: elimination down, substitution up."""
        n, m = self.size(129, "systems n batch cols"), self.size(11, "m rows order len")
        i, r = self.name_of("i s c"), self.name_of("r k j")
        self.axes = [(i, n)]
        a, b, d = self.array("lower a sub", m, n), self.array("diag b main_d", m, n), self.array("rhs d f", m, n)
        c, x = self.result("cp work_c scratch", m, n), self.result("x out solution", m, n)
        w, shift = self.name_of("w0 m0 denom"), self.number(4.0)

        def at(k: str) -> str:
            return self.at((k, m), (i, n))

        self.plain = [
            f"{c}[{at('0')}] = {self.number(0.5)} / ({b}«{at('0')}» + {shift});",
            f"{x}[{at('0')}] = {d}«{at('0')}» / ({b}«{at('0')}» + {shift});",
            self.loop(r, m, "1"),
            f"{self.quiet}{self.kind} {w} = {b}«{at(r)}» + {shift} - {a}«{at(r)}» * {c}[{at(f'({r} - 1)')}];",
            f"{c}[{at(r)}] = {self.number(0.5)} / {w};",
            f"{x}[{at(r)}] = ({d}«{at(r)}» - {a}«{at(r)}» * {x}[{at(f'({r} - 1)')}]) / {w};",
            "}",
            f"for (int {r} = {m} - 2; {r} >= 0; --{r}) {{",
            f"{x}[{at(r)}] -= {c}[{at(r)}] * {x}[{at(f'({r} + 1)')}];",
            "}",
        ]

    def dynamic(self) -> None:
        """The cheapest way through a small table, a pair of sequences a thread."""
        rng = self.rng
        n, m = self.size(203, "pairs n count batch"), self.fixed_size((6, 8), "LEN M SIDE")
        i, r, c = self.name_of("i p q"), self.name_of("r y a0"), self.name_of("c x b0")
        self.axes = [(i, n)]
        a, b = self.array("a first s1", n, m), self.array("b second s2", n, m)
        row, left, diag, up = (
            self.name_of("row line dp"),
            self.name_of("left cur"),
            self.name_of("diag corner"),
            self.name_of("up old"),
        )
        y, cost = self.result("dist out score", n), self.name_of("cost d0 step_c")
        big = {"float": "1e6f", "double": "1e6"}[self.kind]
        self.plain = [
            f"{self.kind} {row}[{m} + 1];",
            self.loop(c, f"{m} + 1"),
            f"{row}[{c}] = {c} == 0 ? {self.zero} : {big};",
            "}",
            self.loop(r, m),
            f"{self.kind} {diag} = {row}[0];",
            f"{self.kind} {left} = {big};",
            f"{row}[0] = {big};",
            self.loop(c, m),
            f"{self.quiet}{self.kind} {cost} = @abs({a}«{self.at((i, n), (r, m))}» - {b}«{self.at((i, n), (c, m))}»);",
            f"{self.quiet}{self.kind} {up} = {row}[{c} + 1];",
            f"{left} = {cost} + @min({diag}, @min({up}, {left}));",
            f"{diag} = {up};",
            f"{row}[{c} + 1] = {left};",
            "}",
            "}",
            f"{y}[{i}] = {row}[{m}];",
        ]
        del rng

    # -- small matrices
    def multiply(self) -> None:
        """A product of small matrices, or a small matrix and a vector, for every item."""
        rng = self.rng
        n, side = self.size(211, "n batch count items"), self.fixed_size((2, 3, 4), "D DIM ORDER")
        i, r, c, k = self.name_of("i e b"), self.name_of("r row"), self.name_of("c col"), self.name_of("k q")
        self.axes = [(i, n)]
        vector = rng.random() < 0.5
        a = self.array("a mats m0 A", n, side, side)
        b = self.array("b vecs x v0" if vector else "b other m1 B", n, *([side] if vector else [side, side]))
        y, acc = self.result("out y c_out", n, *([side] if vector else [side, side])), self.name_of("sum acc s0")
        left = f"{a}«{self.at((i, n), (r, side), (k, side))}»"
        right = f"{b}«{self.at((i, n), (k, side), *([] if vector else [(c, side)]))}»"
        place = f"{y}[{self.at((i, n), (r, side), *([] if vector else [(c, side)]))}]"
        if rng.random() < 0.4:
            held, line = self.name_of("mat m_loc la"), self.name_of("t u")
            item = f"{a}«{self.cast.format(i)} * {side} * {side} + {line}»"
            fill = [self.loop(line, f"{side} * {side}"), f"{held}[{line}] = {item};", "}"]
            load = [f"{self.kind} {held}[{side} * {side}];", *fill]
            left = f"{held}[{r} * {side} + {k}]"
        else:
            load = []
        sum_ = [
            f"{self.kind} {acc} = {self.zero};",
            "@unroll",
            self.loop(k, side),
            f"{acc} += {left} * {right};",
            "}",
            f"{place} = {acc};",
        ]
        inner = sum_ if vector else [self.loop(c, side), *sum_, "}"]
        self.plain = [*load, self.loop(r, side), *inner, "}"]

    def invert(self) -> None:
        """Inverses and determinants of two by two and three by three, written out."""
        rng = self.rng
        n, i = self.size(307, "n count batch"), self.name_of("i e t")
        self.axes = [(i, n)]
        two = rng.random() < 0.5
        size, words = (4, "a b c d") if two else (9, "a b c d e f g h q")
        m, p = self.array("m mats x", n, str(size)), self.name_of("p base m_i")
        names = [self.name_of(f"{w}0 {w}1 m{w}") for w in words.split()]
        shift = self.number(2.0)
        cast = self.cast.format(i)
        lines = [f"const {self.kind}* {p} = {m} + {cast} * {size};"]
        diagonal = (0, 3) if two else (0, 4, 8)
        lines += [
            f"{self.quiet}{self.kind} {x} = {p}«{k}»{' + ' + shift if k in diagonal else ''};"
            for k, x in enumerate(names)
        ]
        det, inv = self.name_of("det d0 dm"), self.name_of("inv r0 rd")
        if two:
            a, b, c, d = names
            value = f"{a} * {d} - {b} * {c}"
            cells: tuple[str, ...] = (d, f"-{b}", f"-{c}", a)
        else:
            a, b, c, d, e, f, g, h, q = names
            value = f"{a} * ({e} * {q} - {f} * {h}) - {b} * ({d} * {q} - {f} * {g}) + {c} * ({d} * {h} - {e} * {g})"
            cells = (f"({e} * {q} - {f} * {h})", f"({c} * {h} - {b} * {q})", f"({b} * {f} - {c} * {e})",
                     f"({f} * {g} - {d} * {q})", f"({a} * {q} - {c} * {g})", f"({c} * {d} - {a} * {f})",
                     f"({d} * {h} - {e} * {g})", f"({b} * {g} - {a} * {h})", f"({a} * {e} - {b} * {d})")  # fmt: skip
        lines.append(f"{self.quiet}{self.kind} {det} = {value};")
        if rng.random() < 0.3:
            self.plain = [*lines, f"{self.result('det out dets', n)}[{i}] = {det};"]
            return
        y = self.result("inv_out y out", n, str(size))
        one, tiny = self.number(1.0), self.number(0.001)
        lines.append(f"{self.quiet}{self.kind} {inv} = {one} / (@abs({det}) + {tiny});")
        self.plain = [
            *lines,
            *(f"{y}[{cast} * {size}{f' + {k}' if k else ''}] = {cell} * {inv};" for k, cell in enumerate(cells)),
        ]

    def turn(self) -> None:
        """Points moved by a matrix that all share, or by a quaternion each."""
        rng = self.rng
        n, i = self.size(401, "n points vertices count"), self.name_of("i p v0")
        self.axes = [(i, n)]
        x = self.array("pts xyz in_pts src", n, "3")
        y = self.result("out dst moved", n, "3")
        a, b, c = (self.name_of(w) for w in ("px x0 u0", "py y00 u1", "pz z0 u2"))
        lines = [
            f"{self.quiet}{self.kind} {v} = {x}«3 * {i}{f' + {k}' if k else ''}»;" for k, v in enumerate((a, b, c))
        ]
        if rng.random() < 0.6:
            m = self.array("mat T R pose", "12")
            rows = [
                f"{m}«{4 * r}» * {a} + {m}«{4 * r + 1}» * {b} + {m}«{4 * r + 2}» * {c} + {m}«{4 * r + 3}»"
                for r in range(3)
            ]
            self.plain = [*lines, *(f"{y}[3 * {i}{f' + {k}' if k else ''}] = {row};" for k, row in enumerate(rows))]
            return
        q = self.array("quat q rot", n, "4")
        names = [self.name_of(w) for w in ("qw w0", "qx i0", "qy j0", "qz k0")]
        lines += [f"{self.quiet}{self.kind} {v} = {q}«4 * {i}{f' + {k}' if k else ''}»;" for k, v in enumerate(names)]
        w, qx, qy, qz = names
        t = [self.name_of(k) for k in ("tx t0", "ty t1", "tz t2")]
        two = self.number(2.0)
        crosses = (f"{qy} * {c} - {qz} * {b}", f"{qz} * {a} - {qx} * {c}", f"{qx} * {b} - {qy} * {a}")
        lines += [f"{self.quiet}{self.kind} {n0} = {two} * ({cr});" for n0, cr in zip(t, crosses, strict=True)]
        tx, ty, tz = t
        ends = (f"{a} + {w} * {tx} + {qy} * {tz} - {qz} * {ty}", f"{b} + {w} * {ty} + {qz} * {tx} - {qx} * {tz}",
                f"{c} + {w} * {tz} + {qx} * {ty} - {qy} * {tx}")  # fmt: skip
        self.plain = [*lines, *(f"{y}[3 * {i}{f' + {k}' if k else ''}] = {e};" for k, e in enumerate(ends))]

    def factorise(self) -> None:
        """Cholesky factors of small matrices that a shift makes positive."""
        n, side = self.size(97, "n batch count"), self.fixed_size((3, 4), "D ORDER SIDE")
        i, r, c, k = self.name_of("i b m0"), self.name_of("r row"), self.name_of("c col"), self.name_of("k t")
        self.axes = [(i, n)]
        a, low = self.array("a x cov", n, side), self.result("L lower out", n, side, side)
        p, o, s = self.name_of("src p ai"), self.name_of("dst o li"), self.name_of("s acc sum")
        cast = self.cast.format(i)
        two = self.number(2.0)
        self.plain = [
            f"const {self.kind}* {p} = {a} + {cast} * {side};",
            f"{self.kind}* {o} = {low} + {cast} * {side} * {side};",
            self.loop(r, side),
            self.loop(c, side),
            f"if ({c} > {r}) {{",
            f"{o}[{r} * {side} + {c}] = {self.zero};",
            "continue;",
            "}",
            f"{self.kind} {s} = {p}«{r}» * {p}«{c}»;",
            f"if ({c} == {r}) {{",
            f"{s} += {two};",
            "}",
            self.loop(k, c),
            f"{s} -= {o}[{r} * {side} + {k}] * {o}[{c} * {side} + {k}];",
            "}",
            f"{o}[{r} * {side} + {c}] = {r} == {c} ? @sqrt({s}) : {s} / {o}[{c} * {side} + {c}];",
            "}",
            "}",
        ]
