"""Broken invariants found and mended: the half of :meth:`check` and :meth:`repair` that every store shares.

Each store says what stands in it (:class:`StoredKnowledge`, :class:`StoredSearch`); what ought to stand there is
derived again from the trajectories, aliases and rollouts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from regraph_db.derive import Delta, Outline, RolledUp, Sums, resolver
from regraph_db.errors import InputError
from regraph_db.names import resolve
from regraph_db.portable import PortableStore, StoredSearch
from regraph_db.records import ROOT, Problem, Trajectory

K = TypeVar("K", tuple[str, str], tuple[str, str, str])


@dataclass(frozen=True, slots=True)
class StoredStep:
    """What a step's place in the graph says; ``position`` counts from 0."""

    position: int
    phrase: str
    before: str
    technique: str
    example: bool
    gain: float | None


@dataclass(frozen=True, slots=True)
class StoredTrajectory:
    """A trajectory as it stands; ``trajectory`` is ``None`` when no step of it is left."""

    id: str
    length: int
    trajectory: Trajectory | None
    steps: tuple[StoredStep, ...]


@dataclass(frozen=True)
class StoredKnowledge:
    """The knowledge half without its trajectories."""

    aliases: Mapping[str, tuple[str, str]]  #: technique named, technique resolved
    techniques: Mapping[str, tuple[bool, int, int]]  #: given, examples, trajectories
    shares: Mapping[tuple[str, str, str], Sums]
    transitions: Mapping[tuple[str, str], Sums]
    rolled_up: tuple[RolledUp, ...]


@dataclass
class Derived:
    """What the knowledge half ought to be."""

    total: Delta = field(default_factory=Delta)
    resolved: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class CaredStore(PortableStore):
    """``check`` and ``repair`` over what each store reads and writes itself."""

    def check(self) -> list[Problem]:
        knowledge = self._stored_knowledge()
        derived = derive(knowledge, self._stored_trajectories())
        problems = [*derived.problems, *_compare(knowledge, derived)]
        dead = self._dead_runners()
        for search in self.searches():
            attempts = {attempt.id for attempt in self.attempts(search.id)}
            problems += check_search(self._stored_search(search.id), attempts, dead)
        return problems

    def repair(self) -> list[Problem]:
        before = self.check()
        self.reclaim()
        self._rewrite_knowledge()
        for search in self.searches():
            self._rewrite_search(search.id)
        left = {(problem.invariant, problem.where) for problem in self.check()}
        return [problem for problem in before if (problem.invariant, problem.where) not in left]

    @abstractmethod
    def _stored_knowledge(self) -> StoredKnowledge: ...

    @abstractmethod
    def _stored_trajectories(self, task: str | None = None) -> Iterator[StoredTrajectory]:
        """By id, in constant memory; those of one task alone when it is named."""

    @abstractmethod
    def _dead_runners(self) -> set[str]:
        """Runners whose lease has ended."""

    @abstractmethod
    def _rewrite_knowledge(self) -> None:
        """Write steps' places, shares, transitions, techniques and resolved aliases again from :func:`derive`."""

    @abstractmethod
    def _rewrite_search(self, search: str) -> None:
        """Write in_flight, reserved and the states' best again from rollouts and attempts."""


def derive(
    knowledge: StoredKnowledge,
    trajectories: Iterable[StoredTrajectory],
    visit: Callable[[str, StoredStep], None] | None = None,
) -> Derived:
    """What follows from trajectories, aliases and rolled-up returns; ``visit`` is told (trajectory id, step as it
    should be) for every step that stands wrongly."""
    derived = Derived()
    named = {alias: technique for alias, (technique, _) in knowledge.aliases.items()}
    for alias in sorted(named):
        try:
            derived.resolved[alias] = resolve(alias, named)
        except InputError as error:
            derived.problems.append(Problem(invariant="alias_loop", where=alias, detail=error.what))
    to_technique = resolver({alias: technique for alias, technique in named.items() if alias in derived.resolved})
    for stored in trajectories:
        for problem in _check_trajectory(stored):
            derived.problems.append(problem)
        if stored.trajectory is None:
            continue
        outline = Outline.of(stored.trajectory)
        derived.total.add(outline, to_technique)
        expected = zip(stored.steps, outline.steps, outline.walk(to_technique), strict=True)
        for position, (there, facts, (before, after)) in enumerate(expected):
            due = StoredStep(position, facts.phrase, before, after, facts.example, facts.gain)
            if there != due:
                derived.problems.append(
                    Problem(
                        invariant="step_place",
                        where=f"{stored.id}:{there.position}",
                        detail=f"is {there}, should be {due}",
                        repairable=True,
                    )
                )
                if visit:
                    visit(stored.id, due)
    for returns in knowledge.rolled_up:
        derived.total.add_returns(returns, to_technique)
    return derived


def expected_techniques(knowledge: StoredKnowledge, derived: Derived) -> dict[str, tuple[bool, int, int]]:
    """Every technique that ought to exist: given, examples, trajectories."""
    names = {name for name, (given, _, _) in knowledge.techniques.items() if given}
    names |= derived.total.techniques.keys() | set(derived.resolved.values())
    names |= {name for pair, sums in derived.total.transitions().items() if not sums.empty for name in pair}
    return {
        name: (knowledge.techniques.get(name, (False, 0, 0))[0], *derived.total.techniques.get(name, (0, 0)))
        for name in sorted(names - {ROOT})
    }


def _check_trajectory(stored: StoredTrajectory) -> Iterator[Problem]:
    positions = [step.position for step in stored.steps]
    if positions != list(range(stored.length)):
        yield Problem(
            invariant="trajectory_steps",
            where=stored.id,
            detail=f"has steps {positions}, should have {stored.length}",
        )
    elif stored.trajectory is not None and stored.trajectory.id != stored.id:
        yield Problem(
            invariant="trajectory_id",
            where=stored.id,
            detail=f"its texts have the id {stored.trajectory.id}: they were changed",
        )


def _compare(knowledge: StoredKnowledge, derived: Derived) -> Iterator[Problem]:
    for alias, technique in derived.resolved.items():
        if knowledge.aliases[alias][1] != technique:
            yield _differs("alias_resolution", alias, knowledge.aliases[alias][1], technique)
    shares = {key: sums for key, sums in derived.total.shares.items() if not sums.empty}
    transitions = {key: sums for key, sums in derived.total.transitions().items() if not sums.empty}
    yield from _compare_sums("share_counts", knowledge.shares, shares)
    yield from _compare_sums("transition_counts", knowledge.transitions, transitions)
    for key, sums in knowledge.transitions.items():
        if min(sums.examples, sums.gain_count, sums.return_count, sums.modelled_count) < 0:
            yield Problem(invariant="negative_count", where=" → ".join(key), detail=str(sums), repairable=True)
    techniques = expected_techniques(knowledge, derived)
    for technique in sorted(knowledge.techniques.keys() | techniques.keys()):
        if knowledge.techniques.get(technique) != techniques.get(technique):
            yield _differs(
                "technique_counts", technique, knowledge.techniques.get(technique), techniques.get(technique)
            )


def _compare_sums(invariant: str, there: Mapping[K, Sums], due: Mapping[K, Sums]) -> Iterator[Problem]:
    for key in sorted(there.keys() | due.keys()):
        if there.get(key) != due.get(key):
            yield _differs(invariant, " → ".join(key), there.get(key), due.get(key))


def _differs(invariant: str, where: str, there: object, due: object) -> Problem:
    return Problem(invariant=invariant, where=where, detail=f"is {there}, should be {due}", repairable=True)


def in_flight(stored: StoredSearch) -> Counter[tuple[str, str]]:
    """Begun rollouts through each edge."""
    return Counter(edge for rollout in stored.rollouts if rollout.status == "begun" for edge in rollout.path)


def reserved(stored: StoredSearch) -> int:
    """Calls that begun rollouts hold."""
    return sum(rollout.calls for rollout in stored.rollouts if rollout.status == "begun")


def check_search(stored: StoredSearch, attempts: set[str], dead: set[str]) -> Iterator[Problem]:
    """The broken invariants of one search; ``attempts`` are the ids it holds, ``dead`` the runners whose lease has
    ended."""
    name = f"search {stored.search.id}"
    states = {state.id for state in stored.states}
    runners = {runner.id for runner in stored.runners}
    if stored.root not in states:
        yield Problem(invariant="root_state", where=name, detail=f"the root {stored.root} is not among its states")
    flying = in_flight(stored)
    for edge in stored.edges:
        where = f"{name}, edge {edge.source} → {edge.target}"
        due = flying[edge.source, edge.target]
        if edge.in_flight != due:
            yield _differs("in_flight", where, edge.in_flight, due)
        if not {edge.source, edge.target} <= states:
            yield Problem(invariant="edge_ends", where=where, detail="one of its states is not there")
    if stored.search.reserved != reserved(stored):
        yield _differs("reserved_calls", name, stored.search.reserved, reserved(stored))
    for rollout in stored.rollouts:
        if rollout.status != "begun":
            continue
        if rollout.runner not in runners:
            yield Problem(
                invariant="rollout_runner",
                where=f"{name}, rollout {rollout.id}",
                detail=f"its runner {rollout.runner} is not there",
            )
        elif rollout.runner in dead:
            yield Problem(
                invariant="dead_lease",
                where=f"{name}, rollout {rollout.id}",
                detail=f"the lease of its runner {rollout.runner} has ended",
                repairable=True,
            )
    for state in stored.states:
        if state.best_attempt is not None and state.best_attempt not in attempts:
            yield Problem(
                invariant="best_attempt",
                where=f"{name}, state {state.id}",
                detail=f"the attempt {state.best_attempt} is not there",
                repairable=True,
            )
