"""The judge: what is true of a CUDA candidate. Does it compile, is it right, how fast is it."""

from verify.judge import Judge, best_level, judge
from verify.task import Task, list_tasks, load_task

__all__ = ["Judge", "Task", "best_level", "judge", "list_tasks", "load_task"]
