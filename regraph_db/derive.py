"""What trajectories, aliases and searches say of the knowledge graph: the pure rules that every store shares.

* A step's *phrase* is its method in normal form; its technique is what the aliases resolve the phrase to.
* Step 0 goes from the root, every other step from the technique of the step before it, whatever that step's verdict: a
  failed step cuts nothing here (the ingest cuts).
* A step is an *example* of its transition when its verdict is ``passed`` or unknown. Any other step is kept, and its
  technique exists through it, but it counts in no statistic.
* An example's *gain* is log2(seconds before / seconds after): both steps passed on a GPU of the same name with a
  time. The first step's time before is its own verdict's baseline, when that is the sequential reference. Else it has
  no gain.
* A trajectory that comes again with verdicts that reach further replaces the one that stands (:func:`trust`), so that
  the order in which levels come in does not matter.
* Sums are whole numbers of millionths, so that no order of writing changes them by a bit.
* A transition's statistics are the sum of its tasks' *shares*; a share comes from examples and from rolled-up searches.
  Rolled-up names are resolved by the aliases as phrases are. A transition exists while one of its counts is not 0.
* A technique exists while it was given by :meth:`~regraph_db.store.GraphStore.put_techniques`, a step or an alias
  resolves to it, or a transition ends at it. One that is itself an alias of another is not listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from regraph_db.names import normalise, resolve
from regraph_db.records import (
    ROOT,
    Count,
    Level,
    Record,
    Step,
    Trajectory,
    TransitionStatistics,
    Verdict,
    VerdictKind,
)

#: Units of a stored sum in one.
MICRO = 1_000_000

Resolve = Callable[[str], str]


def micros(value: float) -> int:
    """``value`` in whole millionths."""
    return round(value * MICRO)


class Sums(NamedTuple):
    """One share or transition: counts, and sums in millionths."""

    examples: int = 0
    gain_count: int = 0
    gain_micros: int = 0
    return_count: int = 0
    return_micros: int = 0
    modelled_count: int = 0
    modelled_micros: int = 0

    def plus(self, other: Sums, sign: int = 1) -> Sums:
        return Sums(*(a + sign * b for a, b in zip(self, other, strict=True)))

    @property
    def empty(self) -> bool:
        return not (self.examples or self.return_count or self.modelled_count)

    def statistics(self) -> TransitionStatistics:
        return TransitionStatistics(
            examples=self.examples,
            gain_count=self.gain_count,
            gain_sum=self.gain_micros / MICRO,
            return_count=self.return_count,
            return_sum=self.return_micros / MICRO,
            modelled_count=self.modelled_count,
            modelled_sum=self.modelled_micros / MICRO,
        )


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What the graph's shape takes from one step: no code."""

    phrase: str
    example: bool
    gain: float | None


@dataclass(frozen=True, slots=True)
class Outline:
    """What the graph's shape takes from one trajectory."""

    task: str
    steps: tuple[StepFacts, ...]

    @classmethod
    def of(cls, trajectory: Trajectory) -> Outline:
        steps = trajectory.steps
        facts = (
            StepFacts(normalise(step.method), is_example(step), gain(steps[i - 1] if i else None, step))
            for i, step in enumerate(steps)
        )
        return cls(trajectory.task, tuple(facts))

    def walk(self, to_technique: Resolve) -> list[tuple[str, str]]:
        """The (technique before, technique) of each step, from the root."""
        names = [ROOT, *(to_technique(step.phrase) for step in self.steps)]
        return list(pairwise(names))


#: How far each level reaches.
_REACH = {level: reach for reach, level in enumerate(Level)}

#: How far a trajectory was verified: the reach of its steps, weakest first; the greater tuple is believed.
Trust = tuple[int, ...]


def reach(level: Level) -> int:
    """The level's place among the levels, 0 for ``none``."""
    return _REACH[level]


def trust(verdicts: Iterable[Verdict | None]) -> Trust:
    """How far the steps with these verdicts were verified. What does not compile will not at any other level."""
    return tuple(sorted(_trust(verdict) for verdict in verdicts))


def _trust(verdict: Verdict | None) -> int:
    if verdict is None:
        return 0
    return _REACH[Level.GPU if verdict.verdict is VerdictKind.COMPILE_ERROR else verdict.level]


def restored(trajectory: Trajectory, identity: str) -> Trajectory:
    """A trajectory as it was merged under ``identity``: one that ends with a failed step may have been cut there."""
    cut = not is_example(trajectory.steps[-1]) and trajectory.id != identity
    return trajectory.model_copy(update={"whole": identity}) if cut else trajectory


def is_example(step: Step) -> bool:
    """Whether a step stands as an example: passed, or never judged."""
    return step.verdict is None or step.verdict.passed


def gain(previous: Step | None, step: Step) -> float | None:
    """log2 of the measured time before the step over the time after it; ``previous`` is ``None`` for a first step."""
    after = step.verdict
    if after is None or not after.passed or after.level is not Level.GPU or not after.candidate_seconds:
        return None
    if previous is None:
        seconds = after.baseline_seconds if after.baseline == "reference" else None
    else:
        before = previous.verdict
        comparable = (
            before is not None
            and before.passed
            and before.level is Level.GPU
            and before.evidence.gpu == after.evidence.gpu
        )
        seconds = before.candidate_seconds if before is not None and comparable else None
    return math.log2(seconds / after.candidate_seconds) if seconds else None


class RolledUp(Record):
    """One search's returns along one transition."""

    search: str
    before: str  #: technique, as the search had it
    after: str
    task: str
    level: Level  #: ``gpu`` or ``modelled``
    count: Count
    micros: int  #: sum of the returns in millionths


@dataclass
class Delta:
    """What a write adds to the shares and techniques; added with sign -1 it is taken away."""

    shares: dict[tuple[str, str, str], Sums] = field(default_factory=dict)  #: (before, after, task)
    techniques: dict[str, tuple[int, int]] = field(default_factory=dict)  #: examples, trajectories

    def add(self, outline: Outline, to_technique: Resolve, sign: int = 1) -> None:
        """One trajectory's contribution under one set of aliases."""
        walk = outline.walk(to_technique)
        for (before, after), step in zip(walk, outline.steps, strict=True):
            if step.example:
                known = step.gain is not None
                self._share(before, after, outline.task, Sums(1, int(known), micros(step.gain or 0.0)), sign)
                self._technique(after, sign, 0)
        for name in {after for _, after in walk}:
            self._technique(name, 0, sign)

    def add_returns(self, returns: RolledUp, to_technique: Resolve, sign: int = 1) -> None:
        """One search's returns along one transition; a level that measures no speed adds nothing."""
        if returns.level is Level.GPU:
            sums = Sums(return_count=returns.count, return_micros=returns.micros)
        elif returns.level is Level.MODELLED:
            sums = Sums(modelled_count=returns.count, modelled_micros=returns.micros)
        else:
            return
        self._share(to_technique(returns.before), to_technique(returns.after), returns.task, sums, sign)

    def transitions(self) -> dict[tuple[str, str], Sums]:
        """The shares summed over tasks."""
        totals: dict[tuple[str, str], Sums] = {}
        for (before, after, _), sums in self.shares.items():
            totals[before, after] = totals.get((before, after), Sums()).plus(sums)
        return totals

    def names(self) -> set[str]:
        """Every technique that it touches, the root left out."""
        ends = {name for before, after, _ in self.shares for name in (before, after)}
        return (ends | self.techniques.keys()) - {ROOT}

    def changed(self) -> int:
        """How many transitions it changes."""
        return sum(sums != Sums() for sums in self.transitions().values())

    def _share(self, before: str, after: str, task: str, sums: Sums, sign: int) -> None:
        key = (before, after, task)
        self.shares[key] = self.shares.get(key, Sums()).plus(sums, sign)

    def _technique(self, name: str, examples: int, trajectories: int) -> None:
        old = self.techniques.get(name, (0, 0))
        self.techniques[name] = (old[0] + examples, old[1] + trajectories)


def replaced_returns(old: Iterable[RolledUp], new: Iterable[RolledUp], to_technique: Resolve) -> Delta:
    """The change when ``new`` rolled-up returns stand in place of ``old`` ones."""
    delta = Delta()
    for returns in old:
        delta.add_returns(returns, to_technique, -1)
    for returns in new:
        delta.add_returns(returns, to_technique)
    return delta


def resolver(aliases: Mapping[str, str]) -> Resolve:
    """A function from a phrase to its technique under ``aliases`` (alias to what it names)."""
    return lambda phrase: resolve(phrase, aliases)


def moved(old: Mapping[str, str], new: Mapping[str, str]) -> set[str]:
    """The phrases that two alias tables resolve differently. Raises :class:`InputError` when ``new`` holds a loop."""
    return {name for name in old.keys() | new.keys() if resolve(name, old) != resolve(name, new)}
