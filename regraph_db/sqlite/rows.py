"""Rows of the search tables as records."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from regraph_db.records import ExploredEdge, Runner, Search, State

SEARCH_COLUMNS = "record, status, budget, calls, reserved, best_attempt, summary"
STATE_COLUMNS = "id, technique, expanded, visits, value_sum, best_speedup, best_attempt"
EDGE_COLUMNS = "source, target, prior, visits, value_sum, value_sq_sum, best, in_flight, refusals"
RUNNER_COLUMNS = "id, search, host, pid, lease, heartbeat_at"

_STATE = STATE_COLUMNS.split(", ")
_EDGE = EDGE_COLUMNS.split(", ")
_RUNNER = RUNNER_COLUMNS.split(", ")


def search_record(row: tuple[Any, ...]) -> Search:
    """A row of :data:`SEARCH_COLUMNS`."""
    record, status, budget, calls, reserved, best_attempt, summary = row
    kept = {
        "status": status,
        "budget": budget,
        "calls": calls,
        "reserved": reserved,
        "best_attempt": best_attempt,
        "summary": json.loads(summary),
    }
    return Search.model_validate({**json.loads(record), **kept})


def state(row: tuple[Any, ...]) -> State:
    """A row of :data:`STATE_COLUMNS`."""
    return State.model_validate(dict(zip(_STATE, row, strict=True)))


def edge(row: tuple[Any, ...]) -> ExploredEdge:
    """A row of :data:`EDGE_COLUMNS`."""
    return ExploredEdge.model_validate(dict(zip(_EDGE, row, strict=True)))


def runner_record(row: tuple[Any, ...]) -> Runner:
    """A row of :data:`RUNNER_COLUMNS`; the heartbeat is kept in seconds since 1970."""
    values = dict(zip(_RUNNER, row, strict=True))
    return Runner.model_validate({**values, "heartbeat_at": datetime.fromtimestamp(values["heartbeat_at"], UTC)})
