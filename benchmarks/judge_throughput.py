"""Verdicts a second against the plain loop that a user would write, in one run; ratios are the result.

The judge is handed all candidates of a kind at once, with all its isolation on. The plain loop compiles each candidate
with nvcc to an executable that holds the kernel, its inputs and a comparison, and runs it: one process a candidate, one
after the other, nothing isolated. Without a GPU the loop can only compile, while the judge also runs every candidate on
the CPU. With a GPU and torch, ``--torch`` adds a third side: ``torch.utils.cpp_extension.load_inline``.

Prints one JSON line ``{"benchmark", "figures", "ratios"}``. The batch of 32 mixes right, wrong and broken candidates.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from regraph_db.records import Level, VerdictKind
from verify.judge import Judge, best_level
from verify.settings import VerifySettings
from verify.task import Task, load_task
from verify.toolchain import find_toolkit

TASK = Path(__file__).parents[1] / "tests" / "verify" / "tasks" / "affine"
RIGHT = """__global__ void affine_kernel(const float* x, float* out, int n) {{
    int i = blockIdx.x * {threads} + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i] + {one};
}}
extern "C" void affine(const float* x, float* out, int n) {{
    affine_kernel<<<(n + {threads} - 1) / {threads}, {threads}>>>(x, out, n);
}}
"""
#: What the plain loop puts after a candidate: one size, random inputs, a comparison, an event timer.
MAIN = """
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
int main() {
    const int n = 1 << 20;
    std::vector<float> x(n), out(n);
    for (float& v : x) v = rand() / float(RAND_MAX);
    float *dx, *dout, ms;
    cudaMalloc(&dx, 4 * n), cudaMalloc(&dout, 4 * n);
    cudaMemcpy(dx, x.data(), 4 * n, cudaMemcpyHostToDevice);
    cudaEvent_t a, b;
    cudaEventCreate(&a), cudaEventCreate(&b);
    for (int k = 0; k < 25; ++k) {
        cudaEventRecord(a);
        affine(dx, dout, n);
        cudaEventRecord(b);
        cudaEventSynchronize(b);
        cudaEventElapsedTime(&ms, a, b);
    }
    cudaMemcpy(out.data(), dout, 4 * n, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i)
        if (!(std::fabs(out[i] - (3 * x[i] + 1)) < 1e-5)) return 1;
    std::printf("%f\\n", ms);
}
"""


def right(variant: int) -> str:
    return (
        RIGHT.format(threads=32 * (1 + variant % 8), one="1.0f")
        + f"// {variant}\nstatic const int variant = {variant};\n"
    )


def wrong(variant: int) -> str:
    return RIGHT.format(threads=32 * (1 + variant % 8), one="1.5f") + f"static const int variant = {variant};\n"


def broken(variant: int) -> str:
    return right(variant).replace("int i =", f"int i{variant} =")


def mixed(count: int) -> list[str]:
    return [(right, wrong, right, broken)[k % 4](1000 + k) for k in range(count)]


def plain_loop(sources: list[str], nvcc: str, arch: str, gpu: bool) -> None:
    """What a user would write: nvcc to an executable, run it, next."""
    for source in sources:
        with tempfile.TemporaryDirectory() as folder:
            file, program = Path(folder) / "candidate.cu", Path(folder) / "candidate"
            file.write_text(source + MAIN)
            library = str(Path(nvcc).parent.parent / "lib")
            done = subprocess.run(
                [nvcc, "-O3", f"-arch={arch}", f"-L{library}", str(file), "-o", str(program)], capture_output=True
            )
            if done.returncode == 0 and gpu:
                subprocess.run([str(program)], capture_output=True, timeout=60)


def load_inline(sources: list[str]) -> None:
    """What a user of torch would write: each candidate as an extension, called once and compared."""
    # torch is on the GPU machine only, and no dependency.
    import torch  # type: ignore[import-not-found]
    from torch.utils.cpp_extension import load_inline as load  # type: ignore[import-not-found]

    x = torch.rand(1 << 20, device="cuda")
    for number, source in enumerate(sources):
        arguments = "x.data_ptr<float>(), out.data_ptr<float>(), x.numel()"
        glue = f"void call(torch::Tensor x, torch::Tensor out) {{ affine({arguments}); }}"
        try:
            module = load(
                name=f"candidate{number}_{time.time_ns()}",
                cpp_sources="void call(torch::Tensor x, torch::Tensor out);",
                cuda_sources=source + glue,
                functions=["call"],
            )
        except RuntimeError:
            continue
        out = torch.empty_like(x)
        module.call(x, out)
        torch.allclose(out, 3 * x + 1)


def judge_all(judge: Judge, task: Task, sources: list[str], level: Level) -> None:
    for future in [judge.submit(task, source, level) for source in sources]:
        verdict = future.result()
        assert verdict.verdict is not VerdictKind.HARNESS_ERROR, verdict.reason


def seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--single", type=int, default=16, help="candidates of each single kind")
    parser.add_argument("--torch", action="store_true", help="also time torch's load_inline (two candidates)")
    options = parser.parse_args()
    settings = VerifySettings()
    level = best_level(settings)
    level = Level.GPU if level is Level.GPU else Level.FUNCTIONAL
    toolkit = find_toolkit(settings)
    task = load_task(TASK)
    kinds_alone = {"wrong": wrong(900), "compile_error": broken(900), "right": right(900), "batch": right(901)}
    kinds = {
        "wrong": [wrong(k) for k in range(options.single)],
        "compile_error": [broken(k) for k in range(options.single)],
        "right": [right(k) for k in range(options.single)],
        "batch": mixed(options.batch),
    }
    figures: dict[str, float] = {"cores": os.cpu_count() or 1, "jobs": settings.jobs}
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache, Judge(settings, cache_folder=Path(cache)) as judge:
        judge.judge(task, right(99), level)  # builds the runner or the CPU level, and the references, once
        # The loop's variables are bound late in these lambdas, which are called at once (B023).
        for kind, sources in kinds.items():
            alone = seconds(lambda: judge.judge(task, kinds_alone[kind], level))  # noqa: B023
            spent = seconds(lambda: judge_all(judge, task, sources, level))  # noqa: B023
            plain = seconds(
                lambda: plain_loop(sources, str(toolkit.nvcc), judge.compiler.architecture, level is Level.GPU)  # noqa: B023
            )
            figures[f"{kind}_per_second"] = len(sources) / spent
            figures[f"{kind}_plain_per_second"] = len(sources) / plain
            figures[f"{kind}_alone_seconds"] = alone
            ratios[f"{kind}_over_plain_loop"] = plain / spent
            print(f"{kind}: {len(sources)} in {spent:.2f} s, by the plain loop in {plain:.2f} s", file=sys.stderr)
        if options.torch and level is Level.GPU and importlib.util.find_spec("torch"):
            spent = seconds(lambda: load_inline([right(5000), right(5001)])) / 2
            figures["load_inline_per_second"] = 1 / spent
            ratios["batch_over_load_inline"] = figures["batch_per_second"] * spent
    print(json.dumps({"benchmark": f"judge_throughput_{level}", "figures": figures, "ratios": ratios}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
