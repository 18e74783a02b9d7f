"""The techniques' names, from ``ingest/techniques.toml``, and sentences that say how one is applied."""

from __future__ import annotations

import random
import tomllib
from functools import cache
from pathlib import Path

from slm.corpus.idioms import Idiom

NAMES: dict[str, tuple[str, ...]] = {
    "parallel": ("thread parallelization", "two dimensional thread mapping"),
    "gridstride": ("grid stride loop",),
    "block": ("block size tuning",),
    "restrict": ("pointer restriction",),
    "ldg": ("read only data cache",),
    "vec": ("vectorized memory access",),
    "coarsen": ("thread coarsening",),
    "unroll": ("loop unrolling",),
    "fast": ("fast math intrinsic",),
    "fma": ("fused multiply add",),
    "bounds": ("launch bound",),
    "smem": ("parallel reduction", "block per row"),
    "warp": ("warp shuffle reduction", "warp per row", "warp shuffle"),
    "tile": ("shared memory tiling", "halo caching"),
    "pad": ("bank conflict avoidance",),
    "regtile": ("register tiling",),
    "private": ("privatization",),
    "fuse": ("kernel fusion", "loop fusion"),
}
# Words that a person may use where the table has none; {x} are fields of the idiom that the answer must follow.
DETAILS: dict[str, tuple[str, ...]] = {
    "parallel": (
        "map each output element to one CUDA thread",
        "one thread per element with a bounds check",
        "replace the sequential loop by a kernel, one iteration a thread",
        "the thread index replaces the loop variable",
        "launch enough blocks to cover all elements",
        "{block} threads a block, one element each",
        "map every output to one thread, blocks of {block} threads",
        "one thread per output; {block} threads per block",
    ),
    "gridstride": (
        "let each thread walk the data with the whole grid as its stride",
        "loop with stride blockDim.x * gridDim.x",
        "each thread advances by the whole grid until the end",
        "cap the grid at {cap} blocks and loop over the rest",
        "use a grid-stride loop",
        "at most {cap} blocks; each thread strides over the data",
    ),
    "block": (
        "use {block} threads per block",
        "change the block size to {block}",
        "blocks of {block} threads",
        "retune the launch configuration",
        "only the launch configuration changes",
    ),
    "restrict": (
        "mark the pointers __restrict__",
        "tell the compiler that the pointers do not alias",
        "add __restrict__ to the kernel parameters",
    ),
    "ldg": ("load the inputs through __ldg", "use the read-only data cache for the inputs", "read inputs with __ldg"),
    "vec": (
        "load and store several elements at once with a vector type and handle the tail",
        "use 16-byte accesses; the tail is scalar",
        "float4, int4 or double2 loads and stores",
        "one vector per thread, the last elements one by one",
    ),
    "coarsen": (
        "each thread handles {factor} elements",
        "let every thread process {factor} elements",
        "several elements per thread",
        "give each thread more work",
        "{factor} outputs per thread",
    ),
    "unroll": (
        "unroll the loop with #pragma unroll",
        "ask the compiler to unroll the inner loop",
        "{pragma} before the loop",
        "add an unroll pragma",
    ),
    "fast": (
        "replace the math functions by the fast intrinsics",
        "use __expf, __logf, __sinf or __cosf",
        "hardware approximations for exp, log, sin and cos",
    ),
    "fma": (
        "write multiply and add as one fused operation",
        "use fma for a * b + c",
        "contract the product and the sum",
    ),
    "bounds": (
        "add __launch_bounds__ to the kernel",
        "tell the compiler the block size with __launch_bounds__",
        "bound registers by the launch configuration",
    ),
    "smem": (
        "reduce in shared memory inside each block",
        "tree reduction over the block in shared memory",
        "partial results meet in shared memory in a halving tree",
        "each block reduces its part in shared memory",
        "{block} threads a block combine their values in a tree",
    ),
    "warp": (
        "reduce inside each warp with shuffles",
        "use __shfl_{op}_sync instead of shared memory",
        "replace the tree by warp shuffles",
        "sum across the lanes of a warp with shuffle instructions",
        "warp-level primitives combine the partial values",
    ),
    "tile": (
        "stage the data in a shared memory tile",
        "load tiles of {size}x{size} into shared memory and reuse them",
        "cache the block's input in shared memory",
        "cooperative load into __shared__ memory, then compute from it",
        "tile the computation with shared memory",
    ),
    "pad": (
        "pad the shared tile to avoid bank conflicts",
        "add a column to the shared array",
        "skew the tile by padding of {by}",
    ),
    "regtile": (
        "each thread computes {factor} outputs in registers",
        "keep {factor} accumulators per thread",
        "several rows per thread held in registers",
    ),
    "private": (
        "count into a private histogram in shared memory, then merge",
        "each block has its own bins in shared memory",
        "privatise the counters per block and merge with atomics",
    ),
    "fuse": (
        "merge the two passes and drop the temporary buffer",
        "fuse producer and consumer into one kernel",
        "keep the intermediate value in a register",
    ),
}
# How people call the first step: by what one thread does.
THREADS = (
    "one thread per {noun}",
    "thread per {noun}",
    "one {noun} per thread",
    "a thread for each {noun}",
    "{noun}-per-thread parallelization",
    "thread-per-{noun} mapping",
    "thread-per-{noun} kernel",
    "naive per-{noun} kernel",
    "mapping of {noun}s to threads",
    "parallelize over {noun}s",
    "parallel loop over {noun}s",
    "naive parallelization",
    "basic CUDA kernel",
    "plain CUDA port",
    "first parallel version",
    "straight port to the GPU",
    "elementwise kernel",
    "parallel map",
)
NOUNS = (
    "element", "item", "output", "row", "column", "pixel", "point", "cell", "entry", "value", "sample", "vertex",
    "word", "particle", "query", "channel", "token", "pair", "position", "node", "slice", "record", "bin", "line",
)  # fmt: skip
VAGUE_NAMES = (
    "technique {n}",
    "step {n}",
    "the example's change",
    "custom rewrite",
    "pattern {n}",
    "transformation {letter}",
    "kernel tweak",
    "house style change",
)
VAGUE_DETAILS = (
    "apply the same change as in the example",
    "do to this code what the example shows",
    "as in the example",
    "follow the example",
    "the same rewrite on this kernel",
)


@cache
def _table() -> dict[str, tuple[str, ...]]:
    path = Path(__file__).resolve().parents[2] / "ingest" / "techniques.toml"
    found = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["technique"]:
        found[entry["name"]] = (entry["name"], *entry.get("synonyms", ()))
    return found


def _variant(rng: random.Random, text: str) -> str:
    """The spellings that relabelling folds together: hyphens, capitals, British endings."""
    roll = rng.random()
    if roll < 0.2:
        text = text.replace(" ", "-", 1)
    elif roll < 0.3:
        text = text.title()
    elif roll < 0.4:
        text = text.capitalize()
    if rng.random() < 0.2:
        text = text.replace("ization", "isation").replace("ized", "ised").replace("ize ", "ise ")
    return text


def name_of(rng: random.Random, technique: str, *, only: int | None = None) -> str:
    """The graph's own name of a technique most of the time, else a synonym in some spelling."""
    if technique == "parallel" and only is None and rng.random() < 0.35:
        return _variant(rng, rng.choice(THREADS).format(noun=rng.choice(NOUNS)))
    names = NAMES[technique]
    chosen = names[only] if only is not None else names[0] if rng.random() < 0.7 else rng.choice(names)
    if rng.random() < 0.5:
        return chosen
    return _variant(rng, rng.choice(_table().get(chosen, (chosen,))))


def detail_of(rng: random.Random, technique: str, idiom: Idiom, *, explicit: bool, planar: bool = False) -> str:
    """How to apply it; ``explicit`` allows sentences that name a field of the idiom."""
    fields = dict(idiom)
    if planar and "block2" in fields:
        fields["block"] = "{}x{}".format(*fields["block2"])
    if not fields.get("cap", 1):
        explicit = False
    choices = [d for d in DETAILS[technique] if explicit or "{" not in d]
    text = rng.choice(choices).format(**fields)
    roll = rng.random()
    if roll < 0.3:
        text = text[0].upper() + text[1:]
    if rng.random() < 0.3:
        text += "."
    return text
