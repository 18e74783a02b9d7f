"""Inner loops inside a nest: reductions, windows, searches, recurrences, iterations."""

from __future__ import annotations

from slm.corpus.expressions import condition, literal, text
from slm.corpus.family import Argument
from slm.corpus.nests import Nest


class Contraction(Nest):
    """Inner loops that reduce over one or two axes: sums, extrema, searches, windows."""

    name = "contraction"
    hopeless = frozenset(("private", "pad", "fuse"))
    ranks = (1, 1, 2, 2, 2, 3)

    def make_body(self) -> list[str]:
        forms = (
            (self.reduce_axes,) * 4
            + (self.window,) * 3
            + (self.best, self.best, self.recurrence, self.iterate, self.segments)
        )
        return self.rng.choice(forms)()

    def inner_axis(self) -> tuple[str, str]:
        rng = self.rng
        variable = self.names.prefer(("k", "j", "t", "p", "d", "l", "m", "q"))
        if rng.random() < 0.25:
            value = rng.choice((2, 3, 4, 5, 8, 16, 32))
            if rng.random() < 0.5:
                bound = self.names.prefer(("K", "D", "TAPS", "BINS", "DIM", "P", "M"))
                self.constants.append(
                    rng.choice(
                        (
                            f"constexpr int {bound} = {value};",
                            f"static const int {bound} = {value};",
                            f"#define {bound} {value}",
                        )
                    )
                )
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
            return [
                f"{'const ' if rng.random() < 0.5 else ''}{kind} {d} = {leaves[0]} - {leaves[1]};",
                f"{acc} += {rng.choice((f'{d} * {d}', f'@abs({d})'))};",
            ]
        if roll < 0.62:
            v = self.local()
            return [
                f"{kind} {v} = {text(rng, kind, leaves, 0)};",
                f"if ({v} {rng.choice('<>')} {acc}) {{",
                f"{acc} = {v};",
                "}",
            ]
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
        first = leaves[0].split("«")[0] + "«0»"
        lines, sums = [], []
        if kind == "float" and rng.random() < 0.2:
            return self.wide_sum(inner, leaves)
        for _ in range(rng.choice((1, 1, 1, 2))):
            acc = self.names.prefer(("acc", "sum", "s", "total", "best", "dot"))
            sums.append(acc)
            lines.append(
                f"{kind} {acc} = {self.zero if rng.random() < 0.8 else rng.choice((first, literal(rng, kind)))};"
            )
        for variable, bound in inner:
            lines += [
                "@unroll",
                self.loop(variable, bound, kind="int" if bound.isdigit() or bound in self.fixed else self.index_type()),
            ]
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
            lines += [
                "@unroll",
                self.loop(variable, bound, kind="int" if bound.isdigit() or bound in self.fixed else self.index_type()),
            ]
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
        update = (
            [f"{acc} += ‹{leaves[0]}›{''.join(f' * {x}' for x in leaves[1:])};"] if wide else self.update(acc, leaves)
        )
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
        if len(self.axes) == len(spread) and self.size_type == "int" and rng.random() < 0.25:
            return self.clipped(spread, shown)
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
                    lines += [
                        f"{signed} {at} = {source};",
                        f"if ({at} < 0) {{",
                        f"{at} = 0;",
                        "}",
                        f"if ({at} >= {last}) {{",
                        f"{at} = {last} - 1;",
                        "}",
                    ]
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
            flat = (
                f"{offsets[0]} + {shown}"
                if len(offsets) == 1
                else f"({offsets[0]} + {shown}) * {side} + {offsets[1]} + {shown}"
            )
            name = self.names.take("input")
            self.inputs.append(Argument("input", kind, name, str((2 * radius + 1) ** len(offsets))))
            update = [f"{acc} += {load} * {name}«{flat}»;"]
        else:
            update = rng.choice(
                ([f"{acc} += {load};"], [f"{acc} = @max({acc}, {load});"], [f"{acc} += {text(rng, kind, [load])};"])
            )
        if tests:
            update = [f"if ({' && '.join(tests)}) {{", *update, "}"]
        lines += [*update, *["}"] * len(spread)]
        while lines.count("@unroll") > 1:
            lines.remove("@unroll")
        where, axes = self.target()
        value = acc if rng.random() < 0.5 else text(rng, kind, [acc, *([self.scalar()] if rng.random() < 0.5 else [])])
        return [*lines, f"{self.output(axes)}[{where}] = {value};"]

    def clipped(self, spread: list[tuple[str, str]], shown: str) -> list[str]:
        """A window whose loops end at the border; the mean needs the number of what is inside."""
        rng, kind = self.rng, self.kind
        acc = self.names.prefer(("acc", "sum", "s", "total"))
        seen = self.names.prefer(("count", "weight_sum", "hits", "m"))
        one = {"float": "1.0f", "double": "1.0", "int": "1"}[kind]
        lines = [f"{kind} {acc} = {self.zero};", f"{kind} {seen} = {self.zero};"]
        places = []
        for variable, bound in spread:
            at = self.names.prefer(("j", "s" + variable, "p" + variable, "k", "n" + variable))
            low, high = f"@imax(0, {variable} - {shown})", f"@imin({bound} - 1, {variable} + {shown})"
            if rng.random() < 0.4:
                first, last = self.names.prefer(("lo", "first", at + "0")), self.names.prefer(("hi", "last", at + "1"))
                lines += [f"const int {first} = {low};", f"const int {last} = {high};"]
                low, high = first, last
            lines.append(f"for (int {at} = {low}; {at} <= {high}; {self.increment(at)}) {{")
            places.append((at, bound))
        centre = f"{self.input(self.axes)}«{self.index(self.axes)}»"
        load = f"{centre.split('«')[0]}«{self.index(places)}»"
        value = self.local()
        lines += [f"const {kind} {value} = {rng.choice((load, f'{load} - {centre}', f'@abs({load} - {centre})'))};"]
        lines += [f"{acc} += {rng.choice((value, f'{value} * {value}'))};", f"{seen} += {one};", *["}"] * len(spread)]
        where, axes = self.target()
        return [*lines, f"{self.output(axes)}[{where}] = {rng.choice((f'{acc} / {seen}', f'{acc} * {seen}', acc))};"]

    def best(self) -> list[str]:
        """The position of an extremum along one axis."""
        rng, kind = self.rng, self.kind
        variable, bound = self.inner_axis()
        chosen = [*self.axes, (variable, bound)]
        leaves = [self.operand(chosen) for _ in range(rng.choice((1, 1, 2)))]
        best, where_best = (
            self.names.prefer(("best", "m", "top", "lowest")),
            self.names.prefer(("arg", "where", "best_k", "pos", "winner")),
        )
        op = rng.choice("<>")
        start = {"float": "1e30f", "double": "1e300", "int": "2000000000"}[kind]
        if rng.random() < 0.3:
            name = leaves[0].split("«")[0]
            place = [*rng.sample(self.axes, 1), (variable, bound)]
            self.inputs = [
                a for a in self.inputs if a.name != name and not any(x.startswith(a.name + "«") for x in leaves[1:])
            ]
            self.inputs.append(Argument("input", kind, name, self.extent(place)))

            def at(v: str) -> str:
                return f"{name}«{self.index([place[0], (v, bound)])}»"

            kind_index = "int" if bound.isdigit() or bound in self.fixed else self.index_type()
            lines = [
                f"{'int' if kind_index == 'int' else kind_index} {where_best} = 0;",
                "@unroll",
                self.loop(variable, bound, "1", kind=kind_index),
                f"if ({at(variable)} {op} {at(where_best)}) {{",
                f"{where_best} = {variable};",
                "}",
                "}",
            ]
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
        lines = [
            *head,
            "@unroll",
            self.loop(variable, bound, kind=kind_index),
            f"{rng.choice(('const ', ''))}{kind} {v} = {value};",
            f"if ({v} {op} {best}) {{",
            f"{best} = {v};",
            f"{where_best} = {cast}{variable};",
            "}",
            "}",
        ]
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
        step = rng.choice(
            (
                f"{x} = {x} * {x} + {load[-1]};",
                f"{x} = {half} * ({x} + {load[-1]});",
                f"{x} = {x} * {half} + @abs({load[-1]});",
            )
        )
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
