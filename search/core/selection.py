"""Selection: from the root down, the edge of the largest upper confidence bound, until something has to be generated.

Paper: ``P-UCB(s) = Q(s) + sqrt(2 ln N(s') / N(s))`` over node counters (arXiv 2510.19873). Ours, over edges (u, v) with
unfinished visits O (WU-UCT, arXiv 1810.11755) and the returns' standard deviation σ:
``Q + c·σ·sqrt(2 ln(1 + Σ(N+O)) / (N+O))``; an unvisited edge is infinite, and the prior orders those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from search.core.expansion import Expansion, expand
from search.core.priors import Knowledge
from search.core.returns import FAILED
from search.core.tree import Edge, Key, Node, Tree
from search.settings import SearchSettings

#: Sweeps of the recursive backup: returns travel that many edges up.
SWEEPS = 4


@dataclass(frozen=True)
class Selection:
    """Where a rollout begins."""

    path: tuple[Key, ...]  #: the selected edges, from the root; empty when the root has none open
    generate: bool  #: the last edge's code has to be generated; else the rollout goes on from its target's code
    expansions: tuple[Expansion, ...] = ()  #: states unfolded on the way, to be written


def select(tree: Tree, knowledge: Knowledge, settings: SearchSettings) -> Selection:
    """Walk down from the root. Expands states in ``tree`` as it meets them.

    It ends at the first edge that never brought verified code (to be generated), at a state met before on this path
    (the closing edge counts; the rollout goes on there), or at a state with no open edge (its last edge is generated
    again).
    """
    rule = Bound(tree, settings)
    path: list[Key] = []
    expansions: list[Expansion] = []
    node = tree.nodes[tree.root]
    seen = {node.id}
    while True:
        if not node.expanded:
            expansions.append(expand(tree, node.id, knowledge, settings))
        edge = rule.best(node)
        if edge is None:
            return Selection(tuple(path), bool(path), tuple(expansions))
        path.append(edge.key)
        if not proven(edge) or not tree.nodes[edge.target].verified:
            return Selection(tuple(path), True, tuple(expansions))
        if edge.target in seen:
            return Selection(tuple(path), False, tuple(expansions))
        node = tree.nodes[edge.target]
        seen.add(node.id)


def proven(edge: Edge) -> bool:
    """Whether a rollout ever brought correct code along the edge."""
    return edge.best is not None and edge.best > FAILED


def masked(edge: Edge, settings: SearchSettings) -> bool:
    """Refused too often, and never proven."""
    return edge.refusals >= settings.refusals and not proven(edge)


class Bound:
    """The upper confidence bound of the settings, over one tree."""

    def __init__(self, tree: Tree, settings: SearchSettings) -> None:
        self.tree = tree
        self.settings = settings
        unit = tree.sigma(settings.sigma_floor) if settings.scale == "sigma" else 1.0
        self.width = settings.exploration * unit * math.sqrt(2.0)
        self.means = settings.backup == "mean"
        self.values = recursive_values(tree) if settings.backup == "recursive" else None

    def best(self, node: Node) -> Edge | None:
        """The edge to walk from ``node``, ties in the order of the priors; ``None`` when none is open."""
        return self._best_by_nodes(node) if self.settings.statistics == "nodes" else self._best_by_edges(node)

    def _best_by_edges(self, node: Node) -> Edge | None:
        limit = self.settings.refusals
        width = self.width * math.sqrt(math.log(1 + node.flow))
        means, sqrt = self.means, math.sqrt
        best, bound = None, -math.inf
        for edge in node.edges:
            if edge.refusals >= limit and not proven(edge):
                continue
            visits = edge.visits
            begun = visits + edge.in_flight
            if not begun:
                return edge  # infinite, and the edges stand in the order of their priors
            if means and visits:
                value = edge.value_sum / visits  # Q of the mean backup, written out: this line is the core's hot spot
            else:
                value = value_of(edge, self.tree, self.settings, self.values)
            value += width / sqrt(begun)
            if value > bound:
                best, bound = edge, value
        return best

    def _best_by_nodes(self, node: Node) -> Edge | None:
        flights = self.tree.node_flights
        parent = max(1, node.visits + flights.get(node.id, 0))
        width = self.width * math.sqrt(math.log(parent))
        best, bound = None, -math.inf
        for edge in node.edges:
            if masked(edge, self.settings):
                continue
            child = self.tree.nodes[edge.target]
            visits = child.visits + flights.get(child.id, 0)
            if not visits:
                return edge
            mean = child.value_sum / child.visits if child.visits else self.tree.mean
            if mean + width / math.sqrt(visits) > bound:
                best, bound = edge, mean + width / math.sqrt(visits)
        return best


def value_of(edge: Edge, tree: Tree, settings: SearchSettings, values: Mapping[Key, float] | None = None) -> float:
    """Q of an edge under the backup of the settings; the mean of the whole search where it has no visit of its own."""
    if not edge.visits:
        return tree.mean
    if values is not None:
        return values[edge.key]
    if settings.backup == "max" and edge.best is not None:
        return edge.best
    return edge.value_sum / edge.visits


def recursive_values(tree: Tree) -> dict[Key, float]:
    """Q that also averages over the edges below, weighted by their visits, :data:`SWEEPS` edges deep (cycles end
    there)."""
    values = {key: edge.value_sum / edge.visits for key, edge in tree.edges.items() if edge.visits}
    for _ in range(SWEEPS):
        former = values
        values = {}
        for key in former:
            edge = tree.edges[key]
            weight, total = float(edge.visits), edge.value_sum
            for below in tree.nodes[edge.target].edges:
                if below.visits:
                    weight += below.visits
                    total += below.visits * former[below.key]
            values[key] = total / weight
    return values
