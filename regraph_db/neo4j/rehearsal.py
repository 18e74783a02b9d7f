"""A search in small, played before a real one: Neo4j plans a statement when it first meets it, which takes a server
that has just started up to seconds each, and would make the model wait for it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress

from regraph_db.errors import NotFound
from regraph_db.records import (
    ROOT,
    Attempt,
    EdgeReturn,
    ExploredEdge,
    Level,
    Rollout,
    RolloutResult,
    Runner,
    Search,
    State,
    TaskReference,
    Verdict,
    VerdictKind,
)
from regraph_db.store import GraphStore

_STATE = State(id="state", technique="technique")
_EDGE = ExploredEdge(source=ROOT, target=_STATE.id)


def ask(store: GraphStore) -> None:
    """Ask ``store`` for a search that is not there, in the order of a real one: what begins a transaction. Nothing is
    written. (Neo4j keeps the plans for transactions that have written apart; those are for :func:`play`.)"""
    name = uuid.uuid4().hex
    questions: list[Callable[[], object]] = [
        lambda: store.join(_runner(name)),
        lambda: store.snapshot(name),
        lambda: store.expand(name, ROOT, [_STATE], [_EDGE]),
        lambda: store.begin_rollout(_rollout(name)),
        lambda: store.examples(ROOT, _STATE.technique, like="code", without_task=name, without_function=name),
        lambda: store.attempt(name),
    ]
    for question in questions:
        with suppress(NotFound):
            question()


def play(store: GraphStore) -> None:
    """Walk one rollout of a new search in ``store``, whose writes are to be rolled back: what comes later in a
    transaction. No lock is taken that anybody else could wait for."""
    name = uuid.uuid4().hex
    task = TaskReference(name=name, hash=name)
    store.open_search(Search(id=name, task=task, level=Level.FUNCTIONAL, budget=1), State(id=ROOT, technique=ROOT))
    store.join(_runner(name))
    store.begin_rollout(_rollout(name))
    attempt = Attempt(
        id=name,
        search=name,
        rollout=name,
        source=ROOT,
        target=_STATE.id,
        verdict=Verdict(verdict=VerdictKind.PASSED, level=Level.FUNCTIONAL),
        reward=1.0,
    )
    store.finish_rollout(
        RolloutResult(
            rollout=name,
            search=name,
            returns=(EdgeReturn(source=ROOT, target=_STATE.id, value=1.0),),
            states=(_STATE,),
            edges=(_EDGE,),
            attempts=(attempt,),
            calls=1,
            returned_at_nodes=((_STATE.id, 1.0),),
        )
    )


def _runner(name: str) -> Runner:
    return Runner(id=name, search=name, lease=60.0)


def _rollout(name: str) -> Rollout:
    return Rollout(id=name, search=name, runner=name, path=(), calls=1)
