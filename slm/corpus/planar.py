"""Two-dimensional launches and tiles in shared memory."""

from __future__ import annotations

from slm.corpus.family import Family, State
from slm.corpus.idioms import Idiom


class Planar(Family):
    """A rows × columns output on a two-dimensional grid."""

    hopeless = frozenset(("private", "warp", "smem", "fuse"))

    def planar_state(self, state: State) -> str:
        del state
        return "grid2"

    def begin(self) -> None:
        rng = self.rng
        self.row = self.names.prefer(("r", "row", "i", "y"))
        self.column = self.names.prefer(("c", "col", "j", "x"))
        self.rows, self.columns = self.names.take("rows"), self.names.take("cols")
        self.dims = {self.rows: 45, self.columns: 71}
        self.size_type = "int"
        self.square = rng.choice((16, 16, 32))

    def threads(self, state: State) -> int:
        x, y = self.block(state)
        return x * y

    def block(self, state: State) -> tuple[int, int]:
        if "tile" in state:
            size = state["tile"]["size"]
            return size, size // state.get("regtile", {}).get("factor", state.get("coarsen", {}).get("factor", 1))
        x, y = state["parallel"]["block2"]
        return int(x), int(y)

    def position(self, state: State) -> list[str]:
        return [
            f"int {self.column} = {self.global_index(state)};",
            f"int {self.row} = {self.global_index(state, 'y')};",
        ]

    def inside(self, state: State, body: list[str], rows: str = "", columns: str = "") -> list[str]:
        rows, columns = rows or self.rows, columns or self.columns
        if state["parallel"]["guard"] == "return":
            return [f"if ({self.row} >= {rows} || {self.column} >= {columns}) return;", *body]
        return [f"if ({self.row} < {rows} && {self.column} < {columns}) {{", *body, "}"]

    def start(self, state: State) -> list[str]:
        x, y = self.block(state)
        block, grid = (self.word(w) for w in state["parallel"]["words"])
        if "tile" in state:
            size = self.tile_size(state)
            cover = f"({self.columns} + {size} - 1) / {size}, ({self.rows} + {size} - 1) / {size}"
            if not size.isdigit():
                shape = f"{size}, {size}" if y == x else f"{size}, {size} / {x // y}"
                return [
                    f"dim3 {block}({shape});",
                    f"dim3 {grid}({cover});",
                    f"{self.kernel_name(state)}<<<{grid}, {block}>>>({self.passed()});",
                ]
            cover = f"({self.columns} + {int(size) - 1}) / {size}, ({self.rows} + {int(size) - 1}) / {size}"
        elif state["parallel"]["launch"] in ("inline", "const"):
            cover = f"({self.columns} + {x - 1}) / {x}, ({self.rows} + {y - 1}) / {y}"
        else:
            cover = f"({self.columns} + {block}.x - 1) / {block}.x, ({self.rows} + {block}.y - 1) / {block}.y"
        return [
            f"dim3 {block}({x}, {y});",
            f"dim3 {grid}({cover});",
            f"{self.kernel_name(state)}<<<{grid}, {block}>>>({self.passed()});",
        ]

    def tile_size(self, state: State) -> str:
        return "TILE" if state["tile"]["spelled"] == "constant" else str(state["tile"]["size"])

    def shared(self, state: State, name: str, columns: str = "") -> str:
        size = self.tile_size(state)
        pad = state.get("pad", {}).get("by", 0)
        width = columns or size
        if pad:
            width = f"{width} + {pad}" if not width.isdigit() else str(int(width) + pad)
        return f"__shared__ {self.kind} {name}[{columns or size}][{width}];"

    def free_word(self, word: str) -> str:
        return word if self.names.free(word) and word not in (self.row, self.column) else word + "_l"

    def whole(self, state: State, kernel: list[str]) -> str:
        if "tile" in state and state["tile"]["spelled"] == "constant":
            self.constants.append(f"constexpr int TILE = {state['tile']['size']};")
            try:
                return self.cuda(state, [kernel], self.start(state))
            finally:
                self.constants.pop()
        return self.cuda(state, [kernel], self.start(state))

    def apply(self, state: State, technique: str, idiom: Idiom) -> State | None:
        if state and technique == "block" and state["parallel"]["block2"] == idiom["block2"]:
            return None
        if (
            technique in ("regtile", "coarsen")
            and state
            and "tile" in state
            and state["tile"]["size"] // idiom["factor"] < 2
        ):
            return None
        return super().apply(state, technique, idiom)
