"""The plainest store there is: two sets in memory, everything derived anew at every question. What the real ones must
equal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from regraph_db.names import normalise
from regraph_db.records import (
    Alias,
    Attempt,
    ExploredEdge,
    Rollout,
    RolloutResult,
    Search,
    State,
    Step,
    Technique,
    Trajectory,
    Transition,
    TransitionStatistics,
)


def _gain(previous: Step | None, step: Step) -> float | None:
    now = step.verdict
    if not (now and now.passed and now.level == "gpu" and now.candidate_seconds):
        return None
    if previous is None:
        before = now.baseline_seconds if now.baseline == "reference" else None
    else:
        then = previous.verdict
        same = then and then.passed and then.level == "gpu" and then.evidence.gpu == now.evidence.gpu
        before = then.candidate_seconds if then and same else None
    return math.log2(before / now.candidate_seconds) if before else None


def _reached(trajectory: Trajectory) -> list[int]:
    levels = ["none", "compile", "functional", "modelled", "gpu"]
    return sorted(0 if step.verdict is None else levels.index(step.verdict.level) for step in trajectory.steps)


@dataclass
class KnowledgeModel:
    """Trajectories, aliases, given techniques and rolled-up returns."""

    trajectories: dict[str, Trajectory] = field(default_factory=dict)
    aliases: dict[str, Alias] = field(default_factory=dict)
    given: dict[str, Technique] = field(default_factory=dict)
    returns: dict[tuple[str, str, str], tuple[str, int, Fraction]] = field(default_factory=dict)

    def resolve(self, name: str) -> str | None:
        """The end of the chain; ``None`` for a loop."""
        seen = {name}
        while (alias := self.aliases.get(name)) and alias.technique != name:
            name = alias.technique
            if name in seen:
                return None
            seen.add(name)
        return name

    def put_aliases(self, aliases: list[Alias], *, replace: bool) -> bool:
        """Whether they were accepted: a loop refuses them all."""
        old = dict(self.aliases)
        for alias in aliases:
            if replace or alias.alias not in self.aliases:
                self.aliases[alias.alias] = alias
        if any(self.resolve(name) is None for name in self.aliases):
            self.aliases = old
            return False
        return True

    def merge(self, trajectories: list[Trajectory]) -> int:
        old = len(self.trajectories)
        for new in trajectories:
            there = self.trajectories.setdefault(new.id, new)
            if _reached(new) > _reached(there):
                self.trajectories[new.id] = new
        return len(self.trajectories) - old

    def put_techniques(self, techniques: list[Technique]) -> None:
        for new in techniques:
            old = self.given.get(new.name, Technique(name=new.name))
            self.given[new.name] = Technique(
                name=new.name, description=new.description or old.description, shipped=new.shipped or old.shipped
            )

    def steps(self) -> list[tuple[Trajectory, int, Step, str, str]]:
        """Every step with its trajectory, index and the techniques before and after."""
        found = []
        for trajectory in self.trajectories.values():
            before = "init"
            for index, step in enumerate(trajectory.steps):
                after = self.resolve(normalise(step.method))
                assert after is not None
                found.append((trajectory, index, step, before, after))
                before = after
        return found

    def transitions(self, *, without_task: str | None = None) -> list[Transition]:
        sums: dict[tuple[str, str], list[Fraction]] = {}
        for trajectory, index, step, before, after in self.steps():
            if trajectory.task == without_task or (step.verdict and not step.verdict.passed):
                continue
            entry = sums.setdefault((before, after), [Fraction(0)] * 5)
            entry[0] += 1
            gain = _gain(trajectory.steps[index - 1] if index else None, step)
            if gain is not None:
                entry[1] += 1
                entry[2] += Fraction(round(gain * 1_000_000), 1_000_000)
        for (_, before, after), (task, count, total) in self.returns.items():
            if task != without_task and count:
                ends = (self.resolve(before) or "", self.resolve(after) or "")
                entry = sums.setdefault(ends, [Fraction(0)] * 5)
                entry[3] += count
                entry[4] += total
        return [
            Transition(
                before=before,
                after=after,
                statistics=TransitionStatistics(
                    examples=int(e[0]),
                    gain_count=int(e[1]),
                    gain_sum=float(e[2]),
                    return_count=int(e[3]),
                    return_sum=float(e[4]),
                ),
            )
            for (before, after), e in sorted(sums.items())
        ]

    def techniques(self) -> list[tuple[Technique, int, int]]:
        steps = self.steps()
        names = {after for *_, after in steps} | set(self.given)
        names |= {self.resolve(alias) or "" for alias in self.aliases}
        names |= {end for t in self.transitions() for end in (t.before, t.after)}
        names -= {"init"}
        names = {name for name in names if self.resolve(name) == name}
        return [
            (
                self.given.get(name, Technique(name=name)),
                sum(a == name and (s.verdict is None or s.verdict.passed) for _, _, s, _, a in steps),
                len({t.id for t, _, _, _, a in steps if a == name}),
            )
            for name in sorted(names)
        ]

    def examples(
        self, before: str, after: str, *, without_task: str | None = None, without_function: str | None = None
    ) -> list[str]:
        return sorted(
            f"{t.id}:{i}"
            for t, i, s, b, a in self.steps()
            if (b, a) == (before, after)
            and t.task != without_task
            and t.function != without_function
            and (s.verdict is None or s.verdict.passed)
        )


@dataclass
class SearchModel:
    """One search."""

    search: Search
    states: dict[str, State] = field(default_factory=dict)
    edges: dict[tuple[str, str], ExploredEdge] = field(default_factory=dict)
    begun: dict[str, tuple[Rollout, int]] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)

    def add(self, states: tuple[State, ...], edges: tuple[ExploredEdge, ...]) -> None:
        for state in states:
            self.states.setdefault(state.id, State(id=state.id, technique=state.technique))
        for edge in edges:
            plain = ExploredEdge(source=edge.source, target=edge.target, prior=edge.prior)
            self.edges.setdefault((edge.source, edge.target), plain)

    def begin(self, rollout: Rollout) -> int:
        if rollout.id in self.begun:
            return self.begun[rollout.id][1]
        if rollout.id in self.ended:
            return 0
        held = sum(granted for _, granted in self.begun.values())
        granted = min(rollout.calls, self.search.budget - self.search.calls - held)
        if granted <= 0:
            return 0
        self.begun[rollout.id] = (rollout, granted)
        return granted

    def finish(self, result: RolloutResult) -> bool:
        if result.rollout not in self.begun:
            return False
        del self.begun[result.rollout]
        self.ended[result.rollout] = "finished"
        self.search = self.search.model_copy(update={"calls": self.search.calls + result.calls})
        self.add(result.states, result.edges)
        for one in result.returns:
            edge = self.edges[one.source, one.target]
            changes: dict[str, object] = {"refusals": edge.refusals + one.refusals}
            if one.value is not None:
                changes["visits"] = edge.visits + 1
                changes["value_sum"] = edge.value_sum + one.value
                changes["value_sq_sum"] = edge.value_sq_sum + one.value**2
                changes["best"] = one.value if edge.best is None else max(edge.best, one.value)
            self.edges[one.source, one.target] = edge.model_copy(update=changes)
        for state, value in result.returned_at_nodes:
            node = self.states[state]
            self.states[state] = node.model_copy(
                update={"visits": node.visits + 1, "value_sum": node.value_sum + value}
            )
        for attempt in result.attempts:
            self.attempts.append(attempt)
            node = self.states[attempt.target or ""]
            if node.best_attempt is None or (attempt.speedup or 0) > (node.best_speedup or 0):
                better = {"best_attempt": attempt.id, "best_speedup": attempt.speedup}
                self.states[node.id] = node.model_copy(update=better)
        return True

    def flying(self) -> dict[tuple[str, str], int]:
        """Begun rollouts through each edge."""
        return {key: sum(key in set(r.path) for r, _ in self.begun.values()) for key in self.edges}
