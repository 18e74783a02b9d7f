"""The teacher: a strong chat model is asked for step-by-step trajectories, which then take the same path as any
others."""

from ingest.teacher.asking import Limits, Spent, Teacher
from ingest.teacher.prompt import teacher_prompt

__all__ = ["Limits", "Spent", "Teacher", "teacher_prompt"]
