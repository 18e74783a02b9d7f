"""Reductions of a whole array to one value."""

from __future__ import annotations

import re

from slm.corpus.blocks import TASTES, Reducing, combine, identity, shuffle, tree, warp_function
from slm.corpus.expressions import condition, literal, text
from slm.corpus.family import WIDE, Argument, Shape, State
from slm.corpus.idioms import Idiom
from slm.corpus.vectors import vectorised


class Reduction(Reducing):
    """Sums, extrema and counts of an expression over all elements, into element 0 of the output."""

    name = "reduction"

    def setup(self) -> None:
        rng = self.rng
        self.count = self.names.take("size")
        self.dims = {self.count: 2053}
        self.variable = self.names.prefer(("i", "j", "k", "idx", "t"))
        self.value = self.names.prefer(("sum", "acc", "s", "total", "result", "best"))
        self.inputs = [
            Argument("input", self.kind, self.names.take("input"), self.count)
            for _ in range(rng.choice((1, 1, 2, 2, 3)))
        ]
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
            return [
                f"{'const ' if rng.random() < 0.5 else ''}@kind {d} = {wide(leaves[0])} - {leaves[1]};".replace(
                    "@kind", f"«{kind_d}»"
                ),
                f"{acc} += {rng.choice((f'{d} * {d}', f'@abs({d})' if not self.widened else f'{d} * {d}'))};",
            ]
        if roll < 0.6:
            test = condition(rng, kind, leaves[0])
            self.simple = False
            return [
                f"if ({test}) {{",
                f"{acc} += {wide(leaves[-1])};"
                if rng.random() < 0.6
                else f"{acc} += {'1' if kind == 'int' else literal(rng, kind)};",
                "}",
            ]
        if roll < 0.7:
            self.inputs = self.inputs[:1]
            return [f"{acc} += {wide(leaves[0])}{rng.choice(('', f' * {leaves[0]}'))};"]
        return [f"{acc} += {text(rng, kind, leaves)};"]

    def first_value(self) -> str:
        """The updated expression at element 0."""
        line = self.update[-1]
        match = re.fullmatch(rf"{self.value} = @\w+\({self.value}, (.*)\);", line) or re.fullmatch(
            rf"{self.value} = (.*) [<>] {self.value} \? .*;", line
        )
        assert match is not None, line
        return re.sub(rf"«{self.variable}»", "«0»", match[1])

    def device_update(self) -> list[str]:
        return [
            line.replace("«double»", self.kind).replace("«float»", self.kind).replace("«int»", self.kind)
            for line in self.update
        ]

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
                final = (
                    f"static_cast<float>({final})"
                    if self.style.math == "std"
                    else f"(float)({final})"
                    if " " in final
                    else f"(float){final}"
                )
            update = [
                line.replace(f"«{acc_kind}»", acc_kind)
                .replace("«float»", kind)
                .replace("«int»", kind)
                .replace("«double»", kind if not self.widened else "double")
                for line in self.update
            ]
            body = [
                f"{acc_kind} {self.value} = {start};",
                self.loop(self.variable, self.count, begin, kind=self.index_type()),
                *update,
                "}",
                f"{self.out}[0] = {final};",
            ]
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
            return self.cuda(
                state, [self.kernel(state, lines)], host + self.launch(state, self.count, per=self.per(state))
            )
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
        lines = [
            f"{kind} {self.value} = {identity(self.op, kind, self.zero, self.taste)};",
            *self.gather(state, update),
        ]
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
                f"__shared__ {kind} warp_part[32];",
                *lines,
                *reduce,
                "if (threadIdx.x % 32 == 0) {",
                f"warp_part[threadIdx.x / 32] = {self.value};",
                "}",
                "__syncthreads();",
                "if (threadIdx.x < 32) {",
                f"{self.value} = threadIdx.x < blockDim.x / 32 ? warp_part[threadIdx.x] : {empty};",
                *reduce,
                "if (threadIdx.x == 0) {",
                write,
                "}",
                "}",
            ]
        else:
            idiom = state["smem"]
            shared, tid = self.local_names(idiom)
            value = self.final_of(f"{shared}[0]")
            final = f"atomicAdd({self.out}, {value});" if self.shared == "atomic" else f"{self.out}[0] = {value};"
            lines = [
                f"__shared__ {kind} {shared}[{self.threads(state)}];",
                f"int {tid} = threadIdx.x;",
                *lines,
                f"{shared}[{tid}] = {self.value};",
                "__syncthreads();",
                *tree(idiom, self.op, shared, tid),
                f"if ({tid} == 0) {{",
                final,
                "}",
            ]
        if self.shared == "single":
            return self.cuda(
                state, [self.kernel(state, lines)], host + self.launch(state, self.count, fixed="1"), devices
            )
        per = self.per(state)
        return self.cuda(state, [self.kernel(state, lines)], host + self.launch(state, self.count, per=per), devices)

    def final_of(self, value: str) -> str:
        """What goes into the output, for ``value`` in the accumulator's place."""
        return re.sub(rf"\b{self.value}\b", lambda _: value, self.final, count=1)

    def per(self, state: State) -> int:
        return int(state["coarsen"]["factor"] if "coarsen" in state else WIDE[self.kind][1] if "vec" in state else 1)

    def gather(self, state: State, update: list[str]) -> list[str]:
        """Each thread's own part."""
        if self.shared == "single" and "gridstride" not in state:
            v = self.variable
            start = f"for ({self.index_type()} {v} = threadIdx.x; {v} < {self.count}; {v} += blockDim.x) {{"
            return ["@outer_unroll", start, *update, "}"]
        if "vec" not in state:
            return self.walk(state, Shape(self.count, lambda _: update, self.variable), last=False)
        return vectorised(self, state, self.count, self.variable, self.inputs, (), update)

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
        if (
            state
            and technique == "block"
            and (state["parallel"]["block"] == idiom["block"] or idiom["block"] & (idiom["block"] - 1))
        ):
            return None
        if technique == "smem" and state:
            idiom = {**idiom, "block": state["parallel"]["block"]}
        if technique in ("smem", "warp") and state:
            idiom = {**idiom, "hidden": state["smem"].get("hidden", False) if "smem" in state else self.hides()}
        new = super().apply(state, technique, idiom)
        if new and "warp" in new:
            new.pop("smem", None)
        return new
