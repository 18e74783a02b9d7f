"""The judge: what is true of a CUDA candidate. Does it compile, is it right, how fast is it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verify.judge import Judge, best_level, judge
    from verify.task import Task, list_tasks, load_task, task_names

__all__ = ["Judge", "Task", "best_level", "judge", "list_tasks", "load_task", "task_names"]

_HOMES = {
    "Judge": "verify.judge",
    "best_level": "verify.judge",
    "judge": "verify.judge",
    "Task": "verify.task",
    "list_tasks": "verify.task",
    "load_task": "verify.task",
    "task_names": "verify.task",
}


def __getattr__(name: str) -> object:
    # Looked up late, so that `regraph --help` loads neither numpy nor the judge.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
