"""The part of the graph that a search has reached, indexed for selection: nodes, edges and their sums."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from regraph_db.records import ExploredEdge, RolloutResult, SearchSnapshot, State

Key = tuple[str, str]


@dataclass(slots=True)
class Edge:
    """A directed edge of a search; the paper's N is ``visits``, its Q is derived by :mod:`search.core.selection`."""

    source: str
    target: str
    prior: float = 0.0
    visits: int = 0
    value_sum: float = 0.0
    value_sq_sum: float = 0.0
    best: float | None = None
    in_flight: int = 0  #: O, begun and unfinished visits
    refusals: int = 0

    @property
    def key(self) -> Key:
        return (self.source, self.target)


@dataclass(slots=True)
class Node:
    """A state of a search, with its out-edges in the order of first visits (prior, then name)."""

    id: str
    technique: str
    expanded: bool = False
    visits: int = 0
    value_sum: float = 0.0
    best_speedup: float | None = None
    verified: bool = False  #: it holds verified code; the root always does
    flow: int = 0  #: sum of N + O over its out-edges
    edges: list[Edge] = field(default_factory=list)


@dataclass
class Tree:
    """What selection reads. Made from a snapshot; a simulation or a test may also advance it in memory."""

    root: str
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: dict[Key, Edge] = field(default_factory=dict)
    node_flights: dict[str, int] = field(default_factory=dict)  #: O by node, over its in-edges
    #: Moments of this search's returns over all edges: count, sum, sum of squares.
    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, snapshot: SearchSnapshot) -> Tree:
        """Index a snapshot."""
        tree = cls(snapshot.root)
        tree.add(snapshot.states, snapshot.edges)
        return tree

    @classmethod
    def rooted(cls, root: str) -> Tree:
        """A search that has not begun: the root alone."""
        return cls(root, {root: Node(root, root, verified=True)})

    def add(self, states: Iterable[State], edges: Iterable[ExploredEdge]) -> None:
        """Add the states and edges that are not there, with their sums."""
        for state in states:
            if state.id not in self.nodes:
                self.nodes[state.id] = Node(
                    state.id,
                    state.technique,
                    state.expanded,
                    state.visits,
                    state.value_sum,
                    state.best_speedup,
                    state.best_attempt is not None or state.id == self.root,
                )
        touched = set()
        for record in edges:
            if (record.source, record.target) in self.edges:
                continue
            edge = Edge(
                record.source,
                record.target,
                record.prior,
                record.visits,
                record.value_sum,
                record.value_sq_sum,
                record.best,
                record.in_flight,
                record.refusals,
            )
            self.edges[edge.key] = edge
            self.nodes[edge.source].edges.append(edge)
            self.nodes[edge.source].flow += edge.visits + edge.in_flight
            touched.add(edge.source)
            self.count += edge.visits
            self.total += edge.value_sum
            self.squares += edge.value_sq_sum
            self.node_flights[edge.target] = self.node_flights.get(edge.target, 0) + edge.in_flight
        for source in touched:
            self.nodes[source].edges.sort(key=lambda e: (-e.prior, e.target))

    @property
    def mean(self) -> float:
        """The mean of this search's returns; 0 before the first."""
        return self.total / self.count if self.count else 0.0

    def sigma(self, floor: float) -> float:
        """The standard deviation of this search's returns, at least ``floor``."""
        if self.count < 2:
            return floor
        return max(floor, math.sqrt(max(0.0, self.squares / self.count - self.mean**2)))

    def begin(self, path: Iterable[Key]) -> None:
        """Count a rollout as in flight along ``path``, as :meth:`GraphStore.begin_rollout` does."""
        self._fly(path, 1)

    def release(self, path: Iterable[Key]) -> None:
        """Take what :meth:`begin` counted back."""
        self._fly(path, -1)

    def _fly(self, path: Iterable[Key], change: int) -> None:
        for key in set(path):
            self.edges[key].in_flight += change
            self.nodes[key[0]].flow += change
            self.node_flights[key[1]] = self.node_flights.get(key[1], 0) + change

    def finish(self, result: RolloutResult, speedups: dict[str, float | None]) -> None:
        """Add a rollout, as :meth:`GraphStore.finish_rollout` does; ``speedups`` of the codes that arrived at
        states."""
        self.add(result.states, result.edges)
        for one in result.returns:
            edge = self.edges[one.source, one.target]
            edge.refusals += one.refusals
            if one.value is not None:
                edge.visits += 1
                self.nodes[edge.source].flow += 1
                edge.value_sum += one.value
                edge.value_sq_sum += one.value**2
                edge.best = one.value if edge.best is None else max(edge.best, one.value)
                self.count += 1
                self.total += one.value
                self.squares += one.value**2
        for state, value in result.returned_at_nodes:
            self.nodes[state].visits += 1
            self.nodes[state].value_sum += value
        for state, speedup in speedups.items():
            node = self.nodes[state]
            node.verified = True
            if speedup is not None and speedup > (node.best_speedup or 0.0):
                node.best_speedup = speedup
