"""The race check: racy cases are reported with both lines, right ones are not; a deleted barrier never goes unseen."""
# ruff: noqa: E501 - each kernel stands on one line

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import pytest
from probes import Probe, launcher

from cudaeval import TASKS
from regraph_db.records import VerdictKind
from verify.cpu import execute
from verify.reference import Case
from verify.sandbox import Limits
from verify.task import load_task

T = "int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;"


def kernel(body: str, launch: str = "kernel<<<2, 128>>>(x, y, z, n);") -> str:
    return (
        f"__device__ unsigned counter; __device__ float stage[256];\n__global__ void kernel(const float* x, float* y, int* z, int n) {{ {T}\n{body}\n}}"
        + launcher(launch)
    )


#: name: (kernel body from line 3 on, launch or None, lines that must be named)
RACY = {
    "no barrier": (
        "__shared__ float s[128];\ns[t] = x[i];\ny[i] = s[127 - t];",
        None,
        ["uninitialised|race", "line 5"],
    ),
    "no barrier, read first": (
        "__shared__ float s[128]; s[t] = 0; __syncthreads();\ny[i] = s[(t + 64) & 127];\ns[t] = 1;",
        None,
        ["race", "line 4", "line 5"],
    ),
    "no barrier in a loop": (
        "__shared__ float s[128]; s[t] = t; __syncthreads();\nfor (int d = 64; d; d >>= 1) { if (t < d) s[t] += s[t + d]; }\ny[i] = s[0];",
        None,
        ["race"],
    ),
    "legacy warp-synchronous": (
        "__shared__ float s[128]; s[t] = t; __syncthreads();\nif (t < 32) for (int d = 16; d; d >>= 1) { float v = s[t + d]; s[t] += v; }\ny[i] = s[t];",
        None,
        ["race", "__syncwarp", "line 4"],
    ),
    "histogram without atomics": ("z[(int)x[i] & 7]++;", None, ["race", "line 3"]),
    "histogram read too early": (
        "__shared__ int s[128]; s[t] = 0; __syncthreads();\natomicAdd(&s[t & 7], 1);\nz[i] = s[t];",
        None,
        ["race", "line 4", "line 5"],
    ),
    "neighbouring blocks": (
        "float v = i ? y[i - 1] : 0; __syncthreads();\ny[i] = v + 1;",
        None,
        ["race", "different blocks"],
    ),
    "last block without a fence": (
        "__shared__ bool last; if (t == 0) { stage[blockIdx.x] = 1; last = atomicAdd(&counter, 1u) == 1; } __syncthreads();\nif (last && t == 0) y[0] = stage[0] + stage[1];",
        None,
        ["race", "line 3", "line 4"],
    ),
    "barrier on a path that is not taken": (
        "__shared__ float s[128]; s[t] = t; if (n < 0) __syncthreads();\ny[i] = s[t ^ 64];",
        None,
        ["uninitialised|race"],
    ),
    "device variable": (
        "if (blockIdx.x) return; stage[t] = t;\ny[i] = stage[127 - t];",
        None,
        ["race", "`stage`", "line 3", "line 4"],
    ),
    "dynamic shared memory": (
        "extern __shared__ int d[]; d[t] = t; d[t ^ 32] = i;\nz[i] = d[t];",
        "kernel<<<2, 128, 512>>>(x, y, z, n);",
        ["race", "dynamic shared memory"],
    ),
    "bytes": (
        "__shared__ unsigned char s[128]; s[t] = t; __syncthreads();\ns[(t + 1) & 127] = t;\nz[i] = s[t];",
        None,
        ["race"],
    ),
    "partial masks": (
        "__shared__ int s[128]; s[t] = t; __syncwarp(t & 1 ? 0xaaaaaaaau : 0x55555555u);\nz[i] = s[t ^ 1];",
        None,
        ["uninitialised|race"],
    ),
}

RIGHT = {
    "double buffer with one barrier": (
        "__shared__ float s[2][128]; int p = 0; s[0][t] = x[i];\nfor (int k = 0; k < 8; k++) { __syncthreads(); s[1 - p][t] = s[p][(t + 1) & 127]; p = 1 - p; }\ny[i] = s[p][t];",
        None,
    ),
    "staging by warp": ("__shared__ float s[128]; s[t] = x[i]; __syncwarp();\ny[i] = s[t ^ 31];", None),
    "ordered by a shuffle": (
        "__shared__ float s[128]; s[t] = x[i]; float v = __shfl_sync(~0u, x[i], 0);\ny[i] = s[t ^ 1] + v;",
        None,
    ),
    "atomics only": ("atomicAdd(&z[t & 7], 1);\natomicMax(&z[8], t);", None),
    "last block with a fence": (
        "__shared__ bool last; if (t == 0) { stage[blockIdx.x] = 1; __threadfence(); last = atomicAdd(&counter, 1u) == 1; } __syncthreads();\nif (last && t == 0) { y[0] = stage[0] + stage[1]; counter = 0; }",
        None,
    ),
    "flag between warps": (
        "__shared__ volatile int flag; __shared__ int s; if (t == 0) flag = 0; __syncthreads();\nif (t == 0) { s = 7; __threadfence_block(); flag = 1; }\nif (t == 64) { while (!flag) {} __threadfence_block(); z[i] = s; }",
        None,
    ),
    "the same value": ("z[0] = 1; __shared__ int s; s = 3; __syncthreads(); z[0] = 1;\ny[i] = s;", None),
    "own element twice": ("y[i] = x[i]; __shared__ int s[128]; s[t] = 1; s[t] += 2;\nz[i] = s[t];", None),
    "disjoint bytes of one word": (
        "__shared__ unsigned char s[128]; s[t] = t; s[t]++; __syncthreads();\nz[i] = s[127 - t];",
        None,
    ),
    "other kernels": ("stage[t] = 1; y[i] = 2;", "kernel<<<1, 128>>>(x, y, z, n); kernel<<<1, 128>>>(x, y, z, n);"),
    "half-warps": (
        "__shared__ int s[128]; unsigned m = t & 16 ? 0xffff0000u : 0x0000ffffu; s[t] = t; __syncwarp(m);\nz[i] = s[t ^ 8];",
        None,
    ),
}


@pytest.mark.parametrize("name", RACY)
def test_races_are_reported(probe: Probe, name: str) -> None:
    body, launch, words = RACY[name]
    ran = probe(kernel(body, launch or "kernel<<<2, 128>>>(x, y, z, n);"))
    assert ran.fault is VerdictKind.RUNTIME_ERROR
    for word in words:
        assert re.search(word, ran.reason), ran.reason


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_raise_no_alarm(probe: Probe, name: str) -> None:
    body, launch = RIGHT[name]
    ran = probe(kernel(body, launch or "kernel<<<2, 128>>>(x, y, z, n);"), calls=2)
    assert (ran.fault, ran.reason) == (None, "")


#: Shipped kernels whose every barrier is needed at the check or hidden sizes: (task, step).
NEEDED = [
    ("transpose", 1), ("transpose", 3), ("matmul", 2), ("reduction", 0), ("reduction", 1), ("dot_product", 0), ("conv2d", 1),
    ("conv2d", 3), ("box_blur", 3), ("box_blur", 4), ("jacobi2d", 1), ("floyd_warshall", 2), ("floyd_warshall", 5),
    ("batched_matmul", 2), ("batched_matmul", 3), ("knn_bruteforce", 2), ("histogram", 1), ("max_reduce", 1),
]  # fmt: skip
BARRIER = re.compile(r"__syncthreads\(\);")


def _source(task: str, step: int) -> str:
    file = TASKS.parent / "trajectories" / f"{task}.jsonl"
    return str(json.loads(file.read_text("utf-8").splitlines()[0])["steps"][step]["code"])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step"), NEEDED)
def test_a_deleted_barrier_is_reported(toolkit: Path, name: str, step: int) -> None:
    task, source = load_task(name), _source(name, step)
    sizes = (*task.sizes.check, *task.sizes.hidden)
    calls = [Case.of(size, seed).call(task, poison_seed=seed) for seed, size in enumerate(sizes)]
    barriers = list(BARRIER.finditer(source))
    assert barriers
    unseen = []
    for barrier in barriers:
        broken = source[: barrier.start()] + ";" + source[barrier.end() :]
        with tempfile.TemporaryDirectory() as folder:
            ran = execute(
                task, broken, calls, races=True, toolkit=toolkit, folder=Path(folder), limits=Limits(seconds=60)
            )
        if ran.fault is not VerdictKind.RUNTIME_ERROR or not re.search(
            r"(race on|uninitialised) .*line \d+", ran.reason
        ):
            unseen.append((source[: barrier.start()].count("\n") + 1, ran.reason))
    assert not unseen


@pytest.mark.slow
def test_at_least_forty_barriers_are_deleted() -> None:
    assert sum(len(BARRIER.findall(_source(name, step))) for name, step in NEEDED) >= 40
