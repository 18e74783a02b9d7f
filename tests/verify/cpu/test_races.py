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
from verify.execution import Call
from verify.reference import Case
from verify.sandbox import Limits
from verify.task import Task, load_task

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
    "plain write before an update of its own": (
        "__shared__ int s; if (t == 0) s = 0;\natomicAdd(&s, 1); __syncthreads();\nz[i] = s;",
        None,
        ["race", "line 3", "line 4"],
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
    "set by one lane, then updated by its warp": (
        "__shared__ int s[4]; if (t % 32 == 0) s[t / 32] = 0; __syncwarp();\natomicAdd(&s[t / 32], 1); __syncthreads();\nz[i] = s[t / 32];",
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


#: Barriers of shipped steps that nothing needs, by (task, step from 0, line): why. Every other one is needed.
_LAST = "the end of the last reduction: the shared array is not written again in the kernel"
_SCANNED = "the next turn's block-wide scan has a barrier of its own before the total is written again"
_ONE_WARP = "a row of weights is written and read by lanes of one warp, and shuffles stand between"
REDUNDANT = {
    ("cross_entropy", 1, 28): _LAST,
    ("softmax_rows", 1, 28): _LAST,
    ("softmax_rows", 2, 28): _LAST,
    ("multihead_self_attention", 4, 84): _ONE_WARP,
    ("multihead_self_attention", 5, 105): _ONE_WARP,
    ("needleman_wunsch", 3, 31): "in the first step thread 0 alone works, on cells that it wrote; a barrier follows",
    ("prefix_sum", 1, 62): _SCANNED,
    ("prefix_sum", 2, 51): _SCANNED,
    ("prefix_sum", 3, 51): _SCANNED,
    ("sorting", 4, 38): "each caller has a barrier of its own before the warps' sums are written again",
    ("sorting", 4, 56): _SCANNED,
    ("sorting", 4, 93): "the block-wide scan that follows has a barrier before the counters are read",
    ("sorting", 5, 56): _SCANNED,
}
#: Sizes at which a barrier between two turns of a loop over blocks' totals matters: the check sizes have one turn. (And
#: one at which a stale place does not lead out of bounds first.)
SECOND_TURN = {
    ("prefix_sum", 0): 1_100_000, ("run_length_boundaries", 1): 1_100_000, ("run_length_boundaries", 2): 4_300_000,
    ("run_length_boundaries", 3): 8_500_000, ("segmented_scan", 1): 270_000, ("segmented_scan", 2): 530_000,
    ("segmented_scan", 3): 2_200_000, ("segmented_scan", 4): 2_200_000, ("sorting", 3): 70_000, ("sorting", 4): 5_000,
}  # fmt: skip
#: A sample for the quick tests: (task, step).
SAMPLE = [("transpose", 1), ("dot_product", 0), ("histogram", 1)]
BARRIER = re.compile(r"__syncthreads\(\);")
BOTH_LINES = re.compile(r"race on .* line \d+.* line \d+")


def _source(task: str, step: int) -> str:
    file = TASKS.parent / "trajectories" / f"{task}.jsonl"
    return str(json.loads(file.read_text("utf-8").splitlines()[0])["steps"][step]["code"])


def _kernels() -> list[tuple[str, int]]:
    """Every shipped step with a barrier."""
    found = []
    for file in sorted((TASKS.parent / "trajectories").glob("*.jsonl")):
        steps = json.loads(file.read_text("utf-8").splitlines()[0])["steps"]
        found += [(file.stem, number) for number, step in enumerate(steps) if BARRIER.search(step["code"])]
    return found


def _check_deletions(toolkit: Path, name: str, step: int) -> None:
    """Each barrier of the step deleted alone: reported with both lines, unless it stands in REDUNDANT; then it is not."""
    task, source = load_task(name), _source(name, step)
    sizes = (*task.sizes.check, *task.sizes.hidden)
    usual = [Case.of(size, seed).call(task, poison_seed=seed) for seed, size in enumerate(sizes)]
    wrong = []
    for barrier in BARRIER.finditer(source):
        broken = source[: barrier.start()] + ";" + source[barrier.end() :]
        line = source[: barrier.start()].count("\n") + 1
        needed = (name, step, line) not in REDUNDANT
        reason = _reason(toolkit, task, broken, usual)
        if needed and not BOTH_LINES.search(reason) and (name, step) in SECOND_TURN:
            larger = Case.of({"n": SECOND_TURN[name, step]}, 1).call(task, poison_seed=1)
            reason = _reason(toolkit, task, broken, [larger])
        if bool(BOTH_LINES.search(reason)) != needed:
            wrong.append((line, reason))
    assert not wrong


def _reason(toolkit: Path, task: Task, source: str, calls: list[Call]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        limits = Limits(seconds=120)
        return execute(task, source, calls, races=True, toolkit=toolkit, folder=Path(folder), limits=limits).reason


@pytest.mark.parametrize(("name", "step"), SAMPLE)
def test_a_deleted_barrier_is_reported_with_both_lines(toolkit: Path, name: str, step: int) -> None:
    _check_deletions(toolkit, name, step)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step"), _kernels())
def test_every_deleted_barrier_is_reported_with_both_lines(toolkit: Path, name: str, step: int) -> None:
    _check_deletions(toolkit, name, step)


def test_the_lists_of_barriers_are_about_barriers_that_exist() -> None:
    for name, step, line in REDUNDANT:
        assert BARRIER.search(_source(name, step).splitlines()[line - 1]), (name, step, line)
    assert sum(len(BARRIER.findall(_source(name, step))) for name, step in _kernels()) - len(REDUNDANT) >= 40
