"""A search's tree for the terminal and for JSON: N, Q, best and what the judge said, edge by edge."""

from __future__ import annotations

from collections import Counter
from typing import Any

from regraph_db.figures import figure
from regraph_db.records import Attempt, ExploredEdge, Level, SearchSnapshot
from search.progress import said_of

Key = tuple[str, str]


def verdicts_by_edge(attempts: tuple[Attempt, ...]) -> dict[Key, Counter[str]]:
    """What was said of the attempts along each edge."""
    found: dict[Key, Counter[str]] = {}
    for attempt in attempts:
        if attempt.source is not None and attempt.target is not None:
            found.setdefault((attempt.source, attempt.target), Counter())[said_of(attempt)] += 1
    return found


def tree_lines(
    snapshot: SearchSnapshot, attempts: tuple[Attempt, ...], *, best: frozenset[Key] = frozenset()
) -> list[str]:
    """One line an edge that was tried, the most visited first; a state that stands above already is not unfolded again.
    Edges of the best kernel's path carry a star."""
    names = {state.id: state for state in snapshot.states}
    said = verdicts_by_edge(attempts)
    below: dict[str, list[ExploredEdge]] = {}
    for edge in snapshot.edges:
        if edge.visits or edge.refusals or edge.in_flight or (edge.source, edge.target) in said:
            below.setdefault(edge.source, []).append(edge)
    lines = [names[snapshot.root].technique]
    unfolded = {snapshot.root}

    def draw(state: str, indent: str) -> None:
        edges = sorted(below.get(state, ()), key=lambda e: (-e.visits, e.target))
        for place, edge in enumerate(edges):
            last = place == len(edges) - 1
            target = names[edge.target]
            key = (edge.source, edge.target)
            again = edge.target in unfolded
            star = " *" if key in best else ""
            counts = ", ".join(f"{count} {name}" for name, count in sorted(said.get(key, Counter()).items()))
            lines.append(
                f"{indent}{'└─ ' if last else '├─ '}{target.technique}{star}  {_figures(edge)}"
                + (f"  [{counts}]" if counts else "")
                + ("  (see above)" if again and below.get(edge.target) else "")
            )
            if not again:
                unfolded.add(edge.target)
                draw(edge.target, indent + ("   " if last else "│  "))

    draw(snapshot.root, "")
    return lines


def legend(level: Level) -> list[str]:
    """What the figures of the tree are, for a person."""
    kind = {Level.GPU: "measured speedup", Level.MODELLED: "modelled speedup"}.get(level)
    return [
        "N: visits; Q: mean return; best: best return; [what was said of the attempts]; *: leads to the best kernel.",
        f"A return is the reward for the {kind}; -1: failed."
        if kind
        else "A return is 1 + the log2 gain of the path's techniques on other tasks, which is no speed; -1: failed.",
    ]


def _figures(edge: ExploredEdge) -> str:
    flying = f" in flight {edge.in_flight}" if edge.in_flight else ""
    return f"N {edge.visits} Q {figure(edge.q)} best {figure(edge.best)}{flying}"


def tree_document(snapshot: SearchSnapshot, attempts: tuple[Attempt, ...]) -> dict[str, Any]:
    """States and edges with their figures."""
    said = verdicts_by_edge(attempts)
    return {
        "root": snapshot.root,
        "states": [
            {"id": s.id, "technique": s.technique, "best_speedup": s.best_speedup, "best_attempt": s.best_attempt}
            for s in snapshot.states
        ],
        "edges": [
            {
                "source": e.source,
                "target": e.target,
                "visits": e.visits,
                "q": e.q,
                "best": e.best,
                "in_flight": e.in_flight,
                "refusals": e.refusals,
                "prior": e.prior,
                "verdicts": dict(said.get((e.source, e.target), Counter())),
            }
            for e in snapshot.edges
        ],
    }


def path_keys(steps: tuple[Attempt, ...]) -> frozenset[Key]:
    """The edges of a path of attempts."""
    return frozenset(
        (step.source, step.target) for step in steps if step.source is not None and step.target is not None
    )
