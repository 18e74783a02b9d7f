"""Reductions of a whole array to one value, and of every row to values that the row then uses."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from slm.corpus.expressions import condition, literal, text
from slm.corpus.family import WIDE, Argument, Family, Shape, State
from slm.corpus.idioms import Idiom, canonical

LARGE = {"float": "1e30f", "double": "1e300", "int": "2000000000"}


def combine(op: str, target: str, value: str) -> str:
    return f"{target} += {value};" if op == "sum" else f"{target} = @{op}({target}, {value});"


def identity(op: str, kind: str, zero: str, taste: str = "large") -> str:
    """The value that ``op`` leaves every other one: by ``taste`` a large number, an infinity or a limit."""
    if op == "sum":
        return zero
    sign = "-" if op == "max" else ""
    if taste == "large":
        return sign + LARGE[kind]
    if kind == "int":
        return "INT_MIN" if op == "max" else "INT_MAX"
    return sign + ("INFINITY" if taste in ("infinity", "first") else "FLT_MAX" if kind == "float" else "DBL_MAX")


TASTES = ("large", "infinity", "limit", "first", "first")  # first: sequential code starts from the first element


def shuffle(idiom: Idiom, op: str, value: str) -> list[str]:
    """Reduce ``value`` over a warp; ``down`` leaves it in lane 0, ``xor`` in every lane."""
    offset, mask = idiom["offset"], idiom["mask"]
    if offset == value:
        offset += "0"
    moved = f"__shfl_{idiom['op']}_sync({mask}, {value}, {offset})"
    return [f"for (int {offset} = 16; {offset} > 0; {offset} >>= 1) {{", combine(op, value, moved), "}"]


def warp_function(idiom: Idiom, op: str, kind: str) -> tuple[str, list[str]]:
    name = f"warp_{op}"
    return name, [f"__device__ __forceinline__ {kind} {name}({kind} v) {{", *shuffle(idiom, op, "v"), "return v;", "}"]


def tree(idiom: Idiom, op: str, shared: str, tid: str) -> list[str]:
    """Halve the live part of ``shared`` until element 0 holds the result."""
    step = idiom["step"]
    return [
        f"for (int {step} = blockDim.x / 2; {step} > 0; {step} {idiom['divide']}) {{", f"if ({tid} < {step}) {{",
        combine(op, f"{shared}[{tid}]", f"{shared}[{tid} + {step}]"), "}", "__syncthreads();", "}",
    ]  # fmt: skip


class Reducing(Family):
    """What reductions share: block and warp sums as techniques, also straight from the sequential code."""

    def threads(self, state: State) -> int:
        return int(state["parallel"]["block"])

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        if not state and technique in ("smem", "warp"):
            start: dict[str, Any] = {"parallel": dict(idiom.get("parallel") or canonical("parallel"))}
            if technique == "smem":
                start["parallel"]["block"] = idiom["block"]
            return {**start, technique: {k: v for k, v in idiom.items() if k != "parallel"}}
        return super().apply(state, technique, idiom)

    hopeless = frozenset(("private", "pad", "regtile", "fuse"))


class Reduction(Reducing):
    """Sums, extrema and counts of an expression over all elements, into element 0 of the output."""

    name = "reduction"

    def setup(self) -> None:
        rng = self.rng
        self.count = self.names.take("size")
        self.dims = {self.count: 2053}
        self.variable = self.names.prefer(("i", "j", "k", "idx", "t"))
        self.value = self.names.prefer(("sum", "acc", "s", "total", "result", "best"))
        self.inputs = [Argument("input", self.kind, self.names.take("input"), self.count) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
        leaves = [f"{a.name}«{self.variable}»" for a in self.inputs]
        self.out = self.names.take("output")
        self.op = rng.choice(("sum",) * 5 + ("max", "min"))
        self.widened = self.kind == "float" and self.op == "sum" and rng.random() < 0.35
        self.simple = True
        self.taste = rng.choice(TASTES)
        self.update = self.make_update(leaves)
        scale = rng.choice(("", "", "", f"{self.value} / {self.count}", "scalar"))
        self.scalars: list[Argument] = []
        self.final = self.value
        if self.op == "sum" and scale and self.kind != "int":
            if scale == "scalar":
                self.scalars.append(Argument("scalar", self.kind, self.names.take("scalar")))
                scale = f"{self.value} * {self.scalars[0].name}"
            self.final = scale
        arrays = [*self.inputs, Argument("output", self.kind, self.out, "1")]
        sizes = self.sized((self.count, self.count))
        self.arguments = [*arrays, *self.scalars, *sizes] if rng.random() < 0.6 else [*arrays, *sizes, *self.scalars]
        self.shared = "single" if self.op != "sum" else "atomic"

    def make_update(self, leaves: list[str]) -> list[str]:
        rng, kind, acc = self.rng, self.kind, self.value
        wide = (lambda x: f"‹{x}›") if self.widened else (lambda x: x)
        roll = rng.random()
        if self.op != "sum":
            if roll < 0.4:
                return [combine(self.op, acc, text(rng, kind, leaves, 0))]
            sign = ">" if self.op == "max" else "<"
            value = text(rng, kind, leaves, 0) if roll < 0.7 else leaves[0]
            self.inputs = self.inputs if roll < 0.7 else self.inputs[:1]
            if len(value) < 14:
                return [f"{acc} = {value} {sign} {acc} ? {value} : {acc};"]
            return [combine(self.op, acc, value)]
        if roll < 0.25 and len(leaves) > 1:
            self.inputs = self.inputs[:2]
            return [f"{acc} += {wide(leaves[0])} * {leaves[1]};"]
        if roll < 0.45 and len(leaves) > 1:
            self.inputs = self.inputs[:2]
            d = self.names.take("local")
            kind_d = "double" if self.widened else kind
            self.simple = False
            return [f"{'const ' if rng.random() < 0.5 else ''}@kind {d} = {wide(leaves[0])} - {leaves[1]};".replace("@kind", f"«{kind_d}»"), f"{acc} += {rng.choice((f'{d} * {d}', f'@abs({d})' if not self.widened else f'{d} * {d}'))};"]  # fmt: skip
        if roll < 0.6:
            test = condition(rng, kind, leaves[0])
            self.simple = False
            return [f"if ({test}) {{", f"{acc} += {wide(leaves[-1])};" if rng.random() < 0.6 else f"{acc} += {'1' if kind == 'int' else literal(rng, kind)};", "}"]  # fmt: skip
        if roll < 0.7:
            self.inputs = self.inputs[:1]
            return [f"{acc} += {wide(leaves[0])}{rng.choice(('', f' * {leaves[0]}'))};"]
        return [f"{acc} += {text(rng, kind, leaves)};"]

    def first_value(self) -> str:
        """The updated expression at element 0."""
        line = self.update[-1]
        match = re.fullmatch(rf"{self.value} = @\w+\({self.value}, (.*)\);", line) or re.fullmatch(rf"{self.value} = (.*) [<>] {self.value} \? .*;", line)
        assert match is not None, line
        return re.sub(rf"«{self.variable}»", "«0»", match[1])

    def device_update(self) -> list[str]:
        return [line.replace("«double»", self.kind).replace("«float»", self.kind).replace("«int»", self.kind) for line in self.update]

    def render(self, state: State) -> str:
        kind = self.kind
        if not state:
            acc_kind = "double" if self.widened else kind
            start = identity(self.op, kind, "0.0" if self.widened else self.zero, self.taste)
            begin = "0"
            if self.op != "sum" and self.taste == "first":
                begin, start = "1", self.first_value()
            final = self.final
            if self.widened:
                final = f"static_cast<float>({final})" if self.style.math == "std" else f"(float)({final})" if " " in final else f"(float){final}"
            update = [line.replace(f"«{acc_kind}»", acc_kind).replace("«float»", kind).replace("«int»", kind).replace("«double»", kind if not self.widened else "double") for line in self.update]
            body = [f"{acc_kind} {self.value} = {start};", self.loop(self.variable, self.count, begin, kind=self.index_type()), *update, "}", f"{self.out}[0] = {final};"]
            return self.sequential(body)
        host: list[str] = []
        if self.shared == "atomic":
            host.append(f"{state['parallel']['memset']}({self.out}, 0, sizeof({kind}));")
        update = self.device_update()
        if "smem" not in state and "warp" not in state:
            value = self.value
            first = update[-1]
            if len(update) == 1 and first.startswith(f"{value} += "):
                added = first[len(value) + 4 : -1]
                final = self.final_of(f"({added})" if " " in added else added) if self.final != value else added
                body = [f"atomicAdd({self.out}, {final});"]
            else:
                body = [f"{kind} {value} = {self.zero};", *update, f"atomicAdd({self.out}, {self.final});"]
            lines = self.walk(state, Shape(self.count, lambda _: body, self.variable))
            return self.cuda(state, [self.kernel(state, lines)], host + self.launch(state, self.count, per=self.per(state)))
        update = [self.shown(state, line) for line in update]
        self_value, self_final = self.value, self.final
        self.value, self.final = self.shown(state, self_value), self.shown(state, self_final)
        try:
            return self.blocked(state, update, host)
        finally:
            self.value, self.final = self_value, self_final

    def hides(self) -> bool:
        """Whether the kernel with one atomic addition an element does not show the accumulator's name."""
        return len(self.update) == 1 and self.update[0].startswith(f"{self.value} += ")

    def shown(self, state: State, text: str) -> str:
        """``text`` with the accumulator's name as the code before can show it: ours where that hides it."""
        if not (state.get("smem", {}).get("hidden") or state.get("warp", {}).get("hidden")):
            return text
        return re.sub(rf"\b{self.value}\b", self.word("sum") if self.value != "sum" else "sum", text)

    def blocked(self, state: State, update: list[str], host: list[str]) -> str:
        """A reduction inside each block, by a tree or by shuffles."""
        kind = self.kind
        lines = [f"{kind} {self.value} = {identity(self.op, kind, self.zero, self.taste)};", *self.gather(state, update)]
        write = f"atomicAdd({self.out}, {self.final});" if self.shared == "atomic" else f"{self.out}[0] = {self.final};"
        devices = []
        if "warp" in state:
            idiom = state["warp"]
            name, function = warp_function(idiom, self.op, kind)
            if idiom["where"] == "function":
                devices.append(function)
                reduce = [f"{self.value} = {name}({self.value});"]
            else:
                reduce = shuffle(idiom, self.op, self.value)
            empty = identity(self.op, kind, self.zero, self.taste)
            lines = [
                f"__shared__ {kind} warp_part[32];", *lines, *reduce, "if (threadIdx.x % 32 == 0) {", f"warp_part[threadIdx.x / 32] = {self.value};", "}",
                "__syncthreads();", "if (threadIdx.x < 32) {",
                f"{self.value} = threadIdx.x < blockDim.x / 32 ? warp_part[threadIdx.x] : {empty};", *reduce, "if (threadIdx.x == 0) {", write, "}", "}",
            ]  # fmt: skip
        else:
            idiom = state["smem"]
            shared, tid = self.local_names(idiom)
            value = self.final_of(f"{shared}[0]")
            final = f"atomicAdd({self.out}, {value});" if self.shared == "atomic" else f"{self.out}[0] = {value};"
            lines = [
                f"__shared__ {kind} {shared}[{self.threads(state)}];", f"int {tid} = threadIdx.x;", *lines,
                f"{shared}[{tid}] = {self.value};", "__syncthreads();", *tree(idiom, self.op, shared, tid), f"if ({tid} == 0) {{", final, "}",
            ]  # fmt: skip
        if self.shared == "single":
            return self.cuda(state, [self.kernel(state, lines)], host + self.launch(state, self.count, fixed="1"), devices)
        per = self.per(state)
        return self.cuda(state, [self.kernel(state, lines)], host + self.launch(state, self.count, per=per), devices)

    def final_of(self, value: str) -> str:
        """What goes into the output, for ``value`` in the accumulator's place."""
        return re.sub(rf"\b{self.value}\b", lambda _: value, self.final, count=1)

    def local_names(self, idiom: Idiom) -> tuple[str, str]:
        taken = self.names.used | {str(idiom["step"])}
        shared = idiom["name"] if idiom["name"] not in taken else idiom["name"] + "_mem"
        tid = idiom["tid"] if idiom["tid"] not in taken else "thread_id"
        return shared, tid

    def per(self, state: State) -> int:
        return int(state["coarsen"]["factor"] if "coarsen" in state else WIDE[self.kind][1] if "vec" in state else 1)

    def gather(self, state: State, update: list[str]) -> list[str]:
        """Each thread's own part."""
        if self.shared == "single" and "gridstride" not in state:
            start = f"for ({self.index_type()} {self.variable} = threadIdx.x; {self.variable} < {self.count}; {self.variable} += blockDim.x) {{"
            return ["@outer_unroll", start, *update, "}"]
        if "vec" not in state:
            return self.walk(state, Shape(self.count, lambda _: update, self.variable), last=False)
        idiom = state["vec"]
        vector, width = WIDE[self.kind]
        q, v = self.word(idiom["index"]), self.variable
        ldg = "ldg" in state
        cast = (lambda n: f"reinterpret_cast<const {vector}*>({n})") if idiom["cast"] == "reinterpret" else (lambda n: f"((const {vector}*){n})")
        loads = [f"{vector} {a.name}{width} = {f'__ldg({cast(a.name)} + {q})' if ldg else f'{cast(a.name)}[{q}]'};" for a in self.inputs]
        parts = []
        for part in "xyzw"[:width]:
            for line in update:
                for a in self.inputs:
                    line = line.replace(f"{a.name}«{v}»", f"{a.name}{width}.{part}")
                parts.append(line)
        start = self.global_index(state)
        lines = [f"int {q} = {start};", f"if ({q} < {self.count} / {width}) {{", *loads, *parts, "}"]
        if idiom["tail"] == "threads":
            return [*lines, f"if ({q} < {self.count} % {width}) {{", f"int {v} = {self.count} / {width} * {width} + {q};", *update, "}"]
        return [*lines, f"if ({q} == 0) {{", f"for (int {v} = {self.count} / {width} * {width}; {v} < {self.count}; {self.increment(v)}) {{", *update, "}", "}"]

    def techniques(self, state: State) -> set[str]:
        found = self.common(state, " ".join(self.update))
        if "warp" not in state:
            found.add("warp")
            if "smem" not in state:
                found.add("smem")
        blocked = "smem" in state or "warp" in state
        if self.shared == "atomic" and not {"gridstride", "coarsen", "vec"} & set(state):
            found |= {"gridstride", "coarsen"}
            if blocked and self.simple and self.size_type == "int":
                found.add("vec")
        if "vec" in state or (state.get("gridstride", {}).get("loop") == "while"):
            found.discard("unroll")
        return found - (set(state) - {"block"})

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        if not state and technique == "parallel" and self.shared == "single":
            return None
        if state and technique == "block" and (state["parallel"]["block"] == idiom["block"] or idiom["block"] & (idiom["block"] - 1)):
            return None
        if technique == "smem" and state:
            idiom = {**idiom, "block": state["parallel"]["block"]}
        if technique in ("smem", "warp") and state:
            idiom = {**idiom, "hidden": state["smem"].get("hidden", False) if "smem" in state else self.hides()}
        new = super().apply(state, technique, idiom)
        if new and "warp" in new:
            new.pop("smem", None)
        return new


class Rows(Reducing):
    """Every row: one or two reductions over its columns, then a value a row or a value an element."""

    name = "rows"
    kinds: ClassVar[tuple[str, ...]] = ("float",) * 4 + ("double",)

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
        getattr(self, rng.choice(("wild", "wild", "wild", "softmax", "normalise", "plain")))()
        size = f"{self.rows}*{self.columns}"
        arrays = [*self.inputs, Argument("output", self.kind, self.out, size if self.per_element else self.rows)]
        sizes = self.sized((self.rows, self.rows), (self.columns, self.columns))
        self.arguments = [*arrays, *self.scalars, *sizes] if rng.random() < 0.6 else [*arrays, *sizes, *self.scalars]

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
        high, total = self.names.prefer(("mx", "peak", "m", "row_max", "max_val")), self.names.prefer(("sum", "den", "total", "z"))
        update = rng.choice(([f"{high} = @max({high}, {load});"], [f"if ({load} > {high}) {{", f"{high} = {load};", "}"], [f"{high} = {load} > {high} ? {load} : {high};"]))
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
            update = [f"{rng.choice(('const ', ''))}{self.kind} {d} = {load} - {mean};", f"{spread} += {d} * {d};"] if rng.random() < 0.6 else [f"{spread} += ({load} - {mean}) * ({load} - {mean});"]
            centred = f"({load} - {mean})"
        else:
            update, centred = [f"{spread} += {load} * {load};"], load
        eps = self.tiny()
        post = rng.choice((f"{one} / @sqrt({spread} / {self.columns} + {eps})", f"@sqrt({spread} / {self.columns} + {eps})"))
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
        self.tail = [f"{self.out}[{self.row}] = {var if rng.random() < 0.6 else text(rng, self.kind, [var, *([self.scalar()] if rng.random() < 0.5 else [])])};"]

    def wild(self) -> None:
        rng = self.rng
        leaves = [self.matrix()] + ([self.matrix()] if rng.random() < 0.4 else []) + ([self.vector()] if rng.random() < 0.4 else [])
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
                update = [f"{self.kind} {v} = {text(rng, self.kind, chosen)};", f"if ({v} {'>' if op == 'max' else '<'} {var}) {{", f"{var} = {v};", "}"]
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
        start, step = {"": ("0", ""), "smem": ("threadIdx.x", "blockDim.x"), "warp": ("lane", "32") if rows_warp else ("threadIdx.x", "blockDim.x")}[level]
        shared, tid = "", ""
        if level == "smem":
            shared, tid = self.local_names(state["smem"])
            start = tid
        column = self.column
        index = self.index_type() if not level else "int"
        if level:
            walk = f"for ({index} {column} = {start}; {column} < {self.columns}; {column} += {step}) {{"
        else:
            walk = self.loop(column, self.columns, kind=index)
        lines = list(self.heads)
        for variable, op, update, post in self.stages:
            start_value, first_walk = identity(op, kind, self.zero, self.taste), walk
            declared = kind
            if op == "sum" and self.double:
                declared, start_value = "@wide", "@wide0"
            if not level and self.taste == "first" and op != "sum" and (first := self.first_of(variable, update)):
                start_value, first_walk = first, self.loop(column, self.columns, "1", kind=index)
            lines += [f"{declared} {variable} = {start_value};", "@unroll", first_walk, *update, "}"]
            if level == "smem":
                lines += [f"{shared}[{tid}] = {variable};", "__syncthreads();", *tree(state["smem"], op, shared, tid), f"{variable} = {shared}[0];", "__syncthreads();"]
            elif level == "warp":
                lines += self.across_warp(state, op, variable, rows_warp)
            if post:
                lines.append(f"{variable} = {post};")
        if self.per_element:
            lines += ["@unroll", walk, *self.tail, "}"]
        elif not level:
            lines += self.tail
        else:
            lines += [f"if ({tid if level == 'smem' else 'lane' if rows_warp else 'threadIdx.x'} == 0) {{", *self.tail, "}"]
        return lines

    def first_of(self, variable: str, update: list[str]) -> str:
        """The first column's value of an extremum, or "" where its update is no plain one."""
        match = re.fullmatch(rf"{variable} = @\w+\({variable}, (.*)\);", update[0]) or re.fullmatch(rf"if \((.*) [<>] {variable}\) {{{{", update[0])
        match = match or re.fullmatch(rf"{variable} = (.*) [<>] {variable} \? .*;", update[0])
        if match is None or len(update) > 3:
            return ""
        return re.sub(rf"\b{self.column}\b(?=»)", "0", match[1])

    def across_warp(self, state: State, op: str, variable: str, rows_warp: bool) -> list[str]:
        idiom = state["warp"]
        call = [f"{variable} = warp_{op}({variable});"] if idiom["where"] == "function" else shuffle(idiom, op, variable)
        share = [f"{variable} = __shfl_sync({idiom['mask']}, {variable}, 0);"] if idiom["op"] == "down" else []
        if rows_warp:
            return [*call, *share]
        empty = identity(op, self.kind, self.zero, self.taste)
        return [
            *call, "if (threadIdx.x % 32 == 0) {", f"warp_part[threadIdx.x / 32] = {variable};", "}", "__syncthreads();",
            f"{variable} = threadIdx.x % 32 < blockDim.x / 32 ? warp_part[threadIdx.x % 32] : {empty};", *call, *share, "__syncthreads();",
        ]  # fmt: skip

    local_names = Reduction.local_names

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
                devices = [warp_function(idiom, op, self.kind)[1] for op in dict.fromkeys(op for _, op, _, _ in self.stages)]
            if idiom["rows"] == "warp":
                head = [f"int {self.row} = ({self.global_index(state)}) / 32;", "int lane = threadIdx.x % 32;"]
                lines = [*head, f"if ({self.row} >= {self.rows}) return;", *body]
                per_block = self.threads(state) // 32
                fixed = f"({self.rows} + {per_block - 1}) / {per_block}"
                fixed = fixed if self.size_type == "int" or state["parallel"]["launch"] == "inline" else f"(int)({fixed})"
            else:
                lines = [f"__shared__ {self.kind} warp_part[32];", f"int {self.row} = blockIdx.x;", *body]
        else:
            shared, tid = self.local_names(state["smem"])
            lines = [f"__shared__ {self.kind} {shared}[{self.threads(state)}];", f"int {self.row} = blockIdx.x;", f"int {tid} = threadIdx.x;", *body]
        return self.cuda(state, [self.kernel(state, lines)], self.launch(state, self.rows, fixed=fixed), devices)

    def techniques(self, state: State) -> set[str]:
        found = self.common(state, "@unroll " + " ".join(" ".join(u) + p for _, _, u, p in self.stages) + " ".join(self.tail))
        if "warp" not in state:
            found.add("warp")
            if "smem" not in state:
                found.add("smem")
        return found - (set(state) - {"block"})

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        if state and technique == "block" and (state["parallel"]["block"] == idiom["block"] or idiom["block"] & (idiom["block"] - 1)):
            return None
        if technique == "smem" and state:
            idiom = {**idiom, "block": state["parallel"]["block"]}
        new = super().apply(state, technique, idiom)
        if new and "warp" in new:
            new.pop("smem", None)
        return new
