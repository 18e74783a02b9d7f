"""Workloads as people hand them in: several outputs, index arithmetic of their own, sums that a block may share.

A program is a nest of parallel loops over ``axes`` and, for every output, lines before, accumulators with the loops
that fill them, and lines after. The same parts give a thread one output or several, or a warp or block one output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from slm.corpus.blocks import identity, shuffle, tree, warp_function
from slm.corpus.family import Argument, Family, State
from slm.corpus.idioms import Idiom, canonical
from slm.corpus.nests import Nest

WIDE_CASTS = ("{}", "{}", "{}", "static_cast<size_t>({})", "(size_t){}", "static_cast<long>({})", "(long){}")
Axis = tuple[str, str]


class Work(Nest):
    """``make`` draws the program: its sizes, arrays, ``axes`` and either ``plain`` or the parts of a reduction."""

    name = "work"
    manner: ClassVar[str] = "work"
    kinds: ClassVar[tuple[str, ...]] = ("float",) * 8 + ("double",)
    hopeless = frozenset(("private", "pad", "fuse"))

    def setup(self) -> None:
        rng = self.rng
        self.size_type = "int"  # indexes of windows fall below zero
        self.axes: list[Axis] = []
        self.inputs: list[Argument] = []
        self.outputs: list[Argument] = []
        self.scalars: list[Argument] = []
        self.prelude: list[str] = []
        self.counted: list[str] = []
        self.heads: list[str] = []
        self.written = rng.choice(("", "", "", "", "", "plus"))
        self.cast = rng.choice(WIDE_CASTS)
        self.spread = rng.random() < 0.3  # a * nb * nc + b * nc + c rather than (a * nb + b) * nc + c
        self.quiet = rng.choice(("", "const ", "const "))
        self.between: dict[int, list[str]] = {}  # lines after that many loops, which each thread repeats
        self.before: list[str] = []
        self.sums: list[tuple[str, str]] = []  # accumulator, operation
        self.around: list[Axis] = []  # the loops that fill them
        self.inner: list[str] = []
        self.after: list[str] = []
        self.plain: list[str] = []
        self.taste = rng.choice(("large", "infinity", "limit"))
        self.sizes: list[str] = []
        self.make()
        self.heads = [line for depth in sorted(self.between) for line in self.between[depth]]
        words = set(re.findall(r"\w+", "\n".join(self.lines())))
        self.scalars = [a for a in self.scalars if a.name in words]  # a form not chosen may have drawn one
        sizes = self.sized(*((b, b) for b in self.sizes))
        arrays = [*self.inputs, *self.outputs] if rng.random() < 0.85 else [*self.outputs, *self.inputs]
        tail = [*self.scalars, *sizes] if rng.random() < 0.5 else [*sizes, *self.scalars]
        self.arguments = tail + arrays if rng.random() < 0.06 else arrays + tail
        self.body = self.plain or self.threaded()
        self.streams = self.can_stream() and rng.random() < 0.4

    def make(self) -> None:
        raise NotImplementedError

    def lines(self) -> list[str]:
        return [*self.plain, *self.before, *self.inner, *self.after, *self.heads]

    # -- drawing
    def size(self, value: int, words: str, role: str = "inner") -> str:
        """A size of the program: a common name of ``words`` or any other."""
        name = self.names.prefer(words.split()) if self.rng.random() < 0.75 else self.names.take(role)
        self.dims[name] = value
        self.sizes.append(name)
        return name

    def fixed_size(self, values: Sequence[int], words: str) -> str:
        """A constant above the function, or the number itself."""
        rng = self.rng
        value = rng.choice(tuple(values))
        if rng.random() < 0.3:
            return str(value)
        name = self.names.prefer(words.split())
        forms = (f"constexpr int {name} = {value};", f"static const int {name} = {value};", f"#define {name} {value}")
        self.constants.append(rng.choice(forms))
        self.dims[name] = value
        return name

    def array(self, words: str, *sizes: str, kind: str = "input", type: str = "", values: str = "") -> str:
        role = "input" if kind == "input" else "output"
        name = self.names.prefer(words.split()) if self.rng.random() < 0.55 else self.names.take(role)
        made = Argument(kind, type or self.kind, name, "*".join(sizes) or "1", values)
        (self.inputs if kind == "input" else self.outputs).append(made)
        return name

    def result(self, words: str, *sizes: str, type: str = "") -> str:
        return self.array(words, *sizes, kind="output", type=type)

    def factor(self, words: str = "scale") -> str:
        name = self.names.prefer(words.split()) if self.rng.random() < 0.7 else self.names.take("scalar")
        self.scalars.append(Argument("scalar", self.kind, name))
        return name

    def name_of(self, words: str) -> str:
        return self.names.prefer(words.split())

    def number(self, value: float) -> str:
        return f"{value}f" if self.kind == "float" else f"{value}"

    def at(self, *places: tuple[str, str]) -> str:
        """The row-major index of (index, size) pairs; the first size is not used."""

        def safe(text: str) -> str:
            return text if re.fullmatch(r"[\w\[\]«»]+", text) or text == f"({text[1:-1]})" else f"({text})"

        first = places[0][0]
        if len(places) == 1:
            return first
        result = self.cast.format(safe(first) if "static" not in self.cast else first)
        if self.spread and len(places) > 2:
            parts = []
            for k, (index, _) in enumerate(places):
                head = self.cast.format(safe(index) if "static" not in self.cast else index) if k == 0 else safe(index)
                tail = [size for _, size in places[k + 1 :]]
                parts.append(" * ".join([head, *tail]) if tail else index)
            return " + ".join(parts)
        for index, size in places[1:]:
            plain = " + " not in result and " - " not in result
            left = result if plain or (result[0] == "(" and result.find(")") == len(result) - 1) else f"({result})"
            result = f"{left} * {size} + {index}"
        return result

    def declare(self, words: str, value: str, kind: str = "") -> tuple[str, str]:
        """(line, name) of a new local."""
        name = self.name_of(words) if self.rng.random() < 0.7 else self.local()
        return f"{self.quiet}{kind or self.kind} {name} = {value};", name

    def local_pointer(self, depth: int, words: str, array: str, start: str, *, out: bool = False) -> str:
        """A pointer into ``array`` after ``depth`` loops."""
        name = self.name_of(words)
        kind = next(a.type for a in (*self.inputs, *self.outputs) if a.name == array)
        form = self.rng.choice((f"{array} + {start}", f"{array} + {start}", f"&{array}[{start}]"))
        self.between.setdefault(depth, []).append(f"{'' if out else 'const '}{kind}* {name} = {form};")
        return name

    # -- text
    def opened(self) -> list[str]:
        lines = ["@unroll"] if len(self.around) == 1 else []
        for k, (variable, bound) in enumerate(self.around):
            lines += ["@unroll"] if k == len(self.around) - 1 > 0 else []
            lines.append(self.loop(variable, bound, kind=self.index_type()))
        return lines

    def starts(self, op: str) -> str:
        return identity(op, self.kind, self.zero, self.taste)

    def threaded(self) -> list[str]:
        """One thread, one output."""
        first = [f"{self.kind} {name} = {self.starts(op)};" for name, op in self.sums]
        return [*self.before, *first, *self.opened(), *self.inner, *["}"] * len(self.around), *self.after]

    def can_stream(self) -> bool:
        """Whether sequential code may keep the one accumulator in the output itself and walk the last axis inside."""
        stored = len(self.axes) > 1 and len(self.sums) == 1 and len(self.after) == 1 and not self.plain
        place = self.after[0].split(" = ", 1)[0] if stored else ""
        if not place.endswith("]") or any(a.type != self.kind for a in self.outputs):
            return False
        return place not in self.after[0].split(" = ", 1)[1] and not self.before

    def streamed(self) -> list[str]:
        """Loops in the order that walks arrays line by line: zeros, then every term along a row, then what is left."""
        (name, op), (column, columns) = self.sums[0], self.axes[-1]
        place, value = self.after[0].removesuffix(";").split(" = ", 1)
        lines: list[str] = []
        for depth, (variable, bound) in enumerate(self.axes[:-1]):
            lines += self.between.get(depth, []) if depth else []
            lines.append(self.header(variable, bound))
        lines += self.between.get(len(self.axes) - 1, [])
        along = self.header(column, columns)
        lines += [along, f"{place} = {self.starts(op)};", "}"]
        inner = [re.sub(rf"\b{name}\b", lambda _: place, line) for line in self.inner]
        lines += [line for line in self.opened() if line != "@unroll"]
        lines += [along, *self.between.get(len(self.axes), []), *inner, "}", *["}"] * len(self.around)]
        if value != name:
            last = re.sub(rf"\b{name}\b", lambda _: place, value)
            lines += [along, f"{place} = {last};", "}"]
        return [*lines, *["}"] * (len(self.axes) - 1)]

    def render(self, state: State) -> str:
        if not state:
            lines: list[str] = []
            for depth, (variable, bound) in enumerate(self.axes):
                lines += self.between.get(depth, []) if depth else []
                lines.append(self.header(variable, bound))
            if self.streams:
                return self.sequential([*self.prelude, *self.streamed()])
            lines += self.between.get(len(self.axes), [])
            return self.sequential([*self.prelude, *lines, *self.body, *["}"] * len(self.axes)])
        if "smem" in state or "warp" in state:
            return self.shared_sum(state)
        if "regtile" in state:
            return self.several(state)
        return super().render(state)

    def unflatten(self, index: str) -> list[str]:
        kind, lines, rest = self.index_type(), [], index
        for k in range(len(self.axes) - 1, 0, -1):
            variable, bound = self.axes[k]
            lines.append(f"{kind} {variable} = {rest} % {bound};")
            rest = f"{rest} / {bound}" if k == len(self.axes) - 1 else f"{index} / ({self.product(self.axes[k:])})"
        lines.append(f"{kind} {self.axes[0][0]} = {rest};")
        return lines if len(self.axes) > 2 else lines[::-1]

    def product(self, axes: Sequence[Axis]) -> str:
        return " * ".join(bound for _, bound in axes)

    def planar_lines(self, state: State, guards: bool) -> list[str]:
        """Indexes of a 2-D or 3-D launch; the axes before the last two share the third dimension."""
        kind = self.index_type()
        *deep, (row, _), (column, _) = self.axes
        lines = [f"{kind} {column} = {self.global_index(state)};"] if guards else []
        lines.append(f"{kind} {row} = {self.global_index(state, 'y')};")
        if len(deep) == 1:
            lines.append(f"{kind} {deep[0][0]} = blockIdx.z;")
        elif deep:
            (first, _), (second, seconds) = deep
            lines += [f"{kind} {first} = blockIdx.z / {seconds};", f"{kind} {second} = blockIdx.z % {seconds};"]
        return lines

    def planar(self, state: State) -> list[str]:
        (row, rows), (column, columns) = self.axes[-2:]
        inside = [*self.prelude, *self.heads, *self.body]
        lines = self.planar_lines(state, True)
        if state["parallel"]["guard"] == "return":
            return [*lines, f"if ({column} >= {columns} || {row} >= {rows}) return;", *inside]
        return [*lines, f"if ({row} < {rows} && {column} < {columns}) {{", *inside, "}"]

    def planar_launch(self, state: State) -> list[str]:
        x, y = state["parallel"]["block2"]
        per = state.get("regtile", {}).get("factor", 1)
        block, grid = (self.word(w) for w in state["parallel"]["words"])
        (_, rows), (_, columns) = self.axes[-2:]
        deep = f", {self.product(self.axes[:-2])}" if len(self.axes) > 2 else ""
        if state["parallel"]["launch"] in ("inline", "const"):
            size = f"({columns} + {x * per - 1}) / {x * per}, ({rows} + {y - 1}) / {y}{deep}"
        elif per > 1:
            size = (
                f"({columns} + {block}.x * {per} - 1) / ({block}.x * {per}), ({rows} + {block}.y - 1) / {block}.y{deep}"
            )
        else:
            size = f"({columns} + {block}.x - 1) / {block}.x, ({rows} + {block}.y - 1) / {block}.y{deep}"
        return [
            f"dim3 {block}({x}, {y});",
            f"dim3 {grid}({size});",
            f"{self.kernel_name(state)}<<<{grid}, {block}>>>({self.passed()});",
        ]

    def planar_state(self, state: State) -> str:
        return "line" if len(self.axes) == 1 else "flat" if self.flat(state) else f"grid{min(3, len(self.axes))}"

    # -- several outputs a thread, their sums in registers
    def several(self, state: State) -> str:
        idiom = state["regtile"]
        factor, each = idiom["factor"], self.word("q")
        column, columns = self.axes[-1]
        first = self.word(f"{column}0")
        held = {name: self.word(f"{name}_{idiom['name']}") for name, _ in self.sums}

        def with_sums(lines: list[str]) -> list[str]:
            text = "\n".join(lines)
            for name, array in held.items():
                text = re.sub(rf"\b{name}\b", f"{array}[{each}]", text)
            return text.split("\n")

        turn = [self.loop(each, str(factor)), f"int {column} = {first} + {each} * blockDim.x;"]
        lines = [f"int {first} = blockIdx.x * blockDim.x * {factor} + threadIdx.x;"]
        if len(self.axes) > 1:
            row, rows = self.axes[-2]
            lines += [*self.planar_lines(state, False), f"if ({row} >= {rows}) return;"]
        lines += [*self.prelude, *self.heads]
        for name, op in self.sums:
            if op == "sum":
                lines.append(f"{self.kind} {held[name]}[{factor}] = {{{self.zero}}};")
            else:
                value = ", ".join([self.starts(op)] * factor)
                lines.append(f"{self.kind} {held[name]}[{factor}] = {{{value}}};")
        guard = f"if ({column} < {columns}) {{"
        loops = [line for line in self.opened() if line != "@unroll"]
        lines += [*loops, "@unroll", *turn, guard, *self.before, *with_sums(self.inner), "}", "}"]
        lines += ["}"] * len(self.around)
        lines += ["@unroll", *turn, guard, *self.before, *with_sums(self.after), "}", "}"]
        kernel = self.kernel(state, lines)
        if len(self.axes) > 1:
            return self.cuda(state, [kernel], self.planar_launch(state))
        return self.cuda(state, [kernel], self.launch(state, columns, per=factor))

    # -- a block or a warp for an output
    def shared_sum(self, state: State) -> str:
        warp = "warp" in state
        idiom = state["warp" if warp else "smem"]
        shared = tid = ""
        if not warp:
            shared = self.word(idiom["name"] if idiom["name"] not in self.names.used else idiom["name"] + "_mem")
            tid = self.word(idiom["tid"] if idiom["tid"] != idiom["step"] else "thread_id")
        (variable, bound), *rest = self.around
        start, step = ("lane", "32") if warp else (tid, "blockDim.x")
        loops = ["@unroll", f"for (int {variable} = {start}; {variable} < {bound}; {variable} += {step}) {{"]
        loops += [self.loop(v, b, kind=self.index_type()) for v, b in rest]
        index = self.axes[0][0] if len(self.axes) == 1 else self.word("o")
        count = self.product(self.axes)
        lines = [f"__shared__ {self.kind} {shared}[{self.threads(state)}];"] if not warp else []
        if warp:
            lines += [
                f"int {index} = ({self.global_index(state)}) / 32;",
                "int lane = threadIdx.x % 32;",
                f"if ({index} >= {count}) return;",
            ]
        else:
            lines += [f"int {index} = blockIdx.x;", f"int {tid} = threadIdx.x;"]
        if len(self.axes) > 1:
            lines += self.unflatten(index)
        lines += [*self.prelude, *self.heads, *self.before]
        lines += [f"{self.kind} {name} = {self.starts(op)};" for name, op in self.sums]
        lines += [*loops, *self.inner, *["}"] * len(self.around)]
        devices = []
        for name, op in self.sums:
            if warp:
                named = idiom["where"] == "function"
                lines += [f"{name} = warp_{op}({name});"] if named else shuffle(idiom, op, name)
                if named:
                    devices.append(warp_function(idiom, op, self.kind)[1])
            else:
                lines += [f"{shared}[{tid}] = {name};", "__syncthreads();", *tree(idiom, op, shared, tid)]
                lines += [f"{name} = {shared}[0];"]
                lines += ["__syncthreads();"] if name != self.sums[-1][0] else []
        lines += [f"if ({'lane' if warp else tid} == 0) {{", *self.after, "}"]
        per_block = self.threads(state) // 32
        fixed = f"({count} + {per_block - 1}) / {per_block}" if warp else count
        unique = [d for k, d in enumerate(devices) if d not in devices[:k]]
        return self.cuda(state, [self.kernel(state, lines)], self.launch(state, count, fixed=fixed), unique)

    def threads(self, state: State) -> int:
        return int(state["parallel"]["block"]) if {"smem", "warp"} & set(state) else super().threads(state)

    # -- techniques
    def alike(self, technique: str) -> str:
        return "work" if technique in ("smem", "warp", "regtile") else self.name if technique == "tile" else ""

    def shareable(self) -> bool:
        """Whether the accumulators may be filled by many threads."""
        return bool(self.sums) and self.size_type == "int" and all(op in ("sum", "max", "min") for _, op in self.sums)

    def stacks(self) -> bool:
        """Whether a thread may hold several outputs: no early end, and each place of the sums known."""
        return self.shareable() and "@skip" not in "\n".join((*self.inner, *self.after))

    def techniques(self, state: State) -> set[str]:
        marked = " ".join((*self.body, *self.heads, *self.prelude, *(line for h in self.helpers for line in h)))
        found = self.common(state, marked)
        one_each = not {"gridstride", "coarsen", "regtile", "smem", "warp", "tile"} & set(state)
        if self.flat(state) and one_each:
            found |= {"gridstride", "coarsen"}
        if self.shareable() and one_each and self.around:
            found |= {"smem", "warp"}
        if "smem" in state:
            found.add("warp")
        if self.stacks() and one_each and (len(self.axes) == 1 or not self.flat(state)):
            found.add("regtile")
        if "regtile" in state:
            found.add("unroll")
        if state.get("gridstride", {}).get("loop") == "while" and "@unroll" not in " ".join(self.body):
            found.discard("unroll")
        return found - (set(state) - {"block"})

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        block = idiom.get("block", 256)
        if technique == "block" and {"smem", "warp"} & set(state):
            if state["parallel"]["block"] == block or block & (block - 1):
                return None
            return Family.apply(self, state, technique, idiom)
        if technique in ("smem", "warp"):
            if not self.shareable() or not self.around or (technique == "warp" and idiom["rows"] != "warp"):
                return None
            if not state:
                start: dict[str, Any] = {"parallel": dict(idiom.get("parallel") or canonical("parallel"))}
                if technique == "smem":
                    start["parallel"]["block"] = block
                return {**start, technique: {k: v for k, v in idiom.items() if k != "parallel"}}
            if technique == "smem":
                if state["parallel"]["block"] & (state["parallel"]["block"] - 1):
                    return None
                idiom = {**idiom, "block": state["parallel"]["block"]}
        new = super().apply(state, technique, idiom)
        if new and "warp" in new:
            new.pop("smem", None)
        if new and technique == "smem":
            new.pop("bounds", None)
        return new
