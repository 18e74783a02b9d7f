"""Every row of a matrix: reductions over its columns, then a value a row or a value an element."""

from __future__ import annotations

import re
from typing import ClassVar

from slm.corpus.blocks import Reducing, identity, shuffle, tree, warp_function
from slm.corpus.expressions import condition, text
from slm.corpus.family import Argument, Shape, State
from slm.corpus.idioms import Idiom


class Rows(Reducing):
    """Every row: one or two reductions over its columns, then a value a row or a value an element."""

    name = "rows"
    kinds: ClassVar[tuple[str, ...]] = ("float",) * 4 + ("double",)
    forms: ClassVar[tuple[str, ...]] = ("wild", "wild", "wild", "softmax", "normalise", "plain")

    def setup(self) -> None:
        rng = self.rng
        self.row, self.column = self.names.prefer(("r", "row", "i", "b")), self.names.prefer(("c", "col", "j", "k"))
        self.rows, self.columns = self.names.take("rows"), self.names.take("cols")
        self.dims = {self.rows: 37, self.columns: 83}
        self.inputs: list[Argument] = []
        self.scalars: list[Argument] = []
        self.heads: list[str] = []
        self.out = self.names.take("output")
        self.by_pointer = rng.random() < 0.4
        self.taste = rng.choice(("large", "infinity", "limit", "first"))
        self.double = self.kind == "float" and rng.random() < 0.2  # sequential code sums in double
        self.cast = rng.choice(("(size_t)", "static_cast<size_t>(", "")) if self.by_pointer else ""
        self.output_row = ""
        self.stages: list[tuple[str, str, list[str], str]] = []  # variable, op, update, what follows
        self.tail: list[str] = []
        self.per_element = rng.random() < 0.6
        self.bound = self.columns  # of the columns that count
        self.saved: list[str] = []  # lines that write further values of a row
        self.more: list[Argument] = []  # their arrays, and sizes of more than rows and columns
        getattr(self, rng.choice(self.forms))()
        self.double = self.double and not self.compares_sums()
        size = f"{self.rows}*{self.columns}"
        arrays = [*self.inputs, Argument("output", self.kind, self.out, size if self.per_element else self.rows)]
        arrays += [a for a in self.more if a.kind == "output"]
        sizes = self.sized((self.rows, self.rows), (self.columns, self.columns))
        sizes += [a for a in self.more if a.kind == "size"]
        self.arguments = [*arrays, *self.scalars, *sizes] if rng.random() < 0.6 else [*arrays, *sizes, *self.scalars]

    def compares_sums(self) -> bool:
        """Whether a sum stands beside a minimum or maximum, which C++ does not take of a double and a float."""
        sums = "|".join(variable for variable, op, _, _ in self.stages if op == "sum")
        lines = [line.split("= ", 1)[-1] for line in (*self.tail, *self.saved)]
        lines += [line.split("= ", 1)[-1] for _, _, update, post in self.stages for line in (*update, post)]
        return any(re.search("@(min|max)", line) and re.search(rf"\b({sums})\b", line) for line in lines if sums)

    def matrix(self) -> str:
        """A load of a new input matrix at the current row and column."""
        name = self.names.take("input")
        self.inputs.append(Argument("input", self.kind, name, f"{self.rows}*{self.columns}"))
        if not self.by_pointer:
            return f"{name}«{self.row} * {self.columns} + {self.column}»"
        pointer = self.names.prefer(("row_in", "src_row", "in_row", "xr", "line", "p", "from"))
        self.heads.append(f"const {self.kind}* {pointer} = {name} + {self.offset()};")
        return f"{pointer}«{self.column}»"

    def offset(self) -> str:
        first = f"{self.cast}{self.row}{')' if self.cast.endswith('(') else ''}"
        return f"{first} * {self.columns}"

    def vector(self) -> str:
        name = self.names.take("input")
        self.inputs.append(Argument("input", self.kind, name, self.columns))
        return f"{name}«{self.column}»"

    def target(self) -> str:
        if not self.by_pointer:
            return f"{self.out}[{self.row} * {self.columns} + {self.column}]"
        if not self.output_row:
            self.output_row = self.names.prefer(("row_out", "dst_row", "out_row", "yr", "to"))
            self.heads.append(f"{self.kind}* {self.output_row} = {self.out} + {self.offset()};")
        return f"{self.output_row}[{self.column}]"

    def scalar(self) -> str:
        name = self.names.take("scalar")
        self.scalars.append(Argument("scalar", self.kind, name))
        return name

    def tiny(self) -> str:
        return self.scalar() if self.rng.random() < 0.5 else {"float": "1e-5f", "double": "1e-5"}[self.kind]

    def softmax(self) -> None:
        rng = self.rng
        self.per_element = True
        load = self.matrix()
        high, total = (
            self.names.prefer(("mx", "peak", "m", "row_max", "max_val")),
            self.names.prefer(("sum", "den", "total", "z")),
        )
        update = rng.choice(
            (
                [f"{high} = @max({high}, {load});"],
                [f"if ({load} > {high}) {{", f"{high} = {load};", "}"],
                [f"{high} = {load} > {high} ? {load} : {high};"],
            )
        )
        target = self.target()
        self.stages.append((high, "max", update, ""))
        exponent = f"@exp({load} - {high})"
        if rng.random() < 0.4:
            self.stages.append((total, "sum", [f"{target} = {exponent};", f"{total} += {target};"], ""))
            self.tail = rng.choice(([f"{target} = {target} / {total};"], [f"{target} /= {total};"]))
        elif rng.random() < 0.5:
            self.stages.append((total, "sum", [f"{total} += {exponent};"], ""))
            self.tail = [f"{target} = {exponent} / {total};"]
        else:
            self.stages.append((total, "sum", [f"{total} += {exponent};"], f"@log({total})"))
            self.tail = [f"{target} = {load} - {high} - {total};"]

    def normalise(self) -> None:
        rng = self.rng
        self.per_element = True
        load = self.matrix()
        scale = f" * {self.vector()}" if rng.random() < 0.6 else ""
        shift = f" + {self.vector()}" if scale and rng.random() < 0.5 else ""
        spread = self.names.prefer(("var", "ss", "norm", "sq", "variance", "inv"))
        one = {"float": "1.0f", "double": "1.0"}[self.kind]
        if rng.random() < 0.6:
            mean = self.names.prefer(("mean", "mu", "avg", "m"))
            d = self.names.take("local")
            self.stages.append((mean, "sum", [f"{mean} += {load};"], f"{mean} / {self.columns}"))
            update = (
                [f"{rng.choice(('const ', ''))}{self.kind} {d} = {load} - {mean};", f"{spread} += {d} * {d};"]
                if rng.random() < 0.6
                else [f"{spread} += ({load} - {mean}) * ({load} - {mean});"]
            )
            centred = f"({load} - {mean})"
        else:
            update, centred = [f"{spread} += {load} * {load};"], load
        eps = self.tiny()
        post = rng.choice(
            (f"{one} / @sqrt({spread} / {self.columns} + {eps})", f"@sqrt({spread} / {self.columns} + {eps})")
        )
        self.stages.append((spread, "sum", update, post))
        op = "*" if post.startswith(one) else "/"
        self.tail = [f"{self.target()} = {centred} {op} {spread}{scale}{shift};"]

    def plain(self) -> None:
        """One reduction, one value a row: row sums, products with a vector, distances."""
        rng = self.rng
        self.per_element = False
        leaves = [self.matrix()]
        if rng.random() < 0.6:
            leaves.append(self.vector() if rng.random() < 0.6 else self.matrix())
        var = self.names.prefer(("sum", "acc", "dot", "total", "s"))
        op = rng.choice(("sum", "sum", "sum", "max", "min"))
        if op == "sum":
            update = rng.choice(([f"{var} += {' * '.join(leaves)};"], [f"{var} += {text(rng, self.kind, leaves)};"]))
            if rng.random() < 0.25:
                update = [f"if ({condition(rng, self.kind, leaves[0])}) {{", *update, "}"]
        else:
            update = [f"{var} = @{op}({var}, {text(rng, self.kind, leaves, 0)});"]
        post = rng.choice(("", "", f"{var} / {self.columns}", f"@sqrt(@abs({var}))"))
        self.stages.append((var, op, update, post))
        value = var
        if rng.random() >= 0.6:
            value = text(rng, self.kind, [var, *([self.scalar()] if rng.random() < 0.5 else [])])
        self.tail = [f"{self.out}[{self.row}] = {value};"]

    def wild(self) -> None:
        rng = self.rng
        leaves = (
            [self.matrix()]
            + ([self.matrix()] if rng.random() < 0.4 else [])
            + ([self.vector()] if rng.random() < 0.4 else [])
        )
        known: list[str] = []
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            var = self.names.take("local")
            chosen = rng.sample(leaves, rng.randint(1, min(2, len(leaves)))) + known[-1:]
            op = rng.choice(("sum", "sum", "sum", "max", "min"))
            if op == "sum":
                update = [f"{var} += {text(rng, self.kind, chosen)};"]
                if rng.random() < 0.25:
                    v = self.names.take("local")
                    update = [f"{self.kind} {v} = {text(rng, self.kind, chosen)};", f"{var} += {v} * {v};"]
            elif rng.random() < 0.5:
                v = self.names.take("local")
                update = [
                    f"{self.kind} {v} = {text(rng, self.kind, chosen)};",
                    f"if ({v} {'>' if op == 'max' else '<'} {var}) {{",
                    f"{var} = {v};",
                    "}",
                ]
            else:
                update = [f"{var} = @{op}({var}, {text(rng, self.kind, chosen, 0)});"]
            post = rng.choice(("", "", "", f"{var} / {self.columns}", f"@sqrt(@abs({var}))", f"{var} + {self.tiny()}"))
            self.stages.append((var, op, update, post))
            known.append(var)
        if self.per_element:
            value = text(rng, self.kind, [*rng.sample(leaves, rng.randint(1, len(leaves))), rng.choice(known)])
            self.tail = [f"{self.target()} = {value};"]
        else:
            self.tail = [f"{self.out}[{self.row}] = {text(rng, self.kind, known[-2:])};"]

    # -- text
    def lines(self, state: State) -> list[str]:
        """The body for one row."""
        kind = self.kind
        level = "warp" if "warp" in state else "smem" if "smem" in state else ""
        rows_warp = level == "warp" and state["warp"]["rows"] == "warp"
        start, step = {
            "": ("0", ""),
            "smem": ("threadIdx.x", "blockDim.x"),
            "warp": ("lane", "32") if rows_warp else ("threadIdx.x", "blockDim.x"),
        }[level]
        shared, tid = "", ""
        if level == "smem":
            shared, tid = self.local_names(state["smem"])
            start = tid
        column = self.column
        index = self.index_type() if not level else "int"
        if level:
            walk = f"for ({index} {column} = {start}; {column} < {self.bound}; {column} += {step}) {{"
        else:
            walk = self.loop(column, self.bound, kind=index)
        lines = list(self.heads)
        for variable, op, update, post in self.stages:
            start_value, first_walk = identity(op, kind, self.zero, self.taste), walk
            declared = kind
            if op == "sum" and self.double:
                declared, start_value = "@wide", "@wide0"
            if not level and self.taste == "first" and op != "sum" and (first := self.first_of(variable, update)):
                start_value, first_walk = first, self.loop(column, self.bound, "1", kind=index)
            lines += [f"{declared} {variable} = {start_value};", "@unroll", first_walk, *update, "}"]
            if level == "smem":
                lines += [
                    f"{shared}[{tid}] = {variable};",
                    "__syncthreads();",
                    *tree(state["smem"], op, shared, tid),
                    f"{variable} = {shared}[0];",
                    "__syncthreads();",
                ]
            elif level == "warp":
                lines += self.across_warp(state, op, variable, rows_warp)
            if post:
                lines.append(f"{variable} = {post};")
        first = f"if ({tid if level == 'smem' else 'lane' if rows_warp else 'threadIdx.x'} == 0) {{"
        once = [*self.saved] if self.per_element else [*self.saved, *self.tail]
        if once:
            lines += [first, *once, "}"] if level else once
        if self.per_element:
            lines += ["@unroll", walk, *self.tail, "}"]
        return lines

    def first_of(self, variable: str, update: list[str]) -> str:
        """The first column's value of an extremum, or "" where its update is no plain one."""
        match = re.fullmatch(rf"{variable} = @\w+\({variable}, (.*)\);", update[0]) or re.fullmatch(
            rf"if \((.*) [<>] {variable}\) {{{{", update[0]
        )
        match = match or re.fullmatch(rf"{variable} = (.*) [<>] {variable} \? .*;", update[0])
        if match is None or len(update) > 3:
            return ""
        return re.sub(rf"\b{self.column}\b(?=»)", "0", match[1])

    def across_warp(self, state: State, op: str, variable: str, rows_warp: bool) -> list[str]:
        idiom = state["warp"]
        call = (
            [f"{variable} = warp_{op}({variable});"] if idiom["where"] == "function" else shuffle(idiom, op, variable)
        )
        share = [f"{variable} = __shfl_sync({idiom['mask']}, {variable}, 0);"] if idiom["op"] == "down" else []
        if rows_warp:
            return [*call, *share]
        empty = identity(op, self.kind, self.zero, self.taste)
        return [
            *call,
            "if (threadIdx.x % 32 == 0) {",
            f"warp_part[threadIdx.x / 32] = {variable};",
            "}",
            "__syncthreads();",
            f"{variable} = threadIdx.x % 32 < blockDim.x / 32 ? warp_part[threadIdx.x % 32] : {empty};",
            *call,
            *share,
            "__syncthreads();",
        ]

    def render(self, state: State) -> str:
        if not state:
            return self.sequential([self.loop(self.row, self.rows, kind=self.index_type()), *self.lines({}), "}"])
        body = self.lines(state)
        if "smem" not in state and "warp" not in state:
            shape = Shape(self.rows, lambda _: body, self.row)
            return self.cuda(state, [self.kernel(state, self.walk(state, shape))], self.launch(state, self.rows))
        devices = []
        fixed = self.rows if self.size_type == "int" else f"(int){self.rows}"
        if "warp" in state:
            idiom = state["warp"]
            if idiom["where"] == "function":
                devices = [
                    warp_function(idiom, op, self.kind)[1] for op in dict.fromkeys(op for _, op, _, _ in self.stages)
                ]
            if idiom["rows"] == "warp":
                head = [f"int {self.row} = ({self.global_index(state)}) / 32;", "int lane = threadIdx.x % 32;"]
                lines = [*head, f"if ({self.row} >= {self.rows}) return;", *body]
                per_block = self.threads(state) // 32
                fixed = f"({self.rows} + {per_block - 1}) / {per_block}"
                fixed = (
                    fixed if self.size_type == "int" or state["parallel"]["launch"] == "inline" else f"(int)({fixed})"
                )
            else:
                lines = [f"__shared__ {self.kind} warp_part[32];", f"int {self.row} = blockIdx.x;", *body]
        else:
            shared, tid = self.local_names(state["smem"])
            lines = [
                f"__shared__ {self.kind} {shared}[{self.threads(state)}];",
                f"int {self.row} = blockIdx.x;",
                f"int {tid} = threadIdx.x;",
                *body,
            ]
        return self.cuda(state, [self.kernel(state, lines)], self.launch(state, self.rows, fixed=fixed), devices)

    def techniques(self, state: State) -> set[str]:
        found = self.common(
            state,
            "@unroll " + " ".join(" ".join(u) + p for _, _, u, p in self.stages) + " ".join((*self.tail, *self.saved)),
        )
        if "warp" not in state:
            found.add("warp")
            if "smem" not in state:
                found.add("smem")
        return found - (set(state) - {"block"})

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        if (
            state
            and technique == "block"
            and (state["parallel"]["block"] == idiom["block"] or idiom["block"] & (idiom["block"] - 1))
        ):
            return None
        if technique == "smem" and state:
            idiom = {**idiom, "block": state["parallel"]["block"]}
        new = super().apply(state, technique, idiom)
        if new and "warp" in new:
            new.pop("smem", None)
        return new
