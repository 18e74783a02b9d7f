"""`regraph eval measure`: every step of the trajectories through the judge, timed on a GPU, into measured files.

All steps of all files are handed to one judge at once, so that it compiles and computes references on every core while
the GPU times one candidate after the other. A file is written as soon as its last step has been judged: a run that is
cut short keeps what it finished, and the next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cudaeval import TRAJECTORIES
from cudaeval.shipped import (
    Measured,
    MeasuredStep,
    code_hash,
    load_one,
    measured_file,
    read_measured,
    staleness,
    workload,
    write_measured,
)
from regraph_db.records import Level, Trajectory, Verdict, VerdictKind, now

if TYPE_CHECKING:
    from verify import Judge, Task

#: How many tasks' steps are judged side by side.
TASKS_AT_ONCE = 8

#: Called with the task's name, the step's number from 0, and the verdict, as each arrives.
Progress = Callable[[str, int, Verdict], None]


@dataclass
class _Open:
    """A trajectory whose steps are being judged."""

    task: Task
    trajectory: Trajectory
    verdicts: dict[int, Verdict] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What a run of :func:`measure` did, by task names."""

    written: tuple[str, ...]
    kept: tuple[str, ...]  #: measured before, on the same code
    broken: dict[str, str]  #: not written, because the judge itself failed: why


def measure(
    names: Sequence[str],
    judge: Judge,
    *,
    folder: Path = TRAJECTORIES,
    out: Path | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Judge every step of ``names`` at level gpu and write a measured file for each task into ``out`` (or ``folder``).

    A task whose file there already speaks of the same code and task is left alone unless ``again``. A step that fails
    is written with its verdict; a task with a ``harness_error`` is not written at all.
    """
    out = out or folder
    waiting: dict[Future[Verdict], list[tuple[str, int]]] = {}
    unfinished: dict[str, _Open] = {}
    kept = []
    for name in names:
        work = _Open(*load_one(name, folder))
        known = read_measured(measured_file(name, out))
        if known is not None and not again and not staleness(known, work.trajectory, work.task):
            kept.append(name)
            continue
        unfinished[name] = work
    for name, index in _order({name: len(work.trajectory.steps) for name, work in unfinished.items()}):
        work = unfinished[name]
        future = judge.submit(work.task, work.trajectory.steps[index].code, Level.GPU)
        waiting.setdefault(future, []).append((name, index))  # equal code is judged once
    written = []
    broken = {}
    while waiting:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            verdict = future.result()
            for name, index in waiting.pop(future):
                unfinished[name].verdicts[index] = verdict
                if progress is not None:
                    progress(name, index, verdict)
                if len(unfinished[name].verdicts) < len(unfinished[name].trajectory.steps):
                    continue
                ended = unfinished.pop(name)
                fault = _fault(ended)
                if fault:
                    broken[name] = fault
                else:
                    write_measured(_measured(ended), measured_file(name, out))
                    written.append(name)
    return Outcome(tuple(sorted(written)), tuple(kept), broken)


def _order(steps: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Every (task, step), so that a few tasks are under way at once.

    Steps of one task wait for the same reference outputs, so one task at a time would leave cores idle; all tasks at
    once would push reference outputs out of the judge's cache before the last step needs them.
    """
    tasks = sorted(steps)
    for start in range(0, len(tasks), TASKS_AT_ONCE):
        group = tasks[start : start + TASKS_AT_ONCE]
        for index in range(max(steps[name] for name in group)):
            yield from ((name, index) for name in group if index < steps[name])


def _fault(ended: _Open) -> str:
    for index in sorted(ended.verdicts):
        verdict = ended.verdicts[index]
        if verdict.verdict is VerdictKind.HARNESS_ERROR:
            return f"step {index + 1}: {verdict.reason}"
    return ""


def _measured(ended: _Open) -> Measured:
    verdicts = [ended.verdicts[index] for index in range(len(ended.trajectory.steps))]
    # Any step that reached the GPU knows the machine; one that failed to compile may not.
    evidence = max((v.evidence for v in verdicts), key=lambda e: (bool(e.gpu), e.samples))
    return Measured(
        task=ended.task.name,
        workload=workload(ended.task),
        trajectory=ended.trajectory.id,
        gpu=evidence.gpu,
        driver=evidence.driver,
        nvcc=evidence.nvcc,
        flags=evidence.flags,
        host=evidence.host,
        date=evidence.date or now(),
        sizes=evidence.sizes,
        steps=tuple(
            MeasuredStep(
                code=code_hash(step.code),
                method=step.method,
                verdict=verdict.verdict,
                level=verdict.level,
                reason=verdict.reason,
                seconds=verdict.candidate_seconds,
                speedup=verdict.speedup,
                reference_seconds=verdict.baseline_seconds,
                bound_share=verdict.bound_share,
                samples=verdict.evidence.samples,
                unstable=verdict.unstable,
            )
            for step, verdict in zip(ended.trajectory.steps, verdicts, strict=True)
        ),
    )
