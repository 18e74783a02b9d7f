"""One text of the corpus: what is asked, what is answered, and what a judge needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """One text of the corpus, and what a judge needs to know about it."""

    prompt: str
    answer: str
    form: str  # rewrite | standard | cot | fsr | refuse
    family: str
    technique: str
    example: str  # right | none | other
    sequential: str
    before: str
    after: str  # "" where the answer is `suitable: no`
    function: str
    arguments: tuple[tuple[str, str, str, str, str], ...]
    dims: tuple[tuple[str, int], ...]
    idiom: tuple[tuple[str, str], ...]
    marred: bool = False  # holds statements or names that were changed alike in both codes, so that they must be copied
    manner: str = ""  # of families that write some techniques alike


def fenced(code: str) -> str:
    body = code.strip("\n")
    return f"suitable: yes\n```cuda\n{body}\n```\n"


REFUSED = "suitable: no\n"
