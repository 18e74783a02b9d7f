"""Families with shared counters, prefixes and temporaries: histograms, scatters, scans, two-pass maps."""

from __future__ import annotations

from typing import ClassVar

from slm.corpus.expressions import text
from slm.corpus.family import Argument, Family, Shape, State
from slm.corpus.idioms import Idiom
from slm.corpus.vectors import vectorised


class Linear(Family):
    """One parallel loop over ``count`` elements."""

    hopeless = frozenset(("tile", "smem", "warp", "pad", "regtile"))

    def begin(self) -> None:
        self.count = self.names.take("size")
        self.dims = {self.count: 1003}
        self.variable = self.names.prefer(("i", "j", "idx", "t", "e"))

    def per(self, state: State) -> int:
        return int(state["coarsen"]["factor"]) if "coarsen" in state else 1

    def walkers(self, state: State) -> set[str]:
        return set() if {"gridstride", "coarsen"} & set(state) else {"gridstride", "coarsen"}

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        if state and technique == "block" and state["parallel"]["block"] == idiom["block"]:
            return None
        return super().apply(state, technique, idiom)


class Histogram(Linear):
    """counts[f(x[i])] += 1 or a weight, first for zeroed counts."""

    name = "histogram"
    kinds: ClassVar[tuple[str, ...]] = ("int",)

    def setup(self) -> None:
        rng = self.rng
        self.begin()
        self.a, self.out = self.names.take("input"), self.names.take("output")
        self.bins = rng.choice((16, 32, 64, 100, 128, 256))
        self.shown = str(self.bins)
        if rng.random() < 0.35:
            self.shown = self.names.prefer(("BINS", "NBINS", "K", "BUCKETS"))
            self.constants.append(
                rng.choice((f"constexpr int {self.shown} = {self.bins};", f"#define {self.shown} {self.bins}"))
            )
        load = f"{self.a}«{self.variable}»"
        n = self.shown
        self.place = rng.choice(
            (
                f"{load} % {n}",
                f"{load} / {rng.randint(2, 9)} % {n}",
                f"({load} + {rng.randint(1, 9)}) % {n}",
                f"{load} * {rng.randint(2, 9)} % {n}",
            )
        )
        inputs = [Argument("input", "int", self.a, self.count)]
        self.weight = "1"
        if rng.random() < 0.25:
            w = self.names.take("input")
            inputs.append(Argument("input", "int", w, self.count))
            self.weight = f"{w}«{self.variable}»"
        self.bin = self.names.prefer(("b", "bin", "slot", "k", "key")) if rng.random() < 0.5 else ""
        self.guard = ""
        if rng.random() < 0.2:
            self.guard = f"if ({load} {rng.choice('<>')} {rng.randint(5, 90)}) {{"
        self.zeroer = rng.choice(("k", "b", "j"))
        while not self.names.free(self.zeroer):
            self.zeroer += "0"
        self.names.used.add(self.zeroer)
        out = Argument("output", "int", self.out, str(self.bins))
        self.read = inputs
        self.arguments = [*inputs, out, *self.sized((self.count, self.count))]
        self.plus = rng.choice(("{}++;", "++{};", "{} += 1;")) if self.weight == "1" else "{} += " + self.weight + ";"

    def count_in(self, target: str, device: bool) -> list[str]:
        lines, place = [], self.place
        if self.bin:
            lines.append(f"int {self.bin} = {place};")
            place = self.bin
        if device:
            lines.append(f"atomicAdd(&{target}[{place}], {self.weight});")
        else:
            lines.append(self.plus.format(f"{target}[{place}]"))
        return [self.guard, *lines, "}"] if self.guard else lines

    def render(self, state: State) -> str:
        if not state:
            clear = [self.loop(self.zeroer, self.shown), f"{self.out}[{self.zeroer}] = 0;", "}"]
            return self.sequential(
                [
                    *clear,
                    self.loop(self.variable, self.count, kind=self.index_type()),
                    *self.count_in(self.out, False),
                    "}",
                ]
            )
        target = self.out
        before: list[str] = []
        after: list[str] = []
        if "private" in state:
            idiom = state["private"]
            target = idiom["name"] if self.names.free(idiom["name"]) else idiom["name"] + "_sh"
            k = idiom["loop"] if self.names.free(idiom["loop"]) else "slot_id"
            every = f"for (int {k} = threadIdx.x; {k} < {self.shown}; {k} += blockDim.x) {{"
            before = [f"__shared__ int {target}[{self.shown}];", every, f"{target}[{k}] = 0;", "}", "__syncthreads();"]
            after = ["__syncthreads();", every, f"atomicAdd(&{self.out}[{k}], {target}[{k}]);", "}"]
        body = self.count_in(target, True)
        walk = self.walk(state, Shape(self.count, lambda _: body, self.variable), last=not after)
        if "vec" in state:
            walk = vectorised(self, state, self.count, self.variable, self.read, (), body)
        host = [f"cudaMemset({self.out}, 0, {self.shown} * sizeof(int));"]
        return self.cuda(
            state,
            [self.kernel(state, [*before, *walk, *after])],
            host + self.launch(state, self.count, per=4 if "vec" in state else self.per(state)),
        )

    def techniques(self, state: State) -> set[str]:
        found = self.common(state, "") | {"private"}
        if "vec" not in state:
            found |= self.walkers(state)
            if self.walkers(state) and self.size_type == "int":
                found.add("vec")
        if state.get("gridstride", {}).get("loop") == "while":
            found.discard("unroll")
        return found - (set(state) - {"block"})


class TwoPass(Linear):
    """Two maps with a temporary between them; fusion keeps the value in a register."""

    name = "twopass"
    kinds: ClassVar[tuple[str, ...]] = ("float",) * 4 + ("double", "int")

    def setup(self) -> None:
        rng = self.rng
        self.begin()
        self.inputs = [self.names.take("input") for _ in range(rng.randint(1, 3))]
        self.out = self.names.take("output")
        self.temporary = self.names.prefer(("tmp", "temp", "mid", "scratch", "buf"))
        split = max(1, len(self.inputs) - 1)
        self.scalars = [self.names.take("scalar") for _ in range(rng.choice((0, 1)))]

        def leaf(name: str) -> str:
            return f"{name}«{self.variable}»"

        self.firsts, self.seconds = self.inputs[:split], self.inputs[split:]
        self.first = text(rng, self.kind, [leaf(n) for n in self.firsts])
        self.second = text(rng, self.kind, ["§", *(leaf(n) for n in self.seconds), *self.scalars])
        arrays = [
            *(Argument("input", self.kind, n, self.count) for n in self.inputs),
            Argument("output", self.kind, self.out, self.count),
        ]
        scalars = [Argument("scalar", self.kind, n) for n in self.scalars]
        self.arguments = [*arrays, *scalars, *self.sized((self.count, self.count))]
        self.by_vector = rng.random() < 0.5

    def render(self, state: State) -> str:
        kind, i, tmp = self.kind, self.variable, self.temporary
        one = [f"{tmp}[{i}] = {self.first};"]
        two = [f"{self.out}[{i}] = {self.second.replace('§', f'{tmp}[{i}]')};"]
        if not state:
            loop = self.loop(i, self.count, kind=self.index_type())
            if self.by_vector:
                if "vector" not in self.extra_includes:
                    self.extra_includes.append("vector")
                return self.sequential([f"std::vector<{kind}> {tmp}({self.count});", loop, *one, "}", loop, *two, "}"])
            return self.sequential(
                [f"{kind}* {tmp} = new {kind}[{self.count}];", loop, *one, "}", loop, *two, "}", f"delete[] {tmp};"]
            )
        if "fuse" in state:
            v = state["fuse"]["value"]
            v = v if self.names.free(v) else v + "_one"
            fused = [f"{kind} {v} = {self.first};", f"{self.out}[{i}] = {self.second.replace('§', v)};"]
            walk = self.walk(state, Shape(self.count, lambda _: fused, i))
            return self.cuda(state, [self.kernel(state, walk)], self.launch(state, self.count, per=self.per(state)))
        pointer = f"{kind}* {tmp}"
        size = f"{self.size_type} {self.count}"
        names_a = self.signature(state, self.firsts)
        names_b = self.signature(state, [*self.seconds, self.out, *self.scalars])
        kernel = self.kernel_name(state)
        first = self.kernel(
            state,
            self.walk(state, Shape(self.count, lambda _: one, i)),
            name=f"{kernel}_1",
            signature=f"{names_a}, {pointer}, {size}",
        )
        second = self.kernel(
            state,
            self.walk(state, Shape(self.count, lambda _: two, i)),
            name=f"{kernel}_2",
            signature=f"const {pointer}, {names_b}, {size}",
        )
        host = [f"{pointer};", f"cudaMalloc(&{tmp}, {self.count} * sizeof({kind}));"]
        host += self.launch(
            state, self.count, kernel=f"{kernel}_1", passed=f"{', '.join(self.firsts)}, {tmp}, {self.count}"
        )
        host += self.launch(
            state,
            self.count,
            kernel=f"{kernel}_2",
            passed=f"{tmp}, {self.passed([*self.seconds, self.out, *self.scalars])}, {self.count}",
            declare=False,
        )
        return self.cuda(state, [first, second], [*host, f"cudaFree({tmp});"])

    def techniques(self, state: State) -> set[str]:
        found = self.common(state, self.first + " " + self.second)
        if "fuse" not in state:
            found.add("fuse")
        else:
            found |= self.walkers(state)
        if state.get("gridstride", {}).get("loop") == "while":
            found.discard("unroll")
        return found - (set(state) - {"block"})


class Scatter(Linear):
    """out[index[i]] = f(x[i]) over a permutation, or sums by key."""

    name = "scatter"

    def setup(self) -> None:
        rng = self.rng
        self.begin()
        self.a, self.out = self.names.take("input"), self.names.take("output")
        self.table = self.names.prefer(("idx", "indices", "perm", "map", "keys", "segment"))
        self.sums = rng.random() < 0.5 and self.kind != "double"
        self.value = (
            f"{self.a}«{self.variable}»" if rng.random() < 0.4 else text(rng, self.kind, [f"{self.a}«{self.variable}»"])
        )
        self.groups = self.names.take("inner") if self.sums else self.count
        if self.sums:
            self.dims[self.groups] = 17
        self.zeroer = self.names.prefer(("k", "g", "j", "b"))
        out = Argument("output", self.kind, self.out, self.groups)
        table = Argument("input", "int", self.table, self.count, self.groups)
        data = Argument("input", self.kind, self.a, self.count)
        self.arguments = [
            *([table, data] if rng.random() < 0.5 else [data, table]),
            out,
            *self.sized(*((n, n) for n in dict.fromkeys((self.count, self.groups)))),
        ]
        if not self.sums:
            self.arguments = [
                Argument(a.kind, a.type, a.name, a.size, "permutation:" + self.count if a is table else "")
                for a in self.arguments
            ]

    def render(self, state: State) -> str:
        place = f"{self.table}«{self.variable}»"
        if not state:
            if not self.sums:
                return self.sequential(
                    [
                        self.loop(self.variable, self.count, kind=self.index_type()),
                        f"{self.out}[{place}] = {self.value};",
                        "}",
                    ]
                )
            clear = [
                self.loop(self.zeroer, self.groups, kind=self.index_type()),
                f"{self.out}[{self.zeroer}] = {self.zero};",
                "}",
            ]
            return self.sequential(
                [
                    *clear,
                    self.loop(self.variable, self.count, kind=self.index_type()),
                    f"{self.out}[{place}] += {self.value};",
                    "}",
                ]
            )
        body = (
            [f"{self.out}[{place}] = {self.value};"]
            if not self.sums
            else [f"atomicAdd(&{self.out}[{place}], {self.value});"]
        )
        host = [f"cudaMemset({self.out}, 0, {self.groups} * sizeof({self.kind}));"] if self.sums else []
        walk = self.walk(state, Shape(self.count, lambda _: body, self.variable))
        return self.cuda(state, [self.kernel(state, walk)], host + self.launch(state, self.count, per=self.per(state)))

    def techniques(self, state: State) -> set[str]:
        found = self.common(state, self.value) | self.walkers(state)
        if state.get("gridstride", {}).get("loop") == "while":
            found.discard("unroll")
        return found - (set(state) - {"block"})
