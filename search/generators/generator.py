"""The contract of a generator: a prompt in, one answer out."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: The grammar of an answer in llama.cpp's GBNF: ``suitable: yes`` and one fenced block, or ``suitable: no``.
ANSWER_GRAMMAR = r"""
root  ::= "suitable: no" "\n"? | "suitable: yes\n" block
block ::= "```" ("cuda" | "cpp" | "c++")? "\n" line+ "```" "\n"?
line  ::= ([^`\n] [^\n]*)? "\n"
"""
#: As above without the choice, for prompts that ask for code in any case.
CODE_GRAMMAR = ANSWER_GRAMMAR.replace('"suitable: no" "\\n"? | ', "")
#: As above, after any number of lines that name the steps.
STEPS_GRAMMAR = CODE_GRAMMAR.replace("root  ::= ", 'root  ::= ([^`\\n]+ "\\n")* ')

_COMMENT = re.compile(r"[ \t]*//[^\n]*|/\*.*?\*/", re.DOTALL)
_BLANK = re.compile(r"\n\s*\n+")


class GeneratorFault(Exception):
    """The generator failed: no answer. It says nothing about the technique and never becomes a reward."""


@dataclass(frozen=True)
class Sampling:
    """How an answer is drawn."""

    seed: int
    temperature: float = 0.7
    top_p: float = 0.9
    max_tokens: int = 2048
    seconds: float = 300.0  #: deadline; an answer cut there is ``cut``


@dataclass(frozen=True)
class Prompt:
    """A prompt in ever shorter forms, each with a word on what was left out; the first that fits is sent."""

    forms: Sequence[tuple[str, str]]  #: (what was left out or "", text)
    grammar: str = ANSWER_GRAMMAR

    @property
    def text(self) -> str:
        """The whole prompt."""
        return self.forms[0][1]


@dataclass(frozen=True)
class Answer:
    """What the model wrote."""

    text: str
    cut: bool = False  #: it stopped at the limit of tokens or seconds
    left_out: str = ""  #: what of the prompt did not fit, e.g. ``example shortened``
    prompt_tokens: int = 0
    tokens: int = 0


class Generator(ABC):
    """A model that answers prompts. One object may be called from several threads; it answers one at a time unless it
    says otherwise. The same prompt and sampling give the same answer where the model allows it."""

    #: Who generated, for the search's record: the file's name and hash, or ``langchain:PROVIDER/NAME``.
    name: str

    @abstractmethod
    def generate(self, prompt: Prompt, sampling: Sampling) -> Answer:
        """One answer. Raises :class:`GeneratorFault` when the model gives none."""

    def close(self) -> None:  # noqa: B027 -- most generators hold nothing
        """Give memory and connections back."""


def shortened(code: str) -> str:
    """Code without comments and blank lines."""
    return _BLANK.sub("\n", _COMMENT.sub("", code)).strip("\n")


def example_forms(before: str, after: str) -> Iterator[tuple[str, str, str]]:
    """``(what was left out, before, after)``: the example whole, without comments, without its code before (cut to its
    first lines), and not at all."""
    yield "", before, after
    if before and after:
        short_before, short_after = shortened(before), shortened(after)
        yield "example shortened", short_before, short_after
        lines = short_after.splitlines()
        yield "example shortened", "// …", "\n".join(lines[: max(8, len(lines) // 2)])
        yield "example dropped", "", ""
