"""Sums and extrema across a block or a warp, and what families of reductions share."""

from __future__ import annotations

from typing import Any

from slm.corpus.family import Family, State
from slm.corpus.idioms import Idiom, canonical

LARGE = {"float": "1e30f", "double": "1e300", "int": "2000000000"}


TASTES = ("large", "infinity", "limit", "first", "first")  # first: sequential code starts from the first element


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
        f"for (int {step} = blockDim.x / 2; {step} > 0; {step} {idiom['divide']}) {{",
        f"if ({tid} < {step}) {{",
        combine(op, f"{shared}[{tid}]", f"{shared}[{tid} + {step}]"),
        "}",
        "__syncthreads();",
        "}",
    ]


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

    def local_names(self, idiom: Idiom) -> tuple[str, str]:
        taken = self.names.used | {str(idiom["step"])}
        shared = idiom["name"] if idiom["name"] not in taken else idiom["name"] + "_mem"
        tid = idiom["tid"] if idiom["tid"] not in taken else "thread_id"
        return shared, tid
