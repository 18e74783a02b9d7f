"""What the knowledge graph says before anything was tried: which technique may follow, and in which order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from regraph_db.records import Level, Transition, TransitionStatistics
from search.settings import SearchSettings

#: Observations of "no gain" that a mean is drawn towards: one lucky example is no evidence yet.
SHRINKAGE = 2.0
#: log2 units of gain that a doubling of the examples is worth.
EXAMPLE_WEIGHT = 0.1
#: log2 units of gain that a doubling of other searches' mean return is worth; their baselines differ from task to task.
RETURN_WEIGHT = 0.25


@dataclass(frozen=True, slots=True)
class Successor:
    """A technique that may follow another."""

    technique: str
    prior: float  #: larger is tried first
    gain: float  #: mean measured gain on other tasks, log2; 0 where nothing was measured


@dataclass(frozen=True)
class Knowledge:
    """Successors by technique, the best prior first. A technique without an entry is a dead end."""

    successors: Mapping[str, tuple[Successor, ...]]

    def after(self, technique: str) -> tuple[Successor, ...]:
        return self.successors.get(technique, ())

    def gain(self, before: str, after: str) -> float:
        """Mean log2 gain of a transition, 0 where nothing is known."""
        return next((s.gain for s in self.after(before) if s.technique == after), 0.0)


def knowledge(transitions: Iterable[Transition], settings: SearchSettings, level: Level) -> Knowledge:
    """The successors that ``transitions`` allow, ordered by the prior that the settings choose.

    Give the transitions without the searched task's own statistics (``GraphStore.transitions(without_task=…)``), so
    that a task never meets its own answer. ``level`` says which returns may be used: measured and modelled ones are
    never mixed.
    """
    found: dict[str, list[Successor]] = {}
    for transition in transitions:
        statistics = transition.statistics
        successor = Successor(transition.after, prior(statistics, settings, level), _shrunk_gain(statistics))
        found.setdefault(transition.before, []).append(successor)
    return Knowledge({name: tuple(sorted(them, key=lambda s: (-s.prior, s.technique))) for name, them in found.items()})


def prior(statistics: TransitionStatistics, settings: SearchSettings, level: Level) -> float:
    """The prior of one transition: a number whose order counts."""
    if settings.prior == "none":
        return 0.0
    if settings.prior == "count":
        return float(statistics.examples)
    value = _shrunk_gain(statistics) + EXAMPLE_WEIGHT * math.log2(1 + statistics.examples)
    count, total = statistics.return_count, statistics.return_sum
    if level is Level.MODELLED:
        count, total = statistics.modelled_count, statistics.modelled_sum
    if count and level in (Level.GPU, Level.MODELLED):
        mean = total / (count + SHRINKAGE)
        value += RETURN_WEIGHT * (math.log2(1 + mean) if mean > 0 else mean)
    return value


def _shrunk_gain(statistics: TransitionStatistics) -> float:
    return statistics.gain_sum / (statistics.gain_count + SHRINKAGE) if statistics.gain_count else 0.0
