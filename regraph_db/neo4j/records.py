"""Search nodes and relationships as records, and records as their properties."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from regraph_db.neo4j.base import Row
from regraph_db.records import Attempt, ExploredEdge, Runner, Search, State

_KEPT = ("status", "budget", "calls", "reserved", "best_attempt")
_STATE = ("id", "technique", "expanded", "visits", "value_sum", "best_speedup", "best_attempt")
_EDGE = ("source", "target", "prior", "visits", "value_sum", "value_sq_sum", "best", "in_flight", "refusals")


def search_properties(search: Search, root: str) -> Row:
    """A search's properties; ``record`` holds what never changes and is not looked up."""
    return {
        "name": f"{search.task.name} · {search.strategy}",
        "root": root,
        "task": search.task.name,
        "strategy": search.strategy,
        "level": search.level.value,
        "status": search.status.value,
        "created_at": search.created_at.isoformat(),
        "budget": search.budget,
        "best_attempt": search.best_attempt,
        "start_code": search.start_code,
        "summary": json.dumps(search.summary, ensure_ascii=False),
        "record": search.model_dump_json(exclude={*_KEPT, "start_code", "summary"}),
    }


def search_record(properties: Row) -> Search:
    """The record of a ``Search`` node's properties."""
    kept = {key: properties.get(key) for key in _KEPT}
    texts = {"start_code": properties["start_code"], "summary": json.loads(properties["summary"])}
    return Search.model_validate({**json.loads(properties["record"]), **kept, **texts})


def state(values: Sequence[Any]) -> State:
    """A row of ``snapshot``'s states."""
    return State.model_validate(dict(zip(_STATE, values, strict=True)))


def state_properties(search: str, record: State) -> Row:
    """A state's properties, sums included."""
    speedup = "" if record.best_speedup is None else f" ×{round(record.best_speedup, 2)}"
    return {"search": search, "name": record.technique + speedup, **record.model_dump()}


def edge(values: Sequence[Any]) -> ExploredEdge:
    """A row of ``snapshot``'s edges."""
    return ExploredEdge.model_validate(dict(zip(_EDGE, values, strict=True)))


def edge_properties(record: ExploredEdge) -> Row:
    """An explored edge's properties, sums included."""
    sums = record.model_dump(exclude={"source", "target"})
    return {**sums, "q": None if record.q is None else round(record.q, 2)}


def attempt_properties(attempt: Attempt) -> Row:
    """An attempt's properties; ``record`` holds all of it but the code, the others are for people who look."""
    verdict = attempt.verdict
    return {
        "id": attempt.id,
        "name": attempt.technique or attempt.outcome,
        "search": attempt.search,
        "rollout": attempt.rollout,
        "target": attempt.target,
        "source": attempt.source,
        "technique": attempt.technique,
        "outcome": attempt.outcome,
        "verdict": None if verdict is None else verdict.verdict.value,
        "reason": None if verdict is None else verdict.reason,
        "level": None if verdict is None else verdict.level.value,
        "reward": attempt.reward,
        "speedup": attempt.speedup,
        "code": attempt.code,
        "record": attempt.model_dump_json(exclude={"code"}),
    }


def attempt_record(row: Row) -> Attempt:
    """The record of an attempt's ``record`` and ``code``."""
    return Attempt.model_validate({**json.loads(row["record"]), "code": row["code"]})


def runner_properties(runner: Runner) -> Row:
    """A runner's properties but its heartbeat, which the server's clock sets."""
    name = f"{runner.host}:{runner.pid}" if runner.host else runner.id
    return {
        "id": runner.id,
        "search": runner.search,
        "host": runner.host,
        "pid": runner.pid,
        "lease": runner.lease,
        "name": name,
    }


def runner_record(row: Row) -> Runner:
    """The record of a row of ``runners``; the heartbeat is kept in microseconds since 1970."""
    return Runner.model_validate({**row, "heartbeat_at": datetime.fromtimestamp(row["heartbeat_at"] / 1_000_000, UTC)})
