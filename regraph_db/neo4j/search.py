"""The search half: sums on relationships, changed by increments under the search's lock, exactly once by the
rollout's id."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from neo4j import ManagedTransaction

from regraph_db.bounds import refuse_nul
from regraph_db.derive import RolledUp, replaced_returns, resolver
from regraph_db.errors import InputError, NotFound
from regraph_db.neo4j.base import Neo4jBase, Row, rows
from regraph_db.neo4j.records import (
    attempt_properties,
    attempt_record,
    edge,
    runner_properties,
    runner_record,
    search_properties,
    search_record,
    state,
)
from regraph_db.neo4j.writing import add_sums, add_to_techniques, alias_table, sweep
from regraph_db.records import (
    Attempt,
    ExploredEdge,
    Level,
    Rollout,
    RolloutResult,
    Runner,
    Search,
    SearchSnapshot,
    SearchStatus,
    State,
)
from regraph_db.rollouts import (
    best_by_state,
    edge_increments,
    no_such,
    node_increments,
    refuse_strays,
    rolled_up_edges,
)

_PAGE = 256


class Neo4jSearch(Neo4jBase):
    """The search half."""

    def open_search(self, search: Search, root: State) -> Search:
        refuse_nul(search)
        refuse_nul(root)
        fresh = search.model_copy(update={"status": SearchStatus.OPEN, "best_attempt": None, "summary": {}})
        properties = search_properties(fresh, root.id)
        found = self._write(rows, "search/open_search", id=search.id, properties=properties, technique=root.technique)
        return search_record(found[0]["search"])

    def expand(self, search: str, state: str, states: Sequence[State], edges: Sequence[ExploredEdge]) -> None:
        for record in (*states, *edges):
            refuse_nul(record)

        def work(transaction: ManagedTransaction) -> None:
            given = {"state": state, "states": _states(states), "edges": _edges(edges)}
            found = rows(transaction, "search/expand", search=search, given=given)
            if not found:
                raise no_such("search", search)
            if found[0]["state"] is None:
                raise no_such("state", state, f"search {search}")
            _all_there("state at an end of its edges", found[0]["edges"], edges, search)

        self._write(work)

    def snapshot(self, search: str) -> SearchSnapshot:
        found = self._write(rows, "search/snapshot", search=search)
        if not found:
            raise no_such("search", search)
        row = found[0]
        return SearchSnapshot(
            search=search_record(row["search"]),
            root=row["search"]["root"],
            states=tuple(sorted(map(state, row["states"]), key=lambda s: s.id)),
            edges=tuple(sorted(map(edge, row["edges"]), key=lambda e: (e.source, e.target))),
        )

    def join(self, runner: Runner) -> None:
        refuse_nul(runner)
        parameters = {"search": runner.search, "id": runner.id, "properties": runner_properties(runner)}
        if not self._write(rows, "search/join", **parameters):
            raise no_such("search", runner.search)

    def heartbeat(self, runner: str) -> None:
        self._write(_beat, runner)

    def begin_rollout(self, rollout: Rollout) -> int:
        refuse_nul(rollout)
        return self._write(_begin, rollout)

    def finish_rollout(self, result: RolloutResult) -> bool:
        refuse_nul(result)
        refuse_strays(result)
        # The token tells this call's own write, committed while the connection was lost, from an earlier call's.
        return self._write(_finish, result, uuid.uuid4().hex)

    def reclaim(self) -> int:
        taken = 0
        for row in sorted(self._read(rows, "search/expired_rollouts"), key=lambda row: str(row["rollout"])):
            taken += self._write(_reclaim, row["search"], row["rollout"])
        return taken

    def finish_search(self, search: str, *, best_attempt: str | None, summary: dict[str, Any]) -> None:
        refuse_nul(self._search(search).model_copy(update={"summary": summary}))
        text = json.dumps(summary, ensure_ascii=False)
        self._write(rows, "search/finish_search", search=search, best_attempt=best_attempt, summary=text)

    def extend_search(self, search: str, budget: int) -> None:
        def work(transaction: ManagedTransaction) -> None:
            found = rows(transaction, "search/lock", search=search)
            if not found:
                raise no_such("search", search)
            old = found[0]["search"]["budget"]
            if budget < old:
                raise InputError(
                    f"the budget is {old} already, and cannot shrink to {budget}.", where=f"search {search}"
                )
            rows(transaction, "search/extend_search", search=search, budget=budget)

        self._write(work)

    def searches(self) -> list[Search]:
        found = [search_record(row["search"]) for row in self._read(rows, "search/searches")]
        return sorted(found, key=lambda s: (s.created_at, s.id), reverse=True)

    def search(self, search: str) -> Search:
        exact = self._read(rows, "search/search", search=search)
        if exact:
            return search_record(exact[0]["search"])
        found = self._read(rows, "search/searches_by_prefix", prefix=search) if search else []
        if len(found) > 1:
            raise NotFound(f"{len(found)} searches begin with `{search}`.", fix="Write more of the id.")
        if not found:
            raise no_such("search", search)
        return search_record(found[0]["search"])

    def attempts(self, search: str) -> Iterator[Attempt]:
        last = -1
        while True:
            page = self._read(rows, "search/attempts", search=search, last=last, page=_PAGE)
            yield from map(attempt_record, page)
            if len(page) < _PAGE:
                return
            last = page[-1]["number"]

    def attempt(self, attempt: str) -> Attempt:
        found = self._read(rows, "search/attempt", attempt=attempt)
        if not found:
            raise no_such("attempt", attempt)
        return attempt_record(found[0])

    def runners(self, search: str) -> list[Runner]:
        return sorted(map(runner_record, self._read(rows, "search/runners", search=search)), key=lambda r: r.id)

    def delete_search(self, search: str) -> None:
        def work(transaction: ManagedTransaction) -> None:
            while rows(transaction, "search/delete_attempts", search=search, page=_PAGE)[0]["deleted"]:
                continue
            rows(transaction, "search/delete_search", search=search)

        self._write(work)

    def roll_up(self, search: str) -> int:
        return self._write(_roll_up, search)

    def _search(self, search: str) -> Search:
        found = self._read(rows, "search/search", search=search)
        if not found:
            raise no_such("search", search)
        return search_record(found[0]["search"])


def _beat(transaction: ManagedTransaction, runner: str) -> None:
    if not rows(transaction, "search/heartbeat", runner=runner):
        raise no_such("runner", runner, fix="It has to join the search first.")


def _rollout(transaction: ManagedTransaction, search: str, rollout: str) -> Row:
    """The rollout and its search's budget, under the search's lock."""
    found = rows(transaction, "search/rollout", search=search, rollout=rollout)
    if not found:
        raise no_such("search", search)
    return found[0]


def _begin(transaction: ManagedTransaction, rollout: Rollout) -> int:
    found = _rollout(transaction, rollout.search, rollout.id)
    if found["status"] is not None:
        return 0 if found["status"] == "reclaimed" else int(found["calls"])
    _beat(transaction, rollout.runner)
    granted = min(rollout.calls, int(found["left"]))
    if granted <= 0 or found["open"] != "open":
        return 0
    edges = sorted(set(rollout.path))
    counted = rows(
        transaction,
        "search/begin_rollout",
        search=rollout.search,
        rollout=rollout.id,
        runner=rollout.runner,
        calls=granted,
        given={"edges": [list(pair) for pair in edges], "path": json.dumps(edges, ensure_ascii=False)},
    )
    _all_there("edge of its path", counted[0]["edges"], edges, rollout.search)
    return granted


def _finish(transaction: ManagedTransaction, result: RolloutResult, token: str) -> bool:
    found = _rollout(transaction, result.search, result.rollout)
    if found["status"] is None or found["search"] != result.search:
        raise no_such("rollout", result.rollout, f"search {result.search}", fix="Begin it before it is finished.")
    if found["status"] == "finished":
        return bool(found["token"] == token)
    if found["status"] == "begun":
        increments, nodes = edge_increments(result), node_increments(result)
        given = {
            "held": json.loads(found["path"]),
            "states": _states(result.states),
            "edges": _edges(result.edges),
            "returns": [{"source": u, "target": v, **asdict(more)} for (u, v), more in increments.items()],
            "nodes": [{"state": n, "visits": visits, "value_sum": total} for n, (visits, total) in nodes.items()],
            "bests": [{"state": n, "attempt": a, "speedup": s} for n, (a, s) in best_by_state(result.attempts).items()],
        }
        counted = rows(
            transaction,
            "search/finish_rollout",
            search=result.search,
            rollout=result.rollout,
            token=token,
            granted=found["calls"],
            calls=result.calls,
            given=given,
        )[0]
        _all_there("state at an end of its edges", counted["edges"], result.edges, result.search)
        _all_there("edge that returned", counted["returned"], increments, result.search)
        _all_there("state that returned", counted["counted"], nodes, result.search)
    if result.attempts:
        add_attempts(transaction, result.search, result.attempts)
    return bool(found["status"] == "begun")


def _reclaim(transaction: ManagedTransaction, search: str, rollout: str) -> int:
    found = _rollout(transaction, search, rollout)
    still = any(row["rollout"] == rollout for row in rows(transaction, "search/expired_rollouts"))
    if found["status"] != "begun" or not still:
        return 0
    held = json.loads(found["path"])
    rows(
        transaction,
        "search/reclaim_rollout",
        search=search,
        rollout=rollout,
        granted=found["calls"],
        held=held,
    )
    return 1


def _roll_up(transaction: ManagedTransaction, search: str) -> int:
    rows(transaction, "ingest/lock")
    found = rows(transaction, "search/lock", search=search)
    if not found:
        raise no_such("search", search)
    record = search_record(found[0]["search"])
    if record.level not in (Level.GPU, Level.MODELLED):
        return 0
    old = [RolledUp.model_validate(row) for row in rows(transaction, "search/rolled_up", search=search)]
    walked = rows(transaction, "search/walked", search=search)
    new = rolled_up_edges(record, ((w["before"], w["after"], w["visits"], w["value_sum"]) for w in walked))
    put_returns(transaction, old, new)
    return replaced_returns(old, new, resolver(alias_table(transaction))).changed()


def put_returns(transaction: ManagedTransaction, old: Sequence[RolledUp], new: Sequence[RolledUp]) -> None:
    """Set ``new`` rolled-up returns in place of ``old`` ones; shares and transitions follow."""
    delta = replaced_returns(old, new, resolver(alias_table(transaction)))
    rows(transaction, "ingest/put_rolled_up", rows=[r.model_dump(mode="json") for r in new])
    add_to_techniques(transaction, delta)
    add_sums(transaction, delta)
    sweep(transaction, delta.names())


def add_attempts(transaction: ManagedTransaction, search: str, attempts: Sequence[Attempt]) -> None:
    """Add the attempts that are not there, in the order given."""
    given = {"rows": [attempt_properties(a) for a in attempts]}
    rows(transaction, "search/add_attempts", search=search, given=given)


def _states(states: Sequence[State]) -> list[Row]:
    return [{"id": s.id, "technique": s.technique} for s in states]


def _edges(edges: Sequence[ExploredEdge]) -> list[Row]:
    return [{"source": e.source, "target": e.target, "prior": e.prior} for e in edges]


def _all_there(what: str, counted: int, wanted: Any, search: str) -> None:
    if counted != len(wanted):
        raise no_such(what, f"{len(wanted) - counted} of {len(wanted)}", f"search {search}")
