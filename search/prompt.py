"""Prompts from the files in ``search/prompts/``: the same text for every model."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template


@cache
def _template(name: str) -> Template:
    return Template(files("search").joinpath(f"prompts/{name}.txt").read_text(encoding="utf-8"))


def _code(text: str) -> str:
    return text.strip("\n")


def _example(before: str, after: str) -> str:
    return _template("example").substitute(before=_code(before), after=_code(after)) if before and after else ""


def _feedback(text: str) -> str:
    return _template("feedback").substitute(feedback=text.strip()) if text.strip() else ""


def rewrite(technique: str, detail: str, code: str, *, before: str = "", after: str = "", feedback: str = "") -> str:
    """Apply one technique to ``code``, with an example of its transition when there is one."""
    return _template("rewrite").substitute(
        technique=technique,
        detail=detail,
        code=_code(code),
        example=_example(before, after),
        feedback=_feedback(feedback),
    )


def standard(code: str, *, before: str = "", after: str = "", feedback: str = "") -> str:
    """One shot; with an example it is the ``rag`` baseline's prompt."""
    return _template("standard").substitute(
        code=_code(code), example=_example(before, after), feedback=_feedback(feedback)
    )


def cot(code: str, *, feedback: str = "") -> str:
    """Chain of thought: the steps in one answer."""
    return _template("cot").substitute(code=_code(code), feedback=_feedback(feedback))


def fsr(code: str, task: str, gpu: str, *, feedback: str = "") -> str:
    """CUDA-LLM's prompt: the task's text, the GPU's data, the best code so far, the last errors (arXiv 2506.09092)."""
    return _template("fsr").substitute(code=_code(code), task=task, gpu=gpu, feedback=_feedback(feedback))
