"""The other fields of a prompt: what came of the last try, the task's text, the GPU's data."""

from __future__ import annotations

import random
from collections.abc import Sequence

from slm.corpus.family import Family


def feedback(rng: random.Random, pieces: Sequence[str], share: float) -> str:
    """A line of a compiler, a runner or the judge, for a ``share`` of the calls."""

    if rng.random() > share:
        return ""
    name = rng.choice(pieces or ("x",))
    line = rng.randint(3, 60)
    return rng.choice(
        (
            f'candidate.cu({line}): error: identifier "{name}" is undefined',
            f"candidate.cu:{line}:{rng.randint(1, 60)}: error: expected ';' before '{name}'",
            f'compile_error: candidate.cu({line}): error: expected a ")"',
            f"wrong_result: {name}[{rng.randint(0, 9999)}] is {rng.uniform(-9, 9):.4g}, "
            f"expected {rng.uniform(-9, 9):.4g}",
            "runtime_error: an illegal memory access was encountered",
            "timeout: the candidate ran longer than its limit",
            "nondeterministic: two runs differ",
            f"passed, {rng.uniform(0.5, 300):.3g} times the sequential code's speed",
            f"passed in {rng.uniform(0.01, 20):.3g} ms",
            f'error: calling a __host__ function("std::max<float>") from a __global__ function("{name}") '
            "is not allowed",
            f"no instance of overloaded function matches the argument list, line {line}",
            "suitable: yes was missing",
        )
    )


def task_text(rng: random.Random, family: Family) -> str:
    """The task in a few words."""
    title = " ".join(family.function.split("_"))
    return rng.choice(
        (
            title,
            f"{title} over {rng.choice(('all elements', 'every row', 'a matrix', 'the array'))}",
            f"Write {family.function}: {title}.",
            f"{family.function}({family.signature()})",
        )
    )


def gpu_text(rng: random.Random) -> str:
    """The data of one GPU."""
    name, capability, units, memory, bandwidth = rng.choice(
        (
            ("NVIDIA H200", "9.0", 132, 228, 4800),
            ("NVIDIA A100-SXM4-80GB", "8.0", 108, 164, 2039),
            ("NVIDIA GeForce RTX 3090 Ti", "8.6", 84, 100, 1008),
            ("NVIDIA GeForce GTX 1660 SUPER", "7.5", 22, 64, 336),
            ("NVIDIA L4", "8.9", 58, 100, 300),
            ("Tesla T4", "7.5", 40, 64, 320),
        )
    )
    return rng.choice(
        (
            f"{name}, compute capability {capability}, {units} SMs, {memory} KiB shared memory per SM, "
            f"warp size 32, {bandwidth} GB/s",
            f"{name}\ncompute capability {capability}\n{units} SMs\nwarp size 32\nshared memory {memory} "
            f"KiB\nmemory bandwidth {bandwidth} GB/s",
            f"name: {name}; compute capability: {capability}; SMs: {units}; bandwidth: {bandwidth} GB/s",
        )
    )
