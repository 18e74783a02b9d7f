"""Expansion: the first visit of a state unfolds all its successors in the reasoning graph (arXiv 2510.19873)."""

from __future__ import annotations

from dataclasses import dataclass

from regraph_db.records import ExploredEdge, State
from search.core.priors import Knowledge
from search.core.tree import Tree
from search.settings import SearchSettings

#: Parts a state's id from the names of the techniques applied, where states are keyed by both.
SEPARATOR = "\u241f"


@dataclass(frozen=True)
class Expansion:
    """What to write: ``state`` is now expanded; these states and edges stand in the search, with nothing counted."""

    state: str
    states: tuple[State, ...]
    edges: tuple[ExploredEdge, ...]


def state_id(source: str, technique: str, settings: SearchSettings) -> str:
    """The id of the state reached from state ``source`` by ``technique``: the technique's name, or with it the
    sorted set of all that were applied."""
    if settings.state == "technique":
        return technique
    applied = {*source.split(SEPARATOR)[1:], technique}
    return SEPARATOR.join([technique, *sorted(applied)])


def technique_of(state: str) -> str:
    """The technique that a state's id names."""
    return state.partition(SEPARATOR)[0]


def unfolded(tree: Tree, state: str, knowledge: Knowledge, settings: SearchSettings) -> Expansion:
    """The successors of ``state``; nothing is changed."""
    successors = knowledge.after(tree.nodes[state].technique)
    targets = [(state_id(state, successor.technique, settings), successor) for successor in successors]
    return Expansion(
        state,
        tuple(State(id=target, technique=successor.technique) for target, successor in targets),
        tuple(ExploredEdge(source=state, target=target, prior=successor.prior) for target, successor in targets),
    )


def expand(tree: Tree, state: str, knowledge: Knowledge, settings: SearchSettings) -> Expansion:
    """Unfold ``state`` in the tree; what a store has to write for it."""
    expansion = unfolded(tree, state, knowledge, settings)
    tree.add(expansion.states, expansion.edges)
    tree.nodes[state].expanded = True
    return expansion
