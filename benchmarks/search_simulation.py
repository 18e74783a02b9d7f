"""The search core on synthetic graphs, without a model: graph mode against paper mode against the random walk.

``python benchmarks/search_simulation.py [--tasks 400] [--budget 200] [--quick]``. Seeded; one JSON line. A task is a
random cyclic graph of techniques in which every transition succeeds with its own chance and multiplies the speed by
its own factor, once; what no technique touches (the roofline, Amdahl's rest) bounds the speedup at 4 to 256. The
examples and gains of the prior come from other tasks on the same graph. Figures are geometric means over the tasks
of the best speedup, as ratios to the random walk's.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from regraph_db.records import ROOT, Level, RolloutResult, Transition, TransitionStatistics
from search.core import FAILED, Judged, Knowledge, Selection, Step, Tree, Walked, knowledge, reward, select, walk
from search.settings import SearchSettings

TECHNIQUES = 24
OUT_DEGREE = 6
STEP_CAP = 10
#: Rollouts at a time. A runner of the default settings interleaves two.
RUNNERS = (2, 4, 8, 16)


@dataclass(frozen=True)
class World:
    """What all tasks share: the graph, and how good each transition is on average."""

    successors: dict[str, tuple[str, ...]]
    gain: dict[tuple[str, str], float]  #: mean log2 gain
    success: dict[tuple[str, str], float]  #: mean chance that the model's code is right

    @classmethod
    def drawn(cls, rng: Random) -> World:
        names = [f"technique {k:02}" for k in range(TECHNIQUES)]
        successors = {name: tuple(rng.sample(names, OUT_DEGREE)) for name in names}
        successors[ROOT] = tuple(rng.sample(names, OUT_DEGREE))
        edges = [(u, v) for u, them in successors.items() for v in them]
        worth = {name: rng.gauss(0.3, 0.6) for name in names}
        return cls(
            successors,
            {(u, v): worth[v] + rng.gauss(0.0, 0.4) + (2.0 if u == ROOT else 0.0) for u, v in edges},
            {edge: rng.uniform(0.3, 0.95) for edge in edges},
        )

    def transitions(self, rng: Random) -> list[Transition]:
        """What the knowledge graph would hold: a few noisy examples of each transition, from other tasks."""
        found = []
        for (before, after), gain in sorted(self.gain.items()):
            count = 1 + int(rng.expovariate(0.3))
            measured = [gain + rng.gauss(0.0, 0.8) for _ in range(count)]
            statistics = TransitionStatistics(examples=count, gain_count=count, gain_sum=sum(measured))
            found.append(Transition(before=before, after=after, statistics=statistics))
        return found


@dataclass(frozen=True)
class Code:
    """What stands for a kernel: the product of its gains and its speedup, both in log2, and the techniques applied."""

    gains: float = 0.0
    speed: float = 0.0
    applied: frozenset[str] = frozenset()


class Task:
    """One kernel to optimise in a world: its own deviations from the world's means, and its bound."""

    def __init__(self, world: World, rng: Random) -> None:
        self.rest = 2 ** -rng.uniform(2.0, 8.0)
        self.gain = {edge: gain + rng.gauss(0.0, 0.6) for edge, gain in sorted(world.gain.items())}
        self.success = {
            edge: (0.0 if rng.random() < 0.1 else min(1.0, max(0.0, chance + rng.gauss(0.0, 0.15))))
            for edge, chance in sorted(world.success.items())
        }

    def rewrite(self, code: Code, step: Step, rng: Random) -> Code | None:
        """The code after a step; ``None`` where the answer is wrong."""
        edge = (step.before, step.after)
        if rng.random() >= self.success[edge]:
            return None
        gain = 0.0 if step.after in code.applied else self.gain[edge]
        gains = code.gains + gain + rng.gauss(0.0, 0.05)
        return Code(gains, -math.log2(self.rest + (1 - self.rest) * 2**-gains), code.applied | {step.after})


class Simulation:
    """One search over one task, advanced in memory; ``runners`` rollouts are under way at a time."""

    def __init__(
        self, task: Task, facts: Knowledge, settings: SearchSettings, seed: int, *, random_walk: bool = False
    ) -> None:
        self.task = task
        self.facts = facts
        self.settings = settings
        self.random_walk = random_walk
        #: Calls that a rollout reserves, as :mod:`search.strategies.mcgs` does.
        self.most = settings.step_cap * (settings.attempts_at_node if random_walk else 1)
        self.rng = Random(seed)
        self.tree = Tree.rooted(ROOT)
        self.codes = {ROOT: Code()}
        self.best = 0.0
        self.calls = 0
        self.reserved = 0

    def run(self, budget: int, runners: int = 1) -> float:
        """The best log2 speedup after ``budget`` calls."""
        slots: list[Generator[None, None, None]] = []
        while self.calls < budget or slots:
            while len(slots) < runners and (free := budget - self.calls - self.reserved) > 0:
                granted = min(self.most, free)
                self.reserved += granted
                slots.append(self._rollout(granted))
            for slot in list(slots):
                try:
                    next(slot)
                except StopIteration:
                    slots.remove(slot)
        return self.best

    def _rollout(self, granted: int) -> Generator[None, None, None]:
        selection = Selection((), False) if self.random_walk else select(self.tree, self.facts, self.settings)
        self.tree.begin(selection.path)
        # A runner reads the store once a rollout: what others finish meanwhile it sees at its next one.
        tree, codes = as_of_now(self.tree), dict(self.codes)
        own: dict[str, Code] = {}
        steps = walk(tree, selection, self.facts, self.settings, self.rng, granted, through_failures=self.random_walk)
        step = next(steps, None)
        walked = Walked()
        used = 0
        while step is not None:
            used += 1
            self.calls += 1
            self.reserved -= 1
            yield
            code = self.task.rewrite(self._code(step.source, own, codes), step, self.rng)
            if code is not None:
                own[step.target] = code
                self.best = max(self.best, code.speed)
            judged = Judged(FAILED if code is None else reward(2**code.speed, self.settings))
            try:
                step = steps.send(judged)
            except StopIteration as end:
                walked = end.value
                break
        self.tree.release(selection.path)
        self.reserved -= granted - used
        if not self.random_walk:
            result = RolloutResult(
                rollout="r", search="s", returns=walked.returns, states=walked.states, edges=walked.edges,
                returned_at_nodes=walked.returned_at_nodes,
            )  # fmt: skip
            written = {state for state in own if state in self.tree.nodes or any(s.id == state for s in walked.states)}
            self.tree.finish(result, {state: 2 ** own[state].speed for state in written})
            for state in written:
                if state not in self.codes or own[state].speed > self.codes[state].speed:
                    self.codes[state] = own[state]

    def _code(self, state: str, own: dict[str, Code], stored: dict[str, Code]) -> Code:
        if self.random_walk:
            return own.get(state, Code())
        known = [codes[state] for codes in (own, stored) if state in codes]
        return max(known, key=lambda code: code.speed) if known else Code()


def as_of_now(tree: Tree) -> Tree:
    """A copy, as a snapshot is."""
    edges = {key: replace(edge) for key, edge in tree.edges.items()}
    nodes = {name: replace(node, edges=[edges[e.key] for e in node.edges]) for name, node in tree.nodes.items()}
    return replace(tree, nodes=nodes, edges=edges, node_flights=dict(tree.node_flights))


VARIANTS: dict[str, dict[str, object]] = {
    "graph": {},
    "graph, raw bound": {"scale": "raw", "exploration": 1.0, "visit_penalty": 1.0},
    "paper": {"mode": "paper"},
}


def geometric_mean(logarithms: list[float]) -> float:
    """2 to the mean."""
    return 2 ** (sum(logarithms) / len(logarithms))


def compare(tasks: int, budget: int, seed: int, worlds: int = 20) -> dict[str, list[float]]:
    """The best log2 speedups by variant, one a task."""
    found: dict[str, list[float]] = {name: [] for name in ["random", *VARIANTS, *(f"{n} runners" for n in RUNNERS)]}
    for number in range(tasks):
        world_rng = Random(f"{seed} world {number % worlds}")
        world = World.drawn(world_rng)
        transitions = world.transitions(world_rng)
        task = Task(world, Random(f"{seed} task {number}"))

        # Called within this turn of the loop, so that its variables are the ones meant (B023).
        def run(name: str, values: dict[str, object], runners: int = 1, walk_at_random: bool = False) -> None:
            settings = SearchSettings.model_validate({"step_cap": STEP_CAP, **values})
            facts = knowledge(transitions, settings, Level.GPU)  # noqa: B023
            if walk_at_random:
                settings = settings.model_copy(update={"epsilon": 1.0})
            simulation = Simulation(task, facts, settings, seed * 1_000_003 + number, random_walk=walk_at_random)  # noqa: B023
            found[name].append(simulation.run(budget, runners))

        run("random", {}, walk_at_random=True)
        for name, values in VARIANTS.items():
            run(name, values)
        for runners in RUNNERS:
            run(f"{runners} runners", {}, runners)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--budget", type=int, action="append", help="generator calls; may be given several times")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="40 tasks")
    options = parser.parse_args()
    tasks = 40 if options.quick else options.tasks
    for budget in options.budget or [50, 200]:
        found = compare(tasks, budget, options.seed)
        means = {name: geometric_mean(values) for name, values in found.items()}
        print(
            json.dumps(
                {
                    "benchmark": "search_simulation",
                    "figures": {"tasks": tasks, "budget": budget, **{k: round(v, 4) for k, v in means.items()}},
                    "ratios": {
                        **{f"{name} / random": round(means[name] / means["random"], 4) for name in VARIANTS},
                        "graph / paper": round(means["graph"] / means["paper"], 4),
                        **{f"{n} runners / 1": round(means[f"{n} runners"] / means["graph"], 4) for n in RUNNERS},
                        "tasks where graph is no worse than random": round(
                            sum(g >= r - 1e-9 for g, r in zip(found["graph"], found["random"], strict=True)) / tasks, 4
                        ),
                    },
                }
            )
        )
    if not math.isfinite(sum(means.values())):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
