"""Names for functions, arrays, sizes and locals: common words, pieces of the tokenizer, random letters."""

from __future__ import annotations

import keyword
import random
from collections.abc import Sequence

ROLES: dict[str, list[str]] = {
    role: words.split()
    for role, words in {
        "input": "a b c d x y z u v w p q in src data input arr vec lhs rhs left right first second values signal "
        "samples field image feat weight weights coeff bias scores mask A B C X Y Q K V keys points mat logits "
        "targets labels pred query table grid_in px py pos vel mass f g h t0 src1 src2 hist_in",
        "output": "out dst result res o y output ret target acc_out dest z OUT C Y sums result_out O grad_out counts",
        "size": "n N len size count total num length numel nnz",
        "rows": "rows m M height h nr H num_rows R batch B nrows heads b T seq",
        "cols": "cols n N width w nc W num_cols C dim D ncols channels hidden features",
        "inner": "k K depth inner kdim taps classes d P S steps nk head_dim length",
        "scalar": "alpha beta gamma s scale factor eps shift gain lambda offset tau k0 lr decay rho mu threshold "
        "lo hi slope momentum dt theta limit",
        "verb": "apply compute run solve process transform update calc eval step forward map reduce count find scan",
        "noun": "add mul blend mix axpy norm sum dot loss score gate act relu filter scale clip total energy error "
        "weight row col tile image signal bins merge pair softmax matmul conv pool distance force attention "
        "gradient potential heat stencil batch mean variance histogram prefix argmax gather scatter rotate lookup",
        "local": "v val value t tmp temp acc sum total best cur prev diff dist d x0 x1 y0 y1 p0 q1 w0 u1 hi lo dx dy "
        "m1 sq num den lhs_v rhs_v delta mean var norm r2 s0 s1 e0 part count score left_v right_v mid",
    }.items()
}
RESERVED = frozenset(
    [
        "alignas",
        "alignof",
        "and",
        "asm",
        "auto",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "class",
        "const",
        "continue",
        "default",
        "delete",
        "do",
        "double",
        "else",
        "enum",
        "explicit",
        "extern",
        "false",
        "float",
        "for",
        "friend",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "namespace",
        "new",
        "not",
        "operator",
        "or",
        "private",
        "protected",
        "public",
        "register",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "template",
        "this",
        "throw",
        "true",
        "try",
        "typedef",
        "typename",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "while",
        "xor",
        "min",
        "max",
        "abs",
        "exp",
        "log",
        "sin",
        "cos",
        "sqrt",
        "pow",
        "tanh",
        "floor",
        "ceil",
        "fabs",
        "fma",
        "erf",
        "gamma",
        "y0",
        "y1",
        "j0",
        "j1",
        "jn",
        "yn",
        "dim3",
        "block",
        "grid",
        "threads",
        "blocks",
        "main",
        "std",
        "log2",
        "exp2",
        "index",
        "signal",
        "time",
        "lambda",
        "remainder",
        "round",
        "trunc",
        "div",
        "free",
        "read",
        "write",
        "link",
        "near",
        "far",
        "half",
        "near",
        "random",
        "remove",
        "rename",
        "rint",
        "lane",
        "warp_part",
        "warp_sum",
        "warp_max",
        "warp_min",
        "TILE",
        "FULL_MASK",
        "ok",
        "float4",
        "int4",
        "double2",
        "blockIdx",
        "blockDim",
        "threadIdx",
        "gridDim",
        "INFINITY",
        "NULL",
        "true",
        "asin",
        "asinh",
        "asinhf",
        "atan",
        "atanf",
        "cbrt",
        "cbrtf",
        "cosf",
        "erff",
        "expf",
        "fabsf",
        "floorf",
        "fmaf",
        "fmax",
        "fmaxf",
        "fmin",
        "fminf",
        "logf",
        "roundf",
        "sinf",
        "sqrtf",
        "rsqrtf",
        "tanhf",
        "truncf",
        "memcpy",
        "constexpr",
    ]
)
HEADERS = frozenset(("norm", "select", "exit", "puts"))  # functions of the headers, good names for anything else
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Names:
    """Draws names that were not drawn before; ``pieces`` are words of the tokenizer."""

    def __init__(self, rng: random.Random, pieces: Sequence[str]) -> None:
        self.rng = rng
        self.pieces = pieces
        self.used: set[str] = set()

    def _letters(self, low: int, high: int) -> str:
        return "".join(self.rng.choice(LETTERS) for _ in range(self.rng.randint(low, high)))

    def invented(self) -> str:
        """A name of a kind no list holds: pieces joined in snake or camel case, letters, digits."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.55 and self.pieces:
            parts = [rng.choice(self.pieces) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
            if rng.random() < 0.6:
                word = "_".join(parts)
            else:
                word = parts[0] + "".join(p[:1].upper() + p[1:] for p in parts[1:])
        elif kind < 0.75:
            word = self._letters(1, 7)
        elif kind < 0.88:
            word = rng.choice(LETTERS + LETTERS.upper()) + (str(rng.randint(0, 30)) if rng.random() < 0.6 else "")
        else:
            word = self._letters(2, 5) + "_" + self._letters(1, 6)
        if word[0].isdigit():
            word = "v" + word
        return word

    def free(self, word: str) -> bool:
        return word not in self.used and word not in RESERVED and not word.startswith("__")

    def take(self, role: str, invented: float = 0.3) -> str:
        rng = self.rng
        while True:
            if role == "function":
                kind = rng.random()
                nouns = ROLES["noun"]
                if kind < 0.35:
                    word = f"{rng.choice(nouns)}_{rng.choice(nouns)}"
                elif kind < 0.6:
                    word = f"{rng.choice(ROLES['verb'])}_{rng.choice(nouns)}"
                elif kind < 0.7:
                    word = rng.choice(nouns)
                else:
                    word = self.invented()
                if rng.random() < 0.15:
                    word += rng.choice(("2", "_f32", "_v2", "1d", "_2d", "_all", "_rows", "3", "_fp32"))
            else:
                word = self.invented() if rng.random() < invented else rng.choice(ROLES[role])
                if rng.random() < 0.1:
                    word += rng.choice(("1", "2", "_in", "_v", "_buf", "_ptr", "0", "_d", "_k"))
                if role in ("size", "rows", "cols", "inner") and rng.random() < 0.1:
                    word = rng.choice(("num_", "n_")) + word
            # the judge reads a shape as a Python expression over the sizes
            unreadable = role in ("size", "rows", "cols", "inner") and keyword.iskeyword(word)
            if self.free(word) and not unreadable and not (role == "function" and word in HEADERS):
                self.used.add(word)
                return word

    def prefer(self, words: Sequence[str]) -> str:
        """The first choice half of the time, else another of ``words``, else an invented one."""
        rng = self.rng
        pool = [w for w in words if self.free(w)]
        if pool and rng.random() < 0.85:
            word = pool[0] if rng.random() < 0.5 else rng.choice(pool)
        else:
            word = self.invented()
            while not self.free(word):
                word = self.invented()
        self.used.add(word)
        return word
