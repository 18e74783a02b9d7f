"""The place of the largest or smallest of every row: value and index travel together through a block or a warp."""

from __future__ import annotations

from typing import ClassVar

from slm.corpus.blocks import identity
from slm.corpus.family import State
from slm.corpus.work import Work


class Pick(Work):
    """Arguments of extrema over rows, of an expression, among the allowed, with what was found."""

    name = "pick"
    manner: ClassVar[str] = "pick"
    hopeless = frozenset(("private", "pad", "fuse"))

    def make(self) -> None:
        rng, num = self.rng, self.number
        rows, cols = self.size(61, "rows n batch m queries"), self.size(83, "cols width classes k d")
        r, self.j = self.name_of("r row i b q"), self.name_of("c j col k0 p")
        self.axes, self.bound = [(r, rows)], cols
        x = self.array("x scores logits data in", rows, cols)
        here = (self.j, cols)
        load = f"{x}«{self.at((r, rows), here)}»"
        if rng.random() < 0.4:
            line = self.local_pointer(1, "line row_x src p0", x, self.at((r, rows), ("0", cols)).removesuffix(" + 0"))
            load = f"{line}«{self.j}»"
        roll = rng.random()
        if roll < 0.25:
            y = self.array("bias w prior", cols)
            load = f"{load} {rng.choice('+*')} {y}«{self.j}»"
        elif roll < 0.4:
            load = f"@abs({load} - {self.factor('target centre level')})"
        elif roll < 0.5:
            load = f"{load} * {load} + {num(0.5)} * {load}"
        self.op = rng.choice(("max", "max", "min"))
        self.best, self.where, self.v = (
            self.name_of("best top value0 mx"),
            self.name_of("where arg index0 at best_j"),
            self.name_of("v val x0 s"),
        )
        self.value = load
        self.test = ""
        if rng.random() < 0.25:
            mask = self.array("mask allowed keep", cols, type="int")
            self.test = f"{mask}«{self.j}» % 5 != 0"
        self.ends = [f"{self.result('index arg out labels', rows, type='int')}[{r}] = {self.where};"]
        if rng.random() < 0.55:
            self.ends.append(f"{self.result('best_out values peak', rows)}[{r}] = {self.best};")
        if rng.random() < 0.3:
            self.ends.reverse()
        self.plain = self.search("0", "1")

    def search(self, start: str, step: str) -> list[str]:
        sign = ">" if self.op == "max" else "<"
        low = identity(self.op, self.kind, self.zero, self.taste)
        head = (
            self.loop(self.j, self.bound)
            if step == "1"
            else f"for (int {self.j} = {start}; {self.j} < {self.bound}; {self.j} += {step}) {{"
        )
        look = [f"{self.quiet}{self.kind} {self.v} = {self.value};"]
        look += [f"if ({self.v} {sign} {self.best}) {{", f"{self.best} = {self.v};", f"{self.where} = {self.j};", "}"]
        if self.test:
            look = [f"if ({self.test}) {{", *look, "}"]
        lines = [f"{self.kind} {self.best} = {low};", f"int {self.where} = 0;", "@unroll", head, *look, "}"]
        return lines if step != "1" else [*lines, *self.ends]

    def takes(self, value: str, index: str) -> str:
        sign = ">" if self.op == "max" else "<"
        return f"if ({value} {sign} {self.best} || ({value} == {self.best} && {index} < {self.where})) {{"

    def shareable(self) -> bool:
        return True

    def techniques(self, state: State) -> set[str]:
        found = super().techniques(state) - {"regtile"}
        if not {"gridstride", "coarsen", "smem", "warp"} & set(state):
            found |= {"smem", "warp"}
        return found

    def alike(self, technique: str) -> str:
        return self.name if technique in ("smem", "warp") else ""

    def apply(self, state: State, technique: str, idiom: dict[str, object]) -> State | None:
        self.around = [(self.j, self.bound)]  # what the base asks before it lets a block share a row
        try:
            return super().apply(state, technique, idiom)
        finally:
            self.around = []

    def shared_sum(self, state: State) -> str:
        warp = "warp" in state
        idiom = state["warp" if warp else "smem"]
        (row, rows), threads = self.axes[0], self.threads(state)
        other, index = self.word("other"), self.word("other_at")
        if warp:
            offset = self.word(idiom["offset"])
            lines = [
                f"int {row} = ({self.global_index(state)}) / 32;",
                "int lane = threadIdx.x % 32;",
                f"if ({row} >= {rows}) return;",
                *self.heads,
                *self.search("lane", "32"),
                f"for (int {offset} = 16; {offset} > 0; {offset} >>= 1) {{",
                f"{self.kind} {other} = __shfl_{idiom['op']}_sync({idiom['mask']}, {self.best}, {offset});",
                f"int {index} = __shfl_{idiom['op']}_sync({idiom['mask']}, {self.where}, {offset});",
                self.takes(other, index),
                f"{self.best} = {other};",
                f"{self.where} = {index};",
                "}",
                "}",
                "if (lane == 0) {",
                *self.ends,
                "}",
            ]
            per_block = threads // 32
            fixed = f"({rows} + {per_block - 1}) / {per_block}"
            return self.cuda(state, [self.kernel(state, lines)], self.launch(state, rows, fixed=fixed))
        shared = self.word(idiom["name"])
        places, tid, step = self.word(f"{idiom['name']}_at"), self.word(idiom["tid"]), self.word(idiom["step"])
        tid = tid if tid != step else "thread_id"
        lines = [
            f"__shared__ {self.kind} {shared}[{threads}];",
            f"__shared__ int {places}[{threads}];",
            f"int {row} = blockIdx.x;",
            f"int {tid} = threadIdx.x;",
            *self.heads,
            *self.search(tid, "blockDim.x"),
            f"{shared}[{tid}] = {self.best};",
            f"{places}[{tid}] = {self.where};",
            "__syncthreads();",
            f"for (int {step} = blockDim.x / 2; {step} > 0; {step} {idiom['divide']}) {{",
            f"if ({tid} < {step}) {{",
            f"{self.kind} {other} = {shared}[{tid} + {step}];",
            f"int {index} = {places}[{tid} + {step}];",
            self.takes(other, index),
            f"{self.best} = {other};",
            f"{self.where} = {index};",
            f"{shared}[{tid}] = {other};",
            f"{places}[{tid}] = {index};",
            "}",
            "}",
            "__syncthreads();",
            "}",
            f"if ({tid} == 0) {{",
            *self.ends,
            "}",
        ]
        return self.cuda(state, [self.kernel(state, lines)], self.launch(state, rows, fixed=rows))
