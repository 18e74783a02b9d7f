"""What a search asks of a generator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """How one answer is drawn."""

    seed: int
    temperature: float = 0.7
    top_p: float = 0.9
    max_tokens: int = 2048
    seconds: float = 120.0  #: deadline; what was written until then counts as truncated
    plan: bool = False  #: free text may stand before ``suitable:`` (chain of thought)


@dataclass(frozen=True)
class Completion:
    """An answer's text; ``truncated`` when it stopped at its token limit or deadline."""

    text: str
    truncated: bool = False


class Generator(ABC):
    """A model. Safe to call from several threads; calls of one object may wait for each other."""

    #: What is written into the graph as the author: the file's or model's name.
    name: str

    @abstractmethod
    def complete(self, prompt: str, sampling: Sampling) -> Completion:
        """Answer one user message. Raises :class:`PromptTooLong` when it does not fit the context."""

    def fits(self, prompt: str, answer_tokens: int) -> bool:  # noqa: ARG002 -- a hosted model says so itself
        """Whether the prompt and an answer of that many tokens fit the model's context."""
        return True

    def close(self) -> None:
        """Give its memory back. Safe to call twice."""
