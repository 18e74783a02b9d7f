"""Free-form programs: whatever people write inside a loop, which one thread then does for its own index.

Statements are drawn from a grammar: branches, nested and descending loops, ``while``, several declarations in a line,
row pointers, local arrays, flags, casts, early ends of a turn, functions of the program's own. Every load and store
stays inside its array and every loop ends, so a program can be run and judged like any other.
"""

from __future__ import annotations

from typing import ClassVar

from slm.corpus.expressions import literal
from slm.corpus.family import Argument
from slm.corpus.terms import Terms

FLAGS = ("ok0", "inside", "hit", "valid", "active", "keep", "edge", "found", "use", "is_low")
WHOLES = ("m0", "lane_id", "phase", "parity", "slot", "level", "group", "shift0", "part_id", "bucket", "parts", "turn")


def _innermost(lines: list[str]) -> list[str]:
    """``lines`` with the mark of an unrollable loop kept on innermost loops only."""
    kept: list[str] = []
    for k, line in enumerate(lines):
        if line == "@unroll":
            depth = 0
            inner = False
            for later in lines[k + 1 :]:
                inner = inner or (depth > 0 and later == "@unroll")
                depth += later.endswith("{") - later.startswith("}")
                if depth <= 0:
                    break
            if inner:
                continue
        kept.append(line)
    return kept


class Loose(Terms):
    """Random statements of every kind; loops inside them belong to the thread."""

    name = "loose"
    counts: ClassVar[bool] = True
    ranks: ClassVar[tuple[int, ...]] = (1, 1, 1, 1, 2, 2)
    hopeless = frozenset(("private", "pad", "regtile", "fuse"))

    def make_body(self) -> list[str]:
        rng = self.rng
        self.values: list[str] = []  # expressions of the element type
        self.free: list[str] = []  # locals that may be assigned
        self.flags: list[str] = []
        self.wholes: list[str] = [axis for axis, _ in self.axes]
        self.depth = 0
        self.skips = False
        for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
            self.values.append(self.load(self.axes) if rng.random() < 0.8 else self.partial_load())
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            self.values.append(self.scalar())
        self.values += self.known
        self.own_functions = [self.own_function() for _ in range(rng.choice((0, 0, 0, 1, 1, 2)))]
        lines: list[str] = self.early_end() if rng.random() < 0.15 else []
        for _ in range(rng.choice((1, 2, 3, 4, 5, 6, 8))):
            lines += self.statement()
        return _innermost([*lines, *self.stores()])

    # -- statements
    def statement(self) -> list[str]:
        rng = self.rng
        forms = [self.declare, self.declare, self.declare, self.branch, self.branch, self.change, self.flag, self.count]
        if self.depth < 2:
            forms += [self.loop_up, self.loop_up, self.loop_down, self.repeat]
            if self.depth == 0:
                forms += [self.table, self.along]
        if self.depth == 0 and rng.random() < 0.1:
            return [self.remark()]
        return rng.choice(forms)()

    def declare(self) -> list[str]:
        rng = self.rng
        value, name = self.value(), self.local()
        const = "const " if rng.random() < 0.45 or self.depth else ""
        if rng.random() < 0.15:
            second = self.value(2)
            other = self.local()
            lines = [f"{const}{self.kind} {name} = {value}, {other} = {second};"]
            added = [name, other]
        elif rng.random() < 0.12 and not const:
            lines = [f"{self.kind} {name};", f"{name} = {value};"]
            added = [name]
        else:
            lines = [
                f"{const}{'auto' if const and rng.random() < 0.06 and '?' in value else self.kind} {name} = {value};"
            ]
            added = [name]
        if self.depth == 0:
            self.values += added
            if not const:
                self.free += added
            return lines
        # the name lives in this block only, so it is used at once
        return [*lines, *self.change_by(added[0])]

    def change(self) -> list[str]:
        if not self.free:
            return self.declare()
        return self.change_by(self.value(2))

    def change_by(self, value: str) -> list[str]:
        """A value into a local: damped, so that loops do not let it grow."""
        rng = self.rng
        if not self.free:
            if self.depth:
                return [f"(void){value};"] if value.isidentifier() else []
            return self.declare()
        name = rng.choice(self.free)
        if self.kind == "int":
            return [f"{name} = ({name} {rng.choice('+-')} ({value})) % {rng.choice((97, 1009, 255, 4099))};"]
        half = literal(rng, self.kind)
        damp = {"float": "0.5f", "double": "0.5"}[self.kind]
        wrapped = f"({value})" if "?" in value else value
        if self.depth:
            return rng.choice(
                (
                    [f"{name} = {damp} * {name} + {wrapped};"],
                    [f"{name} = {damp} * ({name} - {wrapped});"],
                    [f"{name} += {wrapped};"],
                    [f"{name} = @max({name}, {wrapped});"],
                    [f"{name} -= {wrapped};"],
                )
            )
        return rng.choice(
            ([f"{name} += {wrapped};"], [f"{name} -= {wrapped};"], [f"{name} *= {half};"], [f"{name} /= {damp};"])
        )

    def branch(self) -> list[str]:
        rng = self.rng
        if not self.free:
            return self.declare()
        lines = [f"if ({self.test()}) {{", *self.change()]
        if rng.random() < 0.25:
            lines += self.change()
        while rng.random() < 0.25:
            lines += [f"}} else if ({self.test()}) {{", *self.change()]
        if rng.random() < 0.4:
            lines += ["} else {", *self.change()]
        return [*lines, "}"]

    def flag(self) -> list[str]:
        if self.depth:
            return self.change()
        test, name = self.test(), self.names.prefer(FLAGS)
        self.flags.append(name)
        return [f"{'const ' if self.rng.random() < 0.6 else ''}bool {name} = {test};"]

    def count(self) -> list[str]:
        if self.depth:
            return self.change()
        rng = self.rng
        whole = self.whole()
        wide = self.size_type != "int"
        name = self.names.prefer(WHOLES)
        self.wholes.append(name)
        kind = rng.choice(("int", "int", "unsigned", "long", "size_t")) if not wide else "int"
        value = f"static_cast<{kind}>({whole})" if kind != "int" or wide else whole
        return [f"{'const ' if rng.random() < 0.6 else ''}{kind} {name} = {value};"]

    def inside(self, variable: str, least: int = 1) -> list[str]:
        """The statements of a loop's body, which may use its variable."""
        self.depth += 1
        self.wholes.append(variable)
        lines: list[str] = []
        for _ in range(self.rng.choice((least, least, least + 1, 2))):
            lines += self.statement()
        self.wholes.remove(variable)
        self.depth -= 1
        return lines

    def loop_up(self) -> list[str]:
        rng = self.rng
        if not self.free:
            return self.declare()
        variable, last = self.counter(), str(rng.choice((2, 3, 4, 5, 6, 8, 10, 16)))
        head = rng.choice(
            (
                f"for (int {variable} = 0; {variable} < {last}; {self.increment(variable)}) {{",
                f"for (int {variable} = 1; {variable} <= {last}; {self.increment(variable)}) {{",
                f"for (int {variable} = 0; {variable} < {last}; {variable} += 2) {{",
            )
        )
        body = self.inside(variable)
        if rng.random() < 0.25:
            ending = rng.choice(("break", "continue"))
            body.insert(0, f"if ({variable} == {rng.randint(1, 3)}) {ending};")
        return ["@unroll", head, *body, "}"]

    def loop_down(self) -> list[str]:
        rng = self.rng
        if not self.free:
            return self.declare()
        variable, first = self.counter(), rng.choice((2, 3, 4, 5, 7, 9))
        step = f"--{variable}" if rng.random() < 0.6 else f"{variable}--"
        head = rng.choice(
            (
                f"for (int {variable} = {first}; {variable} >= 0; {step}) {{",
                f"for (int {variable} = {first}; {variable} > 0; {step}) {{",
                f"for (int {variable} = 1 << {min(first, 5)}; {variable} > 0; {variable} >>= 1) {{",
            )
        )
        return ["@unroll", head, *self.inside(variable), "}"]

    def repeat(self) -> list[str]:
        """``while`` and ``do``, with a counter that ends them."""
        rng = self.rng
        if not self.free:
            return self.declare()
        variable, last = self.counter(), rng.choice((2, 3, 4, 5, 8, 12))
        body = self.inside(variable)
        body = [line for line in body if not line.endswith("continue;")]
        extra = f" && {self.test()}" if rng.random() < 0.4 else ""
        if rng.random() < 0.4:
            down = rng.choice((f"--{variable};", f"{variable}--;", f"{variable} -= 1;"))
            return [f"int {variable} = {last};", f"while ({variable} > 0{extra}) {{", *body, down, "}"]
        if rng.random() < 0.3:
            return [f"int {variable} = 0;", "do {", *body, f"}} while ({self.increment(variable)} < {last});"]
        up = rng.choice((f"{self.increment(variable)};", f"{variable} += 1;"))
        return [f"int {variable} = 0;", f"while ({variable} < {last}{extra}) {{", *body, up, "}"]

    def table(self) -> list[str]:
        """A local array: filled, then read."""
        rng = self.rng
        size, k = rng.choice((2, 3, 4, 5, 8)), self.counter()
        name = self.names.prefer(("buf", "part0", "w_loc", "hist", "tab"))
        if rng.random() < 0.35:
            held = ", ".join(rng.choice(self.values) for _ in range(size))
            fill = [f"{self.kind} {name}[{size}] = {{{held}}};"]
        else:
            fill = [
                f"{self.kind} {name}[{size}];",
                f"for (int {k} = 0; {k} < {size}; {self.increment(k)}) {{",
                f"{name}[{k}] = {rng.choice(self.values)} {rng.choice('+-*')} {self.cast(k)};",
                "}",
            ]
        self.values += [f"{name}[{rng.randrange(size)}]" for _ in range(2)]
        return fill

    def along(self) -> list[str]:
        """A walk along a further axis, by an index or by a pointer to the row."""
        rng, kind = self.rng, self.kind
        variable, bound = self.counter(), self.names.take("inner")
        self.dims[bound] = rng.choice((7, 9, 13))
        self.loops.append(("", bound))
        owner, owned = self.axes[0]
        name = self.names.take("input")
        self.inputs.append(Argument("input", kind, name, f"{self.products.get(owned, owned)}*{bound}"))
        acc = self.names.prefer(("acc", "sum", "total", "best", "s"))
        start = f"{owner} * {bound}"
        lines: list[str] = []
        if rng.random() < 0.5:
            pointer = self.names.prefer(("row", "line", "src_row", "from", "p0"))
            start = rng.choice((f"static_cast<size_t>({owner}) * {bound}", f"(size_t){owner} * {bound}", start))
            lines.append(
                rng.choice(
                    (f"const {kind}* {pointer} = {name} + {start};", f"const {kind}* {pointer} = &{name}[{start}];")
                )
            )
            load, first = f"{pointer}«{variable}»", f"{pointer}«0»"
        else:
            load, first = f"{name}«{start} + {variable}»", f"{name}«{start}»"
        lines.append(f"{kind} {acc} = {rng.choice((self.zero, first, literal(rng, kind)))};")
        index = self.index_type()
        heads = [f"for ({index} {variable} = 0; {variable} < {bound}; {self.increment(variable)}) {{"]
        if index in ("int", "long long"):
            heads.append(f"for ({index} {variable} = {bound} - 1; {variable} >= 0; --{variable}) {{")
            heads.append(f"for ({index} {variable} = 1; {variable} < {bound}; {self.increment(variable)}) {{")
        self.depth += 1
        held, self.free = self.free, [acc]
        self.values.append(load)
        self.wholes.append(variable)
        body: list[str] = []
        for _ in range(rng.choice((1, 1, 2))):
            body += self.statement()
        if not any(load in line for line in body):
            body += self.change_by(load)
        if rng.random() < 0.2:
            body.insert(0, f"if ({variable} != {owner}) {{")
            body.append("}")
        elif rng.random() < 0.2:
            body.insert(0, f"if ({self.test()}) continue;")
        self.wholes.remove(variable)
        self.values.remove(load)
        self.free = [*held, acc]
        self.depth -= 1
        self.values.append(acc)
        return [*lines, "@unroll", rng.choice(heads), *body, "}"]

    # -- ends
    def early_end(self) -> list[str]:
        """A turn that ends at once: ``continue`` in a loop is ``return`` in a thread of one turn."""
        self.skips = True
        out = self.output(self.axes)
        here = f"{out}[{self.index(self.axes)}]"
        first = self.value(1)
        test = self.test_of_one()
        if self.rng.random() < 0.5:
            return [f"{here} = {first};", f"if ({test}) {{", "@skip", "}"]
        return [f"if ({test}) {{", f"{here} = {first};", "@skip", "}", f"{here} = {self.value(2)};"]

    def stores(self) -> list[str]:
        rng = self.rng
        lines = []
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            where, axes = self.target()
            inout = self.skips or rng.random() < 0.12  # what a skipped turn leaves alone has a value before
            out = self.output(axes, inout=inout)
            value = self.value()
            if inout:
                lines.append(f"{out}[{where}] {rng.choice(('+=', '-='))} {value};")
            elif rng.random() < 0.12:
                lines += [
                    f"if ({self.test()}) {{", f"{out}[{where}] = {value};", "} else {",
                    f"{out}[{where}] = {self.value(1)};", "}",
                ]  # fmt: skip
            else:
                lines.append(f"{out}[{where}] = {value};")
        return lines
