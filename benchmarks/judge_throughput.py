"""Verdicts a second against the plain loop that a user would write, in one run; ratios, not absolute figures, are
the result.

The plain loop compiles each candidate with nvcc to an executable that holds the kernel, its inputs and a comparison,
and runs
it, one process a candidate, one after the other, without any isolation. With a GPU and torch there is a third side:
``torch.utils.cpp_extension.load_inline``.

Prints one JSON line ``{"benchmark", "figures", "ratios"}``. The batch of 32 mixes right, wrong, refused and broken
candidates.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from regraph_db.records import Level
from verify.judge import Judge, best_level
from verify.settings import VerifySettings
from verify.task import load_task
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
    from torch.utils.cpp_extension import load_inline as load  # type: ignore[import-not-found]

    for number, source in enumerate(sources):
        arguments = "x.data_ptr<float>(), out.data_ptr<float>(), x.numel()"
        glue = f"void call(torch::Tensor x, torch::Tensor out) {{ affine({arguments}); }}"
        try:
            load(
                name=f"candidate{number}_{time.time_ns()}",
                cpp_sources="void call(torch::Tensor x, torch::Tensor out);",
                cuda_sources=source + glue,
                functions=["call"],
            )
        except RuntimeError:
            continue


def seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--single", type=int, default=4, help="candidates of each single kind")
    parser.add_argument("--torch", action="store_true", help="also time torch's load_inline (two candidates)")
    options = parser.parse_args()
    settings = VerifySettings()
    level = best_level(settings)
    level = Level.GPU if level is Level.GPU else Level.FUNCTIONAL
    toolkit = find_toolkit(settings)
    task = load_task(TASK)
    kinds = {
        "wrong": [wrong(k) for k in range(options.single)],
        "compile_error": [broken(k) for k in range(options.single)],
        "right": [right(k) for k in range(options.single)],
        "batch": mixed(options.batch),
    }
    figures: dict[str, float] = {}
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as cache, Judge(settings, cache_folder=Path(cache)) as judge:
        judge.judge(task, right(99), level)  # builds the runner or the CPU level, and the references, once
        for kind, sources in kinds.items():
            if kind == "batch":
                spent = seconds(
                    lambda s=sources: [f.result() for f in [judge.submit(task, source, level) for source in s]]
                )  # type: ignore[misc]
            else:
                spent = seconds(lambda s=sources: [judge.judge(task, source, level) for source in s])  # type: ignore[misc]
            plain = seconds(
                lambda s=sources: plain_loop(s, str(toolkit.nvcc), judge.compiler.architecture, level is Level.GPU)
            )  # type: ignore[misc]
            figures[f"{kind}_per_second"] = len(sources) / spent
            figures[f"{kind}_plain_per_second"] = len(sources) / plain
            ratios[f"{kind}_over_plain_loop"] = plain / spent
        if options.torch and level is Level.GPU:
            spent = seconds(lambda: load_inline([right(5000), right(5001)])) / 2
            figures["load_inline_per_second"] = 1 / spent
            ratios["batch_over_load_inline"] = figures["batch_per_second"] * spent
    print(json.dumps({"benchmark": f"judge_throughput_{level}", "figures": figures, "ratios": ratios}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
