"""The judge: what is true of a CUDA candidate. Does it compile, is it right, how fast is it."""

from verify.task import Task, list_tasks, load_task

__all__ = ["Task", "list_tasks", "load_task"]
