"""The teacher's prompt, from ``ingest/prompts/teacher.txt``."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verify import Task

_POINTERS = {
    "device": "Array parameters are device pointers; copy nothing from or to the host.",
    "host": "Array parameters are host pointers; the function allocates, copies and frees by itself.",
}


def teacher_prompt(task: Task) -> str:
    """The whole question for one task."""
    template = Template(files("ingest").joinpath("prompts/teacher.txt").read_text(encoding="utf-8"))
    return template.substitute(
        signature=f"`{task.signature}`",
        pointers=_POINTERS[task.abi],
        allow=f" and {', '.join(task.allow)}" if task.allow else "",
        title=task.title,
        reference=task.reference.strip("\n"),
    )
