"""What a model wrote, read tolerantly: ``suitable: yes|no`` and one fenced block. Failures have names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+.#-]*)[^\n]*$", re.MULTILINE)
_SUITABLE = re.compile(r"suitable\W{0,8}(yes|no)\b", re.IGNORECASE)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_SPACE = re.compile(r"\s+")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
#: Words of which an unfenced answer must hold one to be taken for code.
_CODE_WORDS = ("__global__", 'extern "C"', "#include")


class Outcome(StrEnum):
    """What became of one generator call; the attempt's ``outcome``."""

    ANSWERED = "answered"  #: there is code to judge
    UNSUITABLE = "unsuitable"  #: the model says that the technique does not fit
    NO_CODE = "no_code"  #: nothing that could be compiled
    TRUNCATED = "truncated"  #: cut off at the limit of tokens, characters or seconds
    UNCHANGED = "unchanged"  #: the code that was given, comments and spaces aside
    FAILED = "failed"  #: the generator failed, not the model's answer


@dataclass(frozen=True)
class Parsed:
    """One answer, read."""

    outcome: Outcome
    code: str = ""


def parse(text: str, *, given: str = "", cut: bool = False) -> Parsed:
    """The code of an answer: its last fenced block, or the whole text where it is plainly code.

    ``given`` is the code that was to be rewritten; ``cut`` says that the generator stopped at a limit. An unclosed last
    block is taken as code unless the answer was cut. NUL bytes are dropped, line ends become ``\\n``.
    """
    text = _THOUGHT.sub("", text).replace("\x00", "").replace("\r\n", "\n")
    blocks, unclosed = _blocks(text)
    said = _SUITABLE.search(_outside(text))
    if said is not None and said[1].lower() == "no" and not blocks:
        return Parsed(Outcome.UNSUITABLE)
    if not blocks and unclosed is None and cut:
        return Parsed(Outcome.TRUNCATED)
    if not blocks and unclosed is not None:
        if cut or not unclosed.strip():
            return Parsed(Outcome.TRUNCATED)
        blocks = [unclosed]
    if not blocks:
        bare = _SUITABLE.sub("", text).strip()
        if not any(word in bare for word in _CODE_WORDS):
            return Parsed(Outcome.NO_CODE)
        blocks = [bare]
    code = next((block for block in reversed(blocks) if block.strip()), "")
    if not code:
        return Parsed(Outcome.NO_CODE)
    code = code.strip("\n") + "\n"
    if given and same_code(code, given):
        return Parsed(Outcome.UNCHANGED, code)
    return Parsed(Outcome.ANSWERED, code)


def same_code(one: str, other: str) -> bool:
    """Whether two texts differ at most in comments and white space."""
    return _bare(one) == _bare(other)


def _bare(code: str) -> str:
    return _SPACE.sub("", _COMMENT.sub("", code))


def _blocks(text: str) -> tuple[list[str], str | None]:
    """The fenced blocks, and what follows an opening fence that is never closed."""
    blocks: list[str] = []
    start: int | None = None
    mark = ""
    for fence in _FENCE.finditer(text):
        if start is None:
            start, mark = fence.end() + 1, fence[1]
        elif fence[1][0] == mark[0] and len(fence[1]) >= len(mark) and not fence[2]:
            blocks.append(text[start : fence.start()])
            start = None
    return blocks, text[start:] if start is not None else None


def _outside(text: str) -> str:
    """What stands before the first fence."""
    fence = _FENCE.search(text)
    return text[: fence.start()] if fence else text
