"""The contract of a strategy: it plans rollouts and, in each, asks for candidates and learns what the judge said."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, ClassVar

from regraph_db.records import Attempt, SearchSnapshot
from search.core import Walked
from search.generators import Prompt

if TYPE_CHECKING:
    from search.strategies.ground import Ground


@dataclass(frozen=True)
class Ask:
    """One generator call to make, and what its attempt will record."""

    prompt: Prompt
    given: str  #: the code to be rewritten
    source: str | None = None
    target: str | None = None
    technique: str = ""
    example: str | None = None
    parent: str | None = None  #: the attempt that wrote ``given``
    guide: float = 0.0  #: log2 gain that the candidate's techniques had on other tasks; used where no speed is known


#: A rollout under way: yields asks that may run side by side, is sent their attempts, returns what to write. One that
#: :class:`search.core.Halted` is thrown into returns what it has learnt so far, or raises it again.
Rollout = Generator[Sequence[Ask], Sequence[Attempt], Walked]


@dataclass(frozen=True)
class Plan:
    """A rollout that may begin."""

    calls: int  #: generator calls to reserve
    rollout: Callable[[int], Rollout]  #: takes the number of calls granted, at least 1
    path: tuple[tuple[str, str], ...] = ()  #: the edges that it holds in flight


class Strategy(ABC):
    """One way to spend a budget of generator calls. A strategy keeps nothing between rollouts: all it knows stands
    in the store, so that any number of runners may share a search and a killed one loses nothing."""

    name: ClassVar[str]
    #: Whether rollouts of one runner may be interleaved.
    interleaves: ClassVar[bool] = True
    #: Whether it walks the reasoning graph, and so has nothing to do in an empty one.
    needs_transitions: ClassVar[bool] = False

    def __init__(self, ground: Ground) -> None:
        self.ground = ground

    @abstractmethod
    def plan(self, snapshot: SearchSnapshot, rng: Random) -> Plan:
        """The next rollout. ``rng`` is this rollout's own."""
