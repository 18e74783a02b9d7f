"""The rollout: from the selected place on, step by step, until the cap, a dead end or the first step that fails.

Paper: with probability 1−ε ``a = argmax [Q(s,a) − λ N(s,a)]``, else a random one (arXiv 2510.19873). It is a coroutine:
it yields the :class:`Step` to generate and is sent the :class:`Judged` answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from random import Random

from regraph_db.records import EdgeReturn, ExploredEdge, State
from search.core.expansion import unfolded
from search.core.priors import Knowledge
from search.core.returns import FAILED, edge_returns, reward
from search.core.selection import Selection, masked, value_of
from search.core.tree import Edge, Key, Tree
from search.settings import SearchSettings


class Halted(Exception):
    """Thrown into a rollout that has to end now: it writes what it has learnt, as if its calls had run out."""


@dataclass(frozen=True)
class Step:
    """One call to make: rewrite the code at state ``source`` with a technique, to reach state ``target``."""

    source: str
    target: str
    before: str  #: technique at the source
    after: str  #: technique to apply
    repair: bool = False  #: mend the code that failed just now instead


@dataclass(frozen=True)
class Judged:
    """What came of a step."""

    reward: float | None  #: ``FAILED``, or the reward of correct code; ``None`` when nothing was learnt about the edge
    refused: bool = False  #: the model found the technique unsuitable, or changed nothing


@dataclass
class Walked:
    """What a rollout writes."""

    returns: tuple[EdgeReturn, ...] = ()
    states: tuple[State, ...] = ()
    edges: tuple[ExploredEdge, ...] = ()
    returned_at_nodes: tuple[tuple[str, float], ...] = ()
    calls: int = 0


@dataclass
class _Trace:
    """The generated steps of one rollout."""

    steps: list[tuple[Key, float | None, int]] = field(default_factory=list)  #: edge, reward, refusals
    states: dict[str, State] = field(default_factory=dict)
    edges: dict[Key, ExploredEdge] = field(default_factory=dict)
    walked: Counter[Key] = field(default_factory=Counter)
    stood: Counter[str] = field(default_factory=Counter)
    calls: int = 0


def walk(
    tree: Tree,
    selection: Selection,
    knowledge: Knowledge,
    settings: SearchSettings,
    rng: Random,
    calls: int,
    *,
    through_failures: bool = False,
) -> Generator[Step, Judged, Walked]:
    """Roll out from ``selection`` with at most ``calls`` steps asked for.

    ``through_failures`` is the random walk of the paper's ReGraphT without MCGS: a failed step is retried with another
    technique from the same state, within ``attempts_at_node``.
    """
    trace = _Trace()
    for source, target in selection.path:
        trace.walked[source, target] += 1
        trace.stood[target] += 1
    trace.stood[tree.root] += 1
    forced: Edge | None = None
    generate = selection.generate
    place = selection.path[-1][1] if selection.path else tree.root
    if selection.generate:
        forced = tree.edges[selection.path[-1]]
        place = forced.source
    at_node = done = 0
    tried: set[str] = set()
    while trace.calls < calls and done < settings.step_cap:
        edge = forced or choose(tree, place, knowledge, settings, rng, trace, tried)
        if edge is None and selection.path and not (generate or trace.calls):
            # nothing is left beyond a closed cycle: its last edge is generated again, so that no rollout is empty
            generate = True
            edge = forced = tree.edges[selection.path[-1]]
        if edge is None:
            break
        try:
            judged = yield from _step(tree, edge, settings, trace, calls)
        except Halted:
            break
        walk_on = judged.reward is not None and judged.reward > FAILED
        if forced is None:
            trace.walked[edge.key] += 1
            if walk_on:
                trace.stood[edge.target] += 1
        forced = None
        tried.add(edge.target)
        if walk_on:
            place, at_node, tried = edge.target, 0, set()
            done += 1
            continue
        at_node += 1
        if at_node >= settings.attempts_at_node or not (judged.refused or through_failures):
            break
    return _written(tree, selection.path[:-1] if generate else selection.path, settings, trace)


def _step(
    tree: Tree, edge: Edge, settings: SearchSettings, trace: _Trace, calls: int
) -> Generator[Step, Judged, Judged]:
    before, after = _technique(tree, trace, edge.source), _technique(tree, trace, edge.target)
    judged = yield Step(edge.source, edge.target, before, after)
    trace.calls += 1
    if settings.repair and judged.reward == FAILED and trace.calls < calls:
        mended = yield Step(edge.source, edge.target, before, after, repair=True)
        trace.calls += 1
        if mended.reward is not None:
            judged = mended
    trace.steps.append((edge.key, judged.reward, int(judged.refused)))
    return judged


def _technique(tree: Tree, trace: _Trace, state: str) -> str:
    node = tree.nodes.get(state)
    return node.technique if node else trace.states[state].technique


def choose(
    tree: Tree, place: str, knowledge: Knowledge, settings: SearchSettings, rng: Random, trace: _Trace, tried: set[str]
) -> Edge | None:
    """The rollout policy's edge out of ``place``; ``None`` at a dead end.

    States and edges that the search does not hold yet are added to the trace. In ``graph`` mode a rollout walks an
    edge at most once and stands at a state at most twice, which ends every cycle.
    """
    options = []
    for edge in _out_edges(tree, place, knowledge, settings, trace):
        if edge.target in tried or masked(edge, settings):
            continue
        if settings.edge_repeats and trace.walked[edge.key] >= settings.edge_repeats:
            continue
        if settings.node_repeats and trace.stood[edge.target] >= settings.node_repeats:
            continue
        options.append(edge)
    if not options:
        return None
    if rng.random() < settings.epsilon:
        chosen = options[rng.randrange(len(options))]
    else:
        unit = tree.sigma(settings.sigma_floor) if settings.scale == "sigma" else 1.0
        penalty = settings.visit_penalty * unit

        def score(edge: Edge) -> float:
            visits = edge.visits + edge.in_flight + trace.walked[edge.key]
            return value_of(edge, tree, settings) - penalty * visits

        chosen = max(options, key=score)  # the first of equals: the best prior
    if chosen.key not in tree.edges and chosen.key not in trace.edges:
        trace.edges[chosen.key] = ExploredEdge(source=chosen.source, target=chosen.target, prior=chosen.prior)
    return chosen


def _out_edges(tree: Tree, place: str, knowledge: Knowledge, settings: SearchSettings, trace: _Trace) -> list[Edge]:
    """The edges of a state, those that only the knowledge graph holds so far included."""
    node = tree.nodes.get(place)
    if node is not None and node.expanded:
        return node.edges
    if node is None:
        outer = Tree(place)
        outer.add([trace.states[place]], ())
        expansion = unfolded(outer, place, knowledge, settings)
    else:
        expansion = unfolded(tree, place, knowledge, settings)
    for state in expansion.states:
        if state.id not in tree.nodes:
            trace.states.setdefault(state.id, state)
    return [
        tree.edges.get((edge.source, edge.target)) or Edge(edge.source, edge.target, edge.prior)
        for edge in expansion.edges
    ]


def _written(tree: Tree, passed_by: Sequence[Key], settings: SearchSettings, trace: _Trace) -> Walked:
    """What a rollout writes, after the selected edges that it only passed by."""
    known = [reward(tree.nodes[target].best_speedup, settings) for _, target in passed_by]
    above, below = edge_returns(known, [value for _, value, _ in trace.steps], settings)
    returns = [
        EdgeReturn(source=s, target=t, value=v) for (s, t), v in zip(passed_by, above, strict=True) if v is not None
    ]
    for ((source, target), _, refused), value in zip(trace.steps, below, strict=True):
        if value is not None or refused:
            returns.append(EdgeReturn(source=source, target=target, value=value, refusals=refused))
    counted = [(one.target, one.value) for one in returns if one.value is not None]
    at_nodes: tuple[tuple[str, float], ...] = ()
    if counted:
        at_nodes = ((tree.root, max(value for _, value in counted)), *counted)
    ends = {end for key in trace.edges for end in key}
    return Walked(
        returns=tuple(returns),
        states=tuple(state for name, state in sorted(trace.states.items()) if name in ends),
        edges=tuple(trace.edges[key] for key in sorted(trace.edges)),
        returned_at_nodes=at_nodes,
        calls=trace.calls,
    )
