"""What every family shares: the signature, the kernel, the launcher, the state of applied techniques."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from slm.corpus.expressions import zero
from slm.corpus.idioms import DIRECT, Idiom, canonical
from slm.corpus.layout import FAST, draw_style, lay_out, resolve
from slm.corpus.lexicon import Names
from slm.corpus.remarks import remark

State = dict[str, Idiom]
WIDE = {"float": ("float4", 4), "int": ("int4", 4), "double": ("double2", 2)}


@dataclass(frozen=True)
class Argument:
    """One parameter: ``kind`` is input, output, inout, scalar or size; ``size`` an expression over ``dims``."""

    kind: str
    type: str
    name: str
    size: str = ""
    values: str = ""  # of an integer input: the name of the size below which its values stay


@dataclass
class Shape:
    """The pieces from which a 1-D kernel over ``count`` elements is assembled."""

    count: str  # the bound of the index
    body: Callable[[str], list[str]]
    index: str = ""  # the index's name, where the body has one of its own


class Family:
    """A random program that can be rendered in any state its techniques reach."""

    name: ClassVar[str]
    manner: ClassVar[str] = ""  # of families that write some techniques alike
    kinds: ClassVar[tuple[str, ...]] = ("float",) * 6 + ("double",) * 2 + ("int",) * 2

    def __init__(self, rng: random.Random, pieces: Sequence[str]) -> None:
        self.rng = rng
        self.names = Names(rng, pieces)
        self.kind = rng.choice(self.kinds)
        self.style = draw_style(rng)
        self.function = self.names.take("function")
        self.arguments: list[Argument] = []
        self.dims: dict[str, int] = {}
        self.constants: list[str] = []  # lines above the function, in the sequential and the CUDA code alike
        self.helpers: list[list[str]] = []  # device functions of the program's own: `@device float f(float x) {`
        self.size_type = rng.choice(("int",) * 8 + ("size_t", "long long"))
        self.comment = ""
        self.extra_includes = [
            i for i in ("cstddef", "cstdint", "algorithm", "cstring", "vector") if rng.random() < 0.06
        ]
        self.inline = rng.choice(("static inline ", "static inline ", "static ", "inline "))  # a function on the host
        self.setup()
        if rng.random() < 0.35:
            rng.shuffle(self.arguments)
        if rng.random() < 0.25:
            self.comment = self.remark()

    def setup(self) -> None:
        """Draw the program: its arguments, sizes and statements; every family has its own."""
        raise NotImplementedError

    def remark(self) -> str:
        """A remark with some of the program's own names."""
        return remark(self.rng, [a.name for a in self.arguments], self.names.pieces)

    # -- signature
    def sized(self, *items: tuple[str, str]) -> list[Argument]:
        return [Argument("size", self.size_type, name, dim) for name, dim in items]

    def pointer(self, state: State, argument: Argument) -> str:
        const = "const " if argument.kind == "input" else ""
        restrict = state.get("restrict")
        mark = "__restrict__ " if restrict and (argument.kind == "input" or restrict["outputs"]) else ""
        return f"{const}{argument.type}* {mark}{argument.name}"

    def parameter(self, state: State, argument: Argument) -> str:
        if argument.kind in ("scalar", "size"):
            return f"{argument.type} {argument.name}"
        return self.pointer(state, argument)

    def signature(self, state: State | None = None, only: Sequence[str] | None = None) -> str:
        chosen = [a for a in self.arguments if only is None or a.name in only]
        return ", ".join(self.parameter(state or {}, a) for a in chosen)

    def passed(self, only: Sequence[str] | None = None) -> str:
        return ", ".join(a.name for a in self.arguments if only is None or a.name in only)

    def word(self, wanted: object) -> str:
        """``wanted``, or with a digit where the program already uses that name."""
        name = str(wanted)
        while name in self.names.used:
            name += "0"
        return name

    def increment(self, name: str) -> str:
        return f"{name}++" if self.style.postfix else f"++{name}"

    def loop(self, variable: str, bound: str, start: str = "0", kind: str = "") -> str:
        return f"for ({kind or 'int'} {variable} = {start}; {variable} < {bound}; {self.increment(variable)}) {{"

    @property
    def zero(self) -> str:
        return zero(self.kind)

    # -- text
    def _finish(self, lines: list[str], state: State | None) -> str:
        pragma = state.get("unroll", {}).get("pragma", "") if state else ""
        flat = []
        for line in lines:
            if line == "@unroll" or (line == "@outer_unroll" and "@unroll" not in lines):
                if pragma:
                    flat.append(pragma)
            elif line == "@outer_unroll":
                continue
            elif line == "@skip":  # ends the turn of one index
                looped = state is None or {"gridstride", "coarsen"} & set(state)
                flat.append("continue;" if looped else "return;")
            else:
                flat.append(line)
        device = state is not None
        state = state or {}
        body = resolve(
            "\n".join(flat),
            self.kind,
            device=device,
            math=self.style.math,
            ldg=state.get("ldg", {}).get("form", ""),
            fast="fast" in state,
            fma="fma" in state,
        )
        return lay_out(body.split("\n"), self.style)

    def sequential(self, body: list[str]) -> str:
        joined = " ".join(body) + " ".join(" ".join(h) for h in self.helpers)
        includes = set(self.extra_includes)
        if re.search(r"@(?!unroll|min|max|imin|imax|device|wide|popcount)|INFINITY", joined):
            includes.add("cstdlib" if self.kind == "int" else "cmath")
        if re.search(r"@i?(min|max)\(", joined):
            includes.add("algorithm")
        if "INT_M" in joined:
            includes.add("climits")
        if re.search(r"\bu?int(8|16|32|64)_t\b", joined + self.signature()):
            includes.add("cstdint")
        if "FLT_M" in joined or "DBL_M" in joined:
            includes.add("cfloat")
        if "size_t" in joined or self.size_type == "size_t":
            includes.add("cstddef")
        lines = [f"#include <{name}>" for name in sorted(includes)]
        lines += [""] if lines else []
        lines += self.constants + ([""] if self.constants else [])
        for helper in self.helpers:
            lines += [helper[0].replace("@device ", self.inline), *helper[1:], ""]
        if self.comment:
            lines.append(self.comment)
        lines += [f'extern "C" void {self.function}({self.signature()}) {{', *body, "}"]
        return self._finish(lines, None)

    def kernel_name(self, state: State) -> str:
        return str(state["parallel"]["kernel"]).format(self.function)

    def kernel(
        self, state: State, body: list[str], *, name: str = "", signature: str = "", threads: str = ""
    ) -> list[str]:
        bounds = ""
        if "bounds" in state:
            minimum = min(state["bounds"]["minimum"], 2048 // (int(threads) if threads else self.threads(state)))
            bounds = f"__launch_bounds__({threads or self.threads(state)}{f', {minimum}' if minimum else ''}) "
        return [
            f"__global__ void {bounds}{name or self.kernel_name(state)}({signature or self.signature(state)}) {{",
            *body,
            "}",
        ]

    def threads(self, state: State) -> int:
        return int(state["parallel"]["block"])

    def cuda(self, state: State, kernels: list[list[str]], host: list[str], devices: Sequence[list[str]] = ()) -> str:
        joined = " ".join(" ".join(k) for k in kernels)
        lines = ["#include <cuda_runtime.h>"]
        if re.search(r"\bu?int(8|16|32|64)_t\b", joined):
            lines.append("#include <cstdint>")
        if "INT_M" in joined:
            lines.append("#include <climits>")
        if "FLT_M" in joined or "DBL_M" in joined:
            lines.append("#include <cfloat>")
        lines.append("")
        if "FULL_MASK" in joined + " ".join(" ".join(d) for d in devices):
            lines += ["#define FULL_MASK 0xffffffffu", ""]
        lines += self.constants + ([""] if self.constants else [])
        for helper in self.helpers:
            lines += [helper[0].replace("@device ", "__device__ __forceinline__ "), *helper[1:], ""]
        for helper in devices:
            lines += [*helper, ""]
        for lines_of in kernels:
            lines += [*lines_of, ""]
        if self.comment:
            lines.append(self.comment)
        sync = ["cudaDeviceSynchronize();"] if state["parallel"]["sync"] else []
        lines += [f'extern "C" void {self.function}({self.signature()}) {{', *host, *sync, "}"]
        return self._finish(lines, state)

    # -- one-dimensional launches
    def global_index(self, state: State, axis: str = "x") -> str:
        if state["parallel"]["swap"]:
            return f"threadIdx.{axis} + blockIdx.{axis} * blockDim.{axis}"
        return f"blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"

    def index_type(self) -> str:
        return "int" if self.size_type == "int" else self.size_type

    def launch(
        self,
        state: State,
        count: str,
        *,
        kernel: str = "",
        passed: str = "",
        per: int = 1,
        declare: bool = True,
        fixed: str = "",
        threads: int = 0,
    ) -> list[str]:
        """Lines that launch a 1-D kernel; ``per`` elements a thread, ``fixed`` a grid expression of its own."""
        how = state["parallel"]["launch"]
        block_word, grid_word = (self.word(w) for w in state["parallel"]["words"])
        threads = threads or self.threads(state)
        kernel = kernel or self.kernel_name(state)
        passed = passed or self.passed()
        cap = state.get("gridstride", {}).get("cap", 0)
        if how == "inline":
            grid = fixed or f"({count} + {threads * per - 1}) / {threads * per}"
        else:
            grid = fixed or (
                f"({count} + {block_word} * {per} - 1) / ({block_word} * {per})"
                if per > 1
                else f"({count} + {block_word} - 1) / {block_word}"
            )
        kind = self.size_type
        if cap and not fixed:
            if kind == "int":
                grid = f"min({grid}, {cap})"
            else:
                grid = f"min((int)({grid}), {cap})"
        elif kind != "int" and how != "inline":
            grid = f"(int)({grid})" if not re.fullmatch(r"\w+", grid) else f"(int){grid}"
        if how == "inline":
            return [f"{kernel}<<<{grid}, {threads}>>>({passed});"]
        if how == "dim3":
            made = [
                f"dim3 {block_word}({threads});",
                f"dim3 {grid_word}({grid.replace(block_word, f'{block_word}.x')});",
            ]
        else:
            const = "const " if how == "const" else ""
            made = [f"{const}int {block_word} = {threads};", f"{const}int {grid_word} = {grid};"]
        return (made if declare else []) + [f"{kernel}<<<{grid_word}, {block_word}>>>({passed});"]

    def guarded(self, state: State, index: str, bound: str, body: list[str], *, last: bool = True) -> list[str]:
        """``body`` for indices below ``bound``; an early return only where nothing follows."""
        if state["parallel"]["guard"] == "return" and last:
            return [f"if ({index} >= {bound}) return;", *body]
        return [f"if ({index} < {bound}) {{", *body, "}"]

    def walk(self, state: State, shape: Shape, *, last: bool = True) -> list[str]:
        """The lines by which one thread visits its elements: one, a grid stride apart, or a coarse group."""
        index = shape.index or self.word(state["parallel"]["index"])
        kind = self.index_type()
        cast = "" if kind == "int" else f"({kind})"
        start = self.global_index(state)
        if cast:
            start = (
                f"{cast}{start}" if not state["parallel"]["swap"] else f"threadIdx.x + {cast}blockIdx.x * blockDim.x"
            )
        if "gridstride" in state:
            idiom = state["gridstride"]
            step = self.word(idiom["stride"])
            width = f"{cast}blockDim.x * gridDim.x"
            if idiom["loop"] == "inline":
                return [
                    "@outer_unroll",
                    f"for ({kind} {index} = {start}; {index} < {shape.count}; {index} += {width}) {{",
                    *shape.body(index),
                    "}",
                ]
            if idiom["loop"] == "named":
                return [
                    f"const {kind} {step} = {width};",
                    "@outer_unroll",
                    f"for ({kind} {index} = {start}; {index} < {shape.count}; {index} += {step}) {{",
                    *shape.body(index),
                    "}",
                ]
            return [
                f"{kind} {index} = {start};",
                f"while ({index} < {shape.count}) {{",
                *shape.body(index),
                f"{index} += {width};",
                "}",
            ]
        if "coarsen" in state:
            idiom = state["coarsen"]
            factor = idiom["factor"]
            base, step = (self.word(w) for w in idiom["words"])
            if idiom["apart"] == "block":
                first = f"{cast}blockIdx.x * blockDim.x * {factor} + threadIdx.x"
                each = f"{base} + {step} * blockDim.x"
            else:
                first = f"({start}) * {factor}"
                each = f"{base} + {step}"
            return [
                f"{kind} {base} = {first};",
                "@outer_unroll",
                self.loop(step, str(factor)),
                f"{kind} {index} = {each};",
                f"if ({index} < {shape.count}) {{",
                *shape.body(index),
                "}",
                "}",
            ]
        return [f"{kind} {index} = {start};", *self.guarded(state, index, shape.count, shape.body(index), last=last)]

    # -- techniques
    hopeless: ClassVar[frozenset[str]] = frozenset()  # techniques that this family's code never takes

    def alike(self, technique: str) -> str:
        """The family or manner that an example of ``technique`` must have, or "" where any will do."""
        return self.name if technique in ("smem", "warp", "regtile") else ""

    def planar_state(self, state: State) -> str:
        """Which kind of launch the state has: its idioms show in an example of the same kind only."""
        del state
        return "line"

    def common(self, state: State, text: str) -> set[str]:
        """Techniques that any kernel of ours takes, given the marked text of its body."""
        found = {"block", "bounds", "restrict", "ldg"}
        if self.kind == "float" and re.search("@(" + "|".join(FAST) + r")\(", text):
            found.add("fast")
        if self.kind in ("float", "double") and "⟪" in text:
            found.add("fma")
        if "@unroll" in text or "coarsen" in state or "gridstride" in state:
            found.add("unroll")
        return found - (set(state) - {"block"})

    def techniques(self, state: State) -> set[str]:
        """What can be applied in ``state`` (which holds ``parallel``)."""
        raise NotImplementedError

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        """The state after ``technique``, or None where it changes nothing."""
        if not state:
            if technique == "parallel":
                return {"parallel": dict(idiom)}
            start = self.apply({}, "parallel", idiom.get("parallel") or canonical("parallel"))
            if not start or technique not in DIRECT:
                return None
            return self.apply(start, technique, {k: v for k, v in idiom.items() if k != "parallel"})
        if technique not in self.techniques(state):
            return None
        new: dict[str, Any] = {**state, technique: dict(idiom)}
        if technique == "block":
            del new["block"]
            new["parallel"] = {**state["parallel"], "block": idiom["block"], "block2": idiom["block2"]}
        return new

    def render(self, state: State) -> str:
        """The sequential code for the empty state, else the CUDA code."""
        raise NotImplementedError
