"""How many selections a second the core makes on a graph of 1,000 edges, and whether knowledge of any size slows it.

``python benchmarks/search_core.py``. One JSON line. A selection is one whole walk from the root to the place where a
rollout begins, in a search that has made 400 rollouts. ``examples`` varies what the knowledge graph's statistics
count, from 100 to 100,000, at the same number of transitions.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from regraph_db.records import ROOT, Level, RolloutResult, Transition, TransitionStatistics
from search.core import FAILED, Judged, Knowledge, Tree, Walked, knowledge, select, walk
from search.settings import SearchSettings

TECHNIQUES = 100
OUT_DEGREE = 10
ROLLOUTS = 400
SELECTIONS = 20_000


def grown(examples: int, settings: SearchSettings) -> tuple[Tree, Knowledge]:
    """A search of 400 rollouts over a graph of 1,000 transitions, with outcomes drawn at random."""
    rng = Random(1)
    names = [ROOT, *(f"technique {k}" for k in range(1, TECHNIQUES))]
    pairs = [(u, v) for u in names for v in rng.sample(names[1:], OUT_DEGREE)]
    each, more = divmod(examples, len(pairs))
    transitions = []
    for place, (u, v) in enumerate(pairs):
        count = each + (place < more)
        statistics = TransitionStatistics(examples=count, gain_count=count, gain_sum=count * 0.5)
        transitions.append(Transition(before=u, after=v, statistics=statistics))
    facts = knowledge(transitions, settings, Level.GPU)
    tree = Tree.rooted(ROOT)
    for number in range(ROLLOUTS):
        steps = walk(tree, select(tree, facts, settings), facts, settings, rng, settings.step_cap)
        arrived: dict[str, float | None] = {}
        try:
            step = next(steps)
            while True:
                value = FAILED if rng.random() < 0.4 else rng.uniform(0.1, 20.0)
                if value > FAILED:
                    arrived[step.target] = value
                step = steps.send(Judged(value))
        except StopIteration as end:
            walked: Walked = end.value
        tree.finish(
            RolloutResult(
                rollout=str(number), search="s", returns=walked.returns, states=walked.states, edges=walked.edges,
                returned_at_nodes=walked.returned_at_nodes,
            ),
            arrived,
        )  # fmt: skip
    return tree, facts


def selections_per_second(tree: Tree, facts: Knowledge, settings: SearchSettings) -> float:
    began = time.process_time()
    for _ in range(SELECTIONS):
        select(tree, facts, settings)
    return SELECTIONS / (time.process_time() - began)


def main() -> None:
    figures: dict[str, float] = {}
    for mode in ("graph", "paper"):
        settings = SearchSettings.model_validate({"mode": mode})
        for examples in (100, 100_000) if mode == "graph" else (100,):
            tree, facts = grown(examples, settings)
            figures[f"{mode}, {examples} examples"] = round(selections_per_second(tree, facts, settings))
    flat = figures["graph, 100000 examples"] / figures["graph, 100 examples"]
    figures["transitions of the graph"] = TECHNIQUES * OUT_DEGREE
    figures["edges in the tree"] = len(tree.edges)
    ratios = {"100000 / 100 examples": round(flat, 3)}
    print(json.dumps({"benchmark": "search_core", "figures": figures, "ratios": ratios}))


if __name__ == "__main__":
    main()
