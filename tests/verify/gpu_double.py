"""Level gpu without a GPU: the judge's own runner, in its own sandbox, over doubles of the CUDA driver and runtime
(``double/``). What a kernel computes and how long it takes is the CPU's; everything around it is the real thing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

from regraph_db.records import Evidence, Verdict
from verify import gpu, sandbox
from verify.compiler import Compiled, Compiler
from verify.gpu import Gpu, Peaks, Runner
from verify.measure import Bench, kind_of, verdict_on_gpu
from verify.quarantine import verify_again
from verify.reference import References
from verify.settings import VerifySettings
from verify.task import Task
from verify.toolchain import find_toolkit
from verify.warm import WarmRunners

HERE = Path(__file__).parent
SETTINGS = VerifySettings(timing_seconds=0.3, timing_samples=3, run_memory=1 << 30)
#: A time that nothing beats.
EASY = Peaks(bytes_per_second=1e15, flops_per_second=1e18, floor_seconds=1e-9, l2=1 << 20)
#: A device so slow that everything beats it.
SLOW = Peaks(bytes_per_second=1e3, flops_per_second=1e3, floor_seconds=100.0, l2=1 << 10)
#: The tests' candidates stand behind these lines: LAUNCH hands a function and its arguments to the double's runtime.
HEAD = """
#include <cuda_runtime_api.h>
#include <cstring>
#include <unistd.h>
extern "C" void double_break(int result);
#define LAUNCH(kernel, ...) (cudaLaunchKernel((const void*)kernel, 1, 1, __VA_ARGS__, 0, 0))
static void affine_kernel(void** a) {
    const float* x = *(const float**)a[0];
    float* out = *(float**)a[1];
    for (int i = 0; i < *(int*)a[2]; ++i) out[i] = 3.0f * x[i] + 1.0f;
}
static void launch_right(const float* x, float* out, int n) {
    void* a[] = {&x, &out, &n};
    LAUNCH(affine_kernel, a);
}
"""
SIGNATURE = 'extern "C" void affine(const float* x, float* out, int n)'
RIGHT = f"{SIGNATURE} {{ launch_right(x, out, n); }}"

SANITIZER = """#!/bin/sh
# compute-sanitizer's double: takes its options, runs the rest, writes {summary!r} and ends with {code}.
while [ "$1" != "{stop}" ]; do [ "$1" = --log-file ] && log=$2; shift; done
"$@"
echo "========= {summary}" > "$log"
exit {code}
"""


class Double:
    """A bench over the double; build it once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.numbers = count()
        self.toolkit = find_toolkit(SETTINGS)
        self.parts = folder / "parts"
        self.parts.mkdir()
        for name, source in (("libcuda.so.1", "driver.cpp"), ("libcudart.so", "runtime.cpp")):
            self._build(["-shared", "-fPIC", str(HERE / "double" / source), "-o", str(self.parts / name)])
        sources = [str(gpu.RUNNER / name) for name in ("runner.cpp", "shims.cpp")]
        self._build(["-rdynamic", *sources, "-ldl", "-o", str(self.parts / "real")])
        (self.parts / "kernels").touch()
        start = self.parts / "runner"
        start.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={self.parts} exec {self.parts}/real "$@"\n')
        start.chmod(0o755)
        self.gpu = Gpu(0, "a double", "0", "GPU-double", "sm_90")
        self.runner = Runner(start, self.parts / "kernels", self.parts / "libcudart.so")

    def _build(self, words: list[str]) -> None:
        head = [str(self.toolkit.host_path), "-std=c++17", "-O1", f"-I{self.toolkit.include}"]
        subprocess.run([*head, *words], check=True, timeout=120)

    def candidate(self, text: str) -> Compiled:
        """A candidate in C++, its kernels functions of this file's kind."""
        source = self.folder / f"candidate{next(self.numbers)}.cpp"
        source.write_text(HEAD + text)
        self._build(["-shared", "-fPIC", str(source), "-o", str(source.with_suffix(".so"))])
        return Compiled(source.with_suffix(".so"))

    def bench(self, peaks: Peaks = EASY, sanitizer: str | None = None) -> Bench:
        """``sanitizer``: the summary that compute-sanitizer writes; ``None`` when the machine has none."""
        root = self.folder / f"toolkit{next(self.numbers)}"
        (root / "bin").mkdir(parents=True)
        if sanitizer is not None:
            tool = root / "bin" / "compute-sanitizer"
            code = 0 if " 0 errors" in sanitizer else 66
            tool.write_text(SANITIZER.format(summary=sanitizer, code=code, stop=self.runner.program))
            tool.chmod(0o755)

        def start(folder: Path, limits: sandbox.Limits) -> gpu.Session:
            return self.runner.session(self.gpu, folder, limits)

        warm = WarmRunners(start, lambda: gpu.gpu_lock(self.gpu, self.folder, exclusive=False), most=2)
        compiler = Compiler(SETTINGS, self.toolkit, self.folder / "cache")
        # The toolkit is where compute-sanitizer is looked for; everything else of it is not used here.
        object.__setattr__(compiler, "toolkit", type("Root", (), {"root": root})())
        references = References(SETTINGS, self.folder / "cache")
        return Bench(self.gpu, self.runner, peaks, references, compiler, SETTINGS, self.folder, warm)

    def judge(self, task: Task, text: str | Compiled, bench: Bench | None = None) -> Verdict:
        """The verdict at level gpu."""
        bench = bench or self.bench()
        compiled = self.candidate(text) if isinstance(text, str) else text
        again: Callable[[], str] = lambda: verify_again(bench, task, compiled)  # noqa: E731
        try:
            with bench.warm.expecting(kind_of(task, SETTINGS)) as ticket:
                return verdict_on_gpu(bench, task, compiled, None, Evidence(), ticket, again)
        finally:
            bench.warm.close()
