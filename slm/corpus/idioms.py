"""The idiom of a technique: the ways in which people write it. The first choice of each is the model's own."""

from __future__ import annotations

import random
from typing import Any

Idiom = dict[str, Any]

# Techniques that a first step may apply together with the parallelisation.
DIRECT = frozenset(("gridstride", "coarsen", "vec", "smem", "warp", "tile", "private", "fuse"))
COMMON_BLOCKS = (256, 128, 512, 64, 1024, 192, 96)
BLOCKS_2D = ((16, 16), (32, 8), (32, 16), (8, 8), (32, 4), (64, 4), (16, 8))
IDIOMS: dict[str, dict[str, tuple[Any, ...]]] = {
    "parallel": {
        "block": (256, 128, 512, 64, 1024),
        "block2": BLOCKS_2D,
        "swap": (False, True),  # threadIdx.x + blockIdx.x * blockDim.x
        "guard": ("if", "return"),
        "launch": ("named", "inline", "const", "dim3"),
        "kernel": ("{}_kernel", "k_{}", "{}Kernel", "{}_gpu", "{}_cuda"),
        "words": (
            ("threads", "blocks"),
            ("block", "grid"),
            ("block_size", "grid_size"),
            ("tpb", "nblk"),
            ("BLOCK", "GRID"),
        ),
        "index": ("i", "idx", "tid", "gid"),
        "flat": (False, True),
        "sync": (False, False, True),
        "memset": ("cudaMemset",),
    },
    "gridstride": {
        "loop": ("inline", "named", "while"),
        "stride": ("stride", "step", "total"),
        "cap": (1024, 4096, 256, 65535, 0),
    },
    "block": {"block": COMMON_BLOCKS, "block2": BLOCKS_2D},
    "restrict": {"outputs": (True, False)},
    "ldg": {"form": ("&a[i]", "a + i")},
    "vec": {"cast": ("reinterpret", "c"), "tail": ("threads", "loop"), "index": ("i", "v", "q")},
    "coarsen": {
        "factor": (4, 2, 8),
        "apart": ("block", "chunk"),
        "words": (("base", "k"), ("start", "j"), ("first", "u")),
    },
    "unroll": {"pragma": ("#pragma unroll", "#pragma unroll 4", "#pragma unroll 2", "#pragma unroll 8")},
    "fast": {},
    "fma": {},
    "bounds": {"minimum": (0, 2, 4)},
    "hoist": {"name": ("acc", "sum", "value")},
    "smem": {
        "name": ("sdata", "sm", "cache", "partial", "shared"),
        "step": ("s", "half", "offset"),
        "tid": ("tid", "t", "lane"),
        "divide": (">>= 1", "/= 2"),
        "block": (256, 128, 512),
    },
    "warp": {
        "op": ("down", "xor"),
        "mask": ("0xffffffff", "0xffffffffu", "FULL_MASK"),
        "offset": ("offset", "o", "delta"),
        "where": ("inline", "function"),
        "rows": ("warp", "block"),
    },
    "tile": {
        "size": (16, 32, 8),
        "name": ("tile", "s", "sh", "buf"),
        "spelled": ("literal", "constant"),
        "ty": (("tx", "ty"), ("x", "y"), ("lx", "ly")),
    },
    "pad": {"by": (1, 1, 2)},
    "regtile": {"factor": (4, 2), "name": ("acc", "sum", "r")},
    "private": {"name": ("local", "hist", "bins_s", "sh"), "loop": ("b", "k", "t")},
    "fuse": {"value": ("v", "mid", "t")},
}


def canonical(technique: str) -> Idiom:
    return {key: choices[0] for key, choices in IDIOMS[technique].items()}


def draw(rng: random.Random, technique: str, plain: float = 0.3) -> Idiom:
    """A random idiom; each field is the model's own one with probability ``plain``."""
    return {
        key: choices[0] if rng.random() < plain else rng.choice(choices) for key, choices in IDIOMS[technique].items()
    }
