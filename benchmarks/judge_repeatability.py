"""How well a GPU timing repeats: the same pair of kernels judged again and again, and pairs that differ by five
percent.

Prints one JSON line: relative spreads of the speedup (sample standard deviation over mean) for a kernel over 20 µs
and for a
shorter one, and how often of the tries the slower of two kernels that differ by 5 % was called slower. Needs a GPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path
from statistics import mean, stdev

from regraph_db.records import Level
from verify.judge import Judge, best_level
from verify.settings import VerifySettings
from verify.task import Task, load_task

TASK = Path(__file__).parents[1] / "tests" / "verify" / "tasks" / "affine"
#: ``work`` extra multiply-adds that cancel exactly, so that the time can be chosen and the answer stays.
KERNEL = """__global__ void affine_kernel(const float* x, float* out, int n) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {{
        float v = x[i], spin = v;
        for (int k = 0; k < {work}; ++k) spin = __fmaf_rn(spin, 0.999f, 0.001f);
        out[i] = 3.0f * v + (spin == 12345.678f ? spin : 1.0f);
    }}
}}
extern "C" void affine(const float* x, float* out, int n) {{ affine_kernel<<<1056, 256>>>(x, out, n); }}
"""


def timed_at(task: Task, n: int) -> Task:
    """The task with one timed size of ``n`` elements."""
    sizes = task.sizes.model_copy(update={"timed": ({"n": n},)})
    return dataclasses.replace(task, sizes=sizes, hash=f"{task.hash}{n}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=10)
    options = parser.parse_args()
    settings = VerifySettings()
    if best_level(settings) is not Level.GPU:
        print(json.dumps({"benchmark": "judge_repeatability", "figures": {}, "ratios": {}, "skipped": "no GPU"}))
        return 0
    task = load_task(TASK)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache, Judge(settings, cache_folder=Path(cache)) as judge:
        for name, n, work, other in (("long", 1 << 25, 200, 100), ("short", 1 << 18, 20, 10)):
            speedups, times = [], []
            for _ in range(options.tries):
                verdict = judge.judge(
                    timed_at(task, n),
                    KERNEL.format(work=work),
                    Level.GPU,
                    baseline=KERNEL.format(work=other),
                    fresh=True,
                )
                assert verdict.speedup is not None and verdict.candidate_seconds is not None, verdict.reason
                speedups.append(verdict.speedup.median)
                times.append(verdict.candidate_seconds)
            figures[f"{name}_microseconds"] = 1e6 * mean(times)
            figures[f"{name}_relative_spread"] = stdev(speedups) / mean(speedups)
        ordered = 0
        for _ in range(2 * options.tries):
            verdict = judge.judge(
                timed_at(task, 1 << 24),
                KERNEL.format(work=1050),
                Level.GPU,
                baseline=KERNEL.format(work=1000),
                fresh=True,
            )
            ordered += verdict.speedup is not None and verdict.speedup.median < 1
        figures["ordered_rightly"] = ordered / (2 * options.tries)
    print(json.dumps({"benchmark": "judge_repeatability", "figures": figures, "ratios": {}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
