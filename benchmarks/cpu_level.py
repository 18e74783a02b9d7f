"""CPU level: nanoseconds a thread and barrier, plain and checked, and seconds a candidate's compilation.

Prints one JSON line. The kernel of the first figures has 25,600 threads that pass 400 barriers, with one access to
shared memory before each; the least of five calls counts. Compilation is timed on the last step of every shipped
trajectory.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median

from cudaeval import shipped
from regraph_db.settings import section
from verify.cpu import execute
from verify.cpu.build import build, kit
from verify.cpu.refusals import unsupported
from verify.cpu.translate import TranslationError, translate
from verify.inputs import make_call
from verify.sandbox import Limits
from verify.settings import VerifySettings
from verify.task import load_task
from verify.toolchain import find_toolkit

BLOCKS, THREADS, BARRIERS = 100, 256, 400
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


def nanoseconds(toolkit: Path, races: bool) -> float:
    task = load_task("saxpy")
    calls = [make_call(task, {"n": BLOCKS * THREADS}, seed) for seed in range(5)]
    with tempfile.TemporaryDirectory() as folder:
        ran = execute(
            task, SOURCE, calls, races=races, toolkit=toolkit, folder=Path(folder), limits=Limits(seconds=120)
        )
    if ran.fault is not None:
        raise SystemExit(ran.reason)
    return min(ran.seconds) / (BLOCKS * THREADS * BARRIERS) * 1e9


def compile_seconds(toolkit: Path) -> list[float]:
    """Of the checked build of each trajectory's last step, the sandbox's start included."""
    seconds = []
    for name in shipped.names():
        source = shipped.read_trajectories(shipped.trajectory_file(name))[0].steps[-1].code
        try:
            text = None if unsupported(source) else translate(source).text
        except TranslationError:
            text = None
        if text is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            built = build(kit(toolkit), text, "checked", Path(folder))
        if built.library is not None:
            seconds.append(built.seconds)
    return sorted(seconds)


def main() -> None:
    toolkit = find_toolkit(section("verify", VerifySettings)).root
    figures = {f"{'checked' if races else 'plain'}_ns": nanoseconds(toolkit, races) for races in (False, True)}
    seconds = compile_seconds(toolkit)
    figures |= {"compile_median_s": median(seconds), "compile_largest_s": seconds[-1], "compiled": len(seconds)}
    ratios = {"checked_over_plain": figures["checked_ns"] / figures["plain_ns"]}
    print(json.dumps({"benchmark": "cpu_level", "figures": figures, "ratios": ratios}))


if __name__ == "__main__":
    main()
