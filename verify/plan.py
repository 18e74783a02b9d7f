"""Which inputs a candidate is judged on: every check and hidden size, every adversarial distribution, one
repetition."""

from __future__ import annotations

import zlib

from verify.inputs import VARIANTS
from verify.reference import Case
from verify.settings import VerifySettings
from verify.task import Task


def check_cases(task: Task, settings: VerifySettings) -> list[Case]:
    """The cases of one judgement, in order; the last one repeats the inputs of an earlier one.

    Seeds come from the setting and the task, so that reference outputs can be cached; no generator is shown them.
    """
    base = seed_of(task, settings)
    sizes = list(task.sizes.check) + (list(task.sizes.hidden) if settings.hidden else [])
    cases = [Case.of(size, base + index) for index, size in enumerate(sizes)]
    largest = max(task.sizes.check, key=task.working_set)
    cases += [Case.of(largest, base + 1000 + index, variant) for index, variant in enumerate(VARIANTS[1:])]
    again = max(cases, key=lambda case: task.working_set(dict(case.sizes)))
    return [*cases, again]


def timed_cases(task: Task, settings: VerifySettings, sets: int = 2) -> list[list[Case]]:
    """For each timed size its input sets; a task without timed sizes is timed at its largest check size."""
    base = seed_of(task, settings) + 5000
    sizes = task.sizes.timed or (max(task.sizes.check, key=task.working_set),)
    return [[Case.of(size, base + 10 * index + k) for k in range(sets)] for index, size in enumerate(sizes)]


def seed_of(task: Task, settings: VerifySettings) -> int:
    """The first seed of a task's inputs."""
    return (zlib.crc32(task.hash.encode()) & 0xFFFFF) + settings.seed * 0x100000
