"""CPU level: seconds a candidate, and nanoseconds a thread and barrier, plain and checked.

Run: python benchmarks/cpu_level.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from regraph_db.settings import section
from verify.cpu import execute
from verify.inputs import make_call
from verify.sandbox import Limits
from verify.settings import VerifySettings
from verify.task import load_task
from verify.toolchain import find_toolkit

BLOCKS, THREADS, ROUNDS = 100, 256, 200
SOURCE = """
__global__ void turn(float* y, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = t;
    for (int i = 0; i < 200; i++) { __syncthreads(); float v = s[(t + 1) & 255]; __syncthreads(); s[t] = v; }
    y[blockIdx.x * 256 + t] = s[t];
}
extern "C" void saxpy(float a, const float* x, float* y, int n) { turn<<<100, 256>>>(y, n); }
"""


def main() -> None:
    """Print both figures, the least of five calls."""
    task, toolkit = load_task("saxpy"), find_toolkit(section("verify", VerifySettings)).root
    calls = [make_call(task, {"n": BLOCKS * THREADS}, seed) for seed in range(5)]
    for races in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            limits = Limits(seconds=120)
            ran = execute(task, SOURCE, calls, races=races, toolkit=toolkit, folder=Path(folder), limits=limits)
        if ran.fault is not None:
            raise SystemExit(ran.reason)
        nanoseconds = min(ran.seconds) / (BLOCKS * THREADS * ROUNDS * 2) * 1e9
        print(f"{'checked' if races else 'plain':<8} {nanoseconds:6.1f} ns a thread and barrier")


if __name__ == "__main__":
    main()
