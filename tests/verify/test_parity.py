"""The CPU level says of a kernel what the GPU says: right ones, and wrong ones whose fault is in what they compute.

An access out of bounds is always seen by the CPU level; a GPU may only see what came of it, and must refuse that.
(Races, which a GPU sees by chance, are not compared here.)
With a GPU, both levels judge the same kernels, and a report is kept under ``build/reports``. Without one, the CPU's
verdicts of a sample are compared with those that a GPU gave when the shipped trajectories were measured; what the CPU
says of every step stands in tests/cudaeval.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cudaeval import mutate, shipped
from regraph_db.records import Level, VerdictKind
from verify.judge import Judge, best_level
from verify.settings import VerifySettings
from verify.task import Task, load_task

pytestmark = pytest.mark.nvcc
SETTINGS = VerifySettings(timing_seconds=0.2, compile_seconds=120)  # verdicts are compared, not times
REPORT = Path(__file__).parents[2] / "build" / "reports" / "parity.json"
#: Mistakes in what is computed, and in nothing else.
OPERATORS = {"sign changed", "constant changed", "wrong neutral element", "minimum for maximum", "accumulator narrowed"}
#: A sample for the quick tests: (task, step from 0).
SAMPLE = [("saxpy", 2), ("histogram", 2), ("softmax_rows", 3), ("transpose", 3), ("gemv_int8_dequant", 1), ("topk", 1)]


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    task: Task
    source: str
    right: bool
    baseline: str  #: a right kernel: with one, no reference need be timed alone on the whole machine

    def judged_rightly(self, cpu: VerdictKind) -> bool:
        return cpu in ([VerdictKind.PASSED] if self.right else [VerdictKind.WRONG_RESULT, VerdictKind.RUNTIME_ERROR])

    def judged_alike(self, cpu: VerdictKind, gpu: VerdictKind) -> bool:
        return self.judged_rightly(cpu) and (
            gpu is cpu or (cpu is VerdictKind.RUNTIME_ERROR and gpu is not VerdictKind.PASSED)
        )


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(SETTINGS, cache_folder=tmp_path_factory.mktemp("cache")) as one:
        yield one


def small(task: Task) -> Task:
    """The task timed at its largest check size: what is compared is the verdict, not the time."""
    largest = max(task.sizes.check, key=task.working_set)
    return dataclasses.replace(
        task, sizes=task.sizes.model_copy(update={"timed": (largest,)}), hash=f"{task.hash}-small"
    )


def kernels() -> Iterator[Kernel]:
    """The first and the last step of every second task, and one mutant of the first step of every task that has one."""
    harmless = {each.code for each in mutate.read_harmless()}
    for number, name in enumerate(shipped.names()):
        task = small(load_task(name))
        (trajectory,) = shipped.read_trajectories(shipped.trajectory_file(name))
        if number % 2 == 0:
            for step in (0, len(trajectory.steps) - 1):
                code = trajectory.steps[step].code
                yield Kernel(f"{name}, step {step + 1}", task, code, right=True, baseline=code)
        first = trajectory.steps[0].code
        sizes = [parameter.name for parameter in task.parameters if parameter.kind == "size"]
        for mutant in mutate.mutants(name, 1, first, sizes):
            if mutant.operator in OPERATORS and shipped.code_hash(mutant.code) not in harmless:
                told = f"{name}, step 1, line {mutant.line}: {mutant.operator}"
                yield Kernel(told, task, mutant.code, right=False, baseline=first)
                break


def test_there_are_enough_of_both_kinds() -> None:
    counts = Counter(kernel.right for kernel in kernels())
    assert counts[True] >= 30 and counts[False] >= 30, counts


@pytest.mark.parametrize(("name", "step"), SAMPLE)
def test_a_measured_step_gets_its_gpu_verdict_on_the_cpu(judge: Judge, name: str, step: int) -> None:
    (trajectory,) = shipped.read_trajectories(shipped.trajectory_file(name))
    measured = shipped.read_measured(shipped.measured_file(name))
    assert measured is not None and measured.steps[step].code == shipped.code_hash(trajectory.steps[step].code)
    verdict = judge.judge(load_task(name), trajectory.steps[step].code, Level.FUNCTIONAL)
    if verdict.verdict is not VerdictKind.UNSUPPORTED:  # then nothing is said; which steps may be is tested elsewhere
        assert verdict.verdict is measured.steps[step].verdict, verdict.reason


@pytest.mark.slow
def test_the_cpu_tells_right_from_wrong(judge: Judge) -> None:
    """The kernels that the GPU test compares, on this level alone."""
    wanted = list(kernels())
    verdicts = [judge.submit(kernel.task, kernel.source, Level.FUNCTIONAL) for kernel in wanted]
    mistaken = []
    for kernel, future in zip(wanted, verdicts, strict=True):
        verdict = future.result()
        if verdict.verdict is VerdictKind.UNSUPPORTED:
            continue
        if not kernel.judged_rightly(verdict.verdict):
            mistaken.append(f"{kernel.name}: {verdict.verdict}: {verdict.reason}")
    assert not mistaken


@pytest.mark.gpu
def test_cpu_and_gpu_agree(judge: Judge) -> None:
    if best_level(SETTINGS) is not Level.GPU:
        pytest.skip("no GPU")
    compared = list(kernels())
    pairs = [
        (
            judge.submit(kernel.task, kernel.source, Level.FUNCTIONAL),
            judge.submit(kernel.task, kernel.source, Level.GPU, baseline=kernel.baseline),
        )
        for kernel in compared
    ]
    rows, differing = [], []
    for kernel, (cpu, gpu) in zip(compared, pairs, strict=True):
        on_cpu, on_gpu = cpu.result(), gpu.result()
        row = {"kernel": kernel.name, "cpu": on_cpu.verdict, "gpu": on_gpu.verdict, "reason": on_gpu.reason}
        rows.append(row)
        if on_cpu.verdict is not VerdictKind.UNSUPPORTED and not kernel.judged_alike(on_cpu.verdict, on_gpu.verdict):
            differing.append(row)
    evidence = next(future.result().evidence for _, future in pairs if future.result().evidence.gpu)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    head = {"gpu": evidence.gpu, "driver": evidence.driver, "nvcc": evidence.nvcc, "date": str(evidence.date)}
    REPORT.write_text(json.dumps({**head, "kernels": rows}, indent=1) + "\n")
    assert sum(row["cpu"] is not VerdictKind.UNSUPPORTED for row in rows) >= 60
    assert differing == []
