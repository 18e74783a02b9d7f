"""A model's answer: a line ``suitable: yes|no``, then one fenced block. Parsing is tolerant, failures are typed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What one generator call gave; every one costs a unit of the budget."""

    ANSWERED = "answered"  #: code came
    NO_CODE = "no_code"  #: neither code nor a refusal
    TRUNCATED = "truncated"  #: the answer ended before its block did
    UNSUITABLE = "unsuitable"  #: the model said that the technique does not fit
    UNCHANGED = "unchanged"  #: the code is the one it was given
    FAILED = "failed"  #: the generator raised, hung or gave more than it may


@dataclass(frozen=True)
class Answer:
    """``code`` is empty unless ``outcome`` is ``answered`` (or ``unchanged``); ``note`` is for people."""

    outcome: Outcome
    code: str = ""
    note: str = ""


#: A longer answer is not read: no kernel is this long.
LARGEST_ANSWER = 512 * 1024

_SUITABLE = re.compile(r"^\W*suitable\W*:\W*(yes|no)\b", re.IGNORECASE | re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_OPEN_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n", re.MULTILINE)
_SPACE = re.compile(r"\s+")


def parse(text: str, given: str, *, truncated: bool = False) -> Answer:
    """Read an answer to a prompt whose code was ``given``. ``truncated``: the generator stopped at its token limit.

    The last complete fenced block counts, so that thinking aloud with snippets does no harm. Without a fence an answer that
    holds a ``__global__`` is taken whole.
    """
    if len(text) > LARGEST_ANSWER:
        return Answer(Outcome.FAILED, note=f"the answer has {len(text)} characters")
    said = _SUITABLE.search(text)
    if said and said[1].lower() == "no":
        return Answer(Outcome.UNSUITABLE)
    blocks = [match[2] for match in _FENCE.finditer(text)]
    if not blocks:
        if truncated or _OPEN_FENCE.search(text):
            return Answer(Outcome.TRUNCATED)
        body = text[said.end() :] if said else text
        if "__global__" not in body:
            return Answer(Outcome.NO_CODE, note=text.strip()[:200])
        blocks = [body]
    code = blocks[-1].strip("\n") + "\n"
    if not code.strip():
        return Answer(Outcome.NO_CODE)
    if _SPACE.sub("", code) == _SPACE.sub("", given):
        return Answer(Outcome.UNCHANGED, code)
    return Answer(Outcome.ANSWERED, code)
