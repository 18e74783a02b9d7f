"""The search half: sums on edges, changed by increments, exactly once by the rollout's id."""

# ruff: noqa: S608 -- only names of this package's own tables and columns are put into a statement
from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from regraph_db.bounds import refuse_nul
from regraph_db.derive import replaced_returns, resolver
from regraph_db.errors import InputError, NotFound
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
from regraph_db.sqlite.base import SqliteBase
from regraph_db.sqlite.rows import (
    EDGE_COLUMNS,
    RUNNER_COLUMNS,
    SEARCH_COLUMNS,
    STATE_COLUMNS,
    edge,
    runner_record,
    search_record,
    state,
)
from regraph_db.sqlite.writing import alias_table, apply, put_rolled_up, rolled_up

_PAGE = 256


class SqliteSearch(SqliteBase):
    """The search half."""

    def open_search(self, search: Search, root: State) -> Search:
        refuse_nul(search)
        refuse_nul(root)
        with self._writing() as connection:
            cursor = connection.execute(
                "INSERT INTO searches VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, NULL, '{}', ?) ON CONFLICT DO NOTHING",
                (
                    search.id,
                    root.id,
                    search.task.name,
                    search.level,
                    SearchStatus.OPEN,
                    search.created_at.isoformat(),
                    search.budget,
                    search.model_dump_json(),
                ),
            )
            if cursor.rowcount:
                insert_states(connection, search.id, [root])
            return _search(connection, search.id)

    def expand(self, search: str, state: str, states: Sequence[State], edges: Sequence[ExploredEdge]) -> None:
        for record in (*states, *edges):
            refuse_nul(record)
        with self._writing() as connection:
            insert_states(connection, search, states)
            insert_edges(connection, search, edges)
            if not connection.execute(
                "UPDATE states SET expanded = 1 WHERE search = ? AND id = ?", (search, state)
            ).rowcount:
                raise no_such("state", state, f"search {search}")

    def snapshot(self, search: str) -> SearchSnapshot:
        with self._reading() as connection:
            record = _search(connection, search)
            (root,) = connection.execute("SELECT root FROM searches WHERE id = ?", (search,)).fetchone()
            states = connection.execute(f"SELECT {STATE_COLUMNS} FROM states WHERE search = ? ORDER BY id", (search,))
            edges = connection.execute(
                f"SELECT {EDGE_COLUMNS} FROM edges WHERE search = ? ORDER BY source, target",
                (search,),
            )
            return SearchSnapshot(
                search=record, root=root, states=tuple(map(state, states)), edges=tuple(map(edge, edges))
            )

    def join(self, runner: Runner) -> None:
        refuse_nul(runner)
        with self._writing() as connection:
            _search(connection, runner.search)
            connection.execute(
                "INSERT OR REPLACE INTO runners VALUES (?, ?, ?, ?, ?, ?)",
                (runner.id, runner.search, runner.lease, time.time(), runner.host, runner.pid),
            )

    def heartbeat(self, runner: str) -> None:
        with self._writing() as connection:
            _beat(connection, runner)

    def begin_rollout(self, rollout: Rollout) -> int:
        refuse_nul(rollout)
        with self._writing() as connection:
            row = connection.execute("SELECT calls, status FROM rollouts WHERE id = ?", (rollout.id,)).fetchone()
            if row is not None:
                return 0 if row[1] == "reclaimed" else int(row[0])
            search = _search(connection, rollout.search)
            _beat(connection, rollout.runner)
            granted = min(rollout.calls, search.budget - search.calls - search.reserved)
            if granted <= 0 or search.status is not SearchStatus.OPEN:
                return 0
            path = sorted(set(rollout.path))
            _fly(connection, rollout.search, path, 1)
            connection.execute("UPDATE searches SET reserved = reserved + ? WHERE id = ?", (granted, search.id))
            connection.execute(
                "INSERT INTO rollouts VALUES (?, ?, ?, ?, ?, 'begun')",
                (rollout.id, rollout.search, rollout.runner, json.dumps(path, ensure_ascii=False), granted),
            )
            return granted

    def finish_rollout(self, result: RolloutResult) -> bool:
        refuse_nul(result)
        refuse_strays(result)
        with self._writing() as connection:
            row = connection.execute(
                "SELECT status, path, calls FROM rollouts WHERE id = ? AND search = ?",
                (result.rollout, result.search),
            ).fetchone()
            if row is None:
                raise no_such(
                    "rollout",
                    result.rollout,
                    f"search {result.search}",
                    fix="Begin it before it is finished.",
                )
            status, path, granted = row
            if status == "finished":
                return False
            insert_attempts(connection, result.attempts)
            if status == "reclaimed":
                return False
            _release(connection, result.rollout, result.search, json.loads(path), granted, "finished")
            connection.execute("UPDATE searches SET calls = calls + ? WHERE id = ?", (result.calls, result.search))
            insert_states(connection, result.search, result.states)
            insert_edges(connection, result.search, result.edges)
            _add_returns(connection, result)
            return True

    def reclaim(self) -> int:
        with self._writing() as connection:
            rows = connection.execute(
                """SELECT o.id, o.search, o.path, o.calls FROM rollouts o JOIN runners r ON r.id = o.runner
                WHERE o.status = 'begun' AND abs(? - r.heartbeat_at) > r.lease""",  # a clock may be set back
                (time.time(),),
            ).fetchall()
            for rollout, search, path, granted in rows:
                _release(connection, rollout, search, json.loads(path), granted, "reclaimed")
            return len(rows)

    def finish_search(self, search: str, *, best_attempt: str | None, summary: dict[str, Any]) -> None:
        with self._writing() as connection:
            checked = _search(connection, search).model_copy(update={"summary": summary})
            refuse_nul(checked)
            connection.execute(
                "UPDATE searches SET status = ?, best_attempt = ?, summary = json_extract(?, '$.summary') WHERE id = ?",
                (SearchStatus.FINISHED, best_attempt, checked.model_dump_json(include={"summary"}), search),
            )

    def extend_search(self, search: str, budget: int) -> None:
        with self._writing() as connection:
            old = _search(connection, search).budget
            if budget < old:
                raise InputError(
                    f"the budget is {old} already, and cannot shrink to {budget}.", where=f"search {search}"
                )
            connection.execute(
                "UPDATE searches SET budget = ?, status = ? WHERE id = ?", (budget, SearchStatus.OPEN, search)
            )

    def searches(self) -> list[Search]:
        with self._reading() as connection:
            rows = connection.execute(f"SELECT {SEARCH_COLUMNS} FROM searches").fetchall()
        return sorted(map(search_record, rows), key=lambda s: (s.created_at, s.id), reverse=True)

    def search(self, search: str) -> Search:
        with self._reading() as connection:
            row = connection.execute(f"SELECT {SEARCH_COLUMNS} FROM searches WHERE id = ?", (search,)).fetchone()
            if row is not None:
                return search_record(row)
            rows = connection.execute(
                f"SELECT {SEARCH_COLUMNS} FROM searches WHERE substr(id, 1, length(?1)) = ?1 AND ?1 <> ''",
                (search,),
            ).fetchall()
        if len(rows) > 1:
            raise NotFound(f"{len(rows)} searches begin with `{search}`.", fix="Write more of the id.")
        if not rows:
            raise no_such("search", search)
        return search_record(rows[0])

    def attempts(self, search: str) -> Iterator[Attempt]:
        last = 0
        while True:
            with self._reading() as connection:
                rows = connection.execute(
                    "SELECT number, record FROM attempts WHERE search = ? AND number > ? ORDER BY number LIMIT ?",
                    (search, last, _PAGE),
                ).fetchall()
            for _, record in rows:
                yield Attempt.model_validate_json(record)
            if len(rows) < _PAGE:
                return
            last = rows[-1][0]

    def attempt(self, attempt: str) -> Attempt:
        with self._reading() as connection:
            row = connection.execute("SELECT record FROM attempts WHERE id = ?", (attempt,)).fetchone()
        if row is None:
            raise no_such("attempt", attempt)
        return Attempt.model_validate_json(row[0])

    def runners(self, search: str) -> list[Runner]:
        with self._reading() as connection:
            rows = connection.execute(f"SELECT {RUNNER_COLUMNS} FROM runners WHERE search = ? ORDER BY id", (search,))
            return [runner_record(row) for row in rows]

    def delete_search(self, search: str) -> None:
        with self._writing() as connection:
            for table, key in (
                ("attempts", "search"),
                ("rollouts", "search"),
                ("runners", "search"),
                ("edges", "search"),
                ("states", "search"),
                ("searches", "id"),
            ):
                connection.execute(f"DELETE FROM {table} WHERE {key} = ?", (search,))

    def roll_up(self, search: str) -> int:
        with self._writing() as connection:
            record = _search(connection, search)
            if record.level not in (Level.GPU, Level.MODELLED):
                return 0
            old = rolled_up(connection, "search = ?", search)
            rows = connection.execute(
                """SELECT u.technique, v.technique, e.visits, e.value_sum FROM edges e
                JOIN states u ON u.search = e.search AND u.id = e.source
                JOIN states v ON v.search = e.search AND v.id = e.target
                WHERE e.search = ? AND e.visits > 0""",
                (search,),
            )
            new = rolled_up_edges(record, rows)
            delta = replaced_returns(old, new, resolver(alias_table(connection)))
            connection.execute("DELETE FROM rolled_up WHERE search = ?", (search,))
            put_rolled_up(connection, new)
            apply(connection, delta)
            return delta.changed()


def _search(connection: sqlite3.Connection, search: str) -> Search:
    row = connection.execute(f"SELECT {SEARCH_COLUMNS} FROM searches WHERE id = ?", (search,)).fetchone()
    if row is None:
        raise no_such("search", search)
    return search_record(row)


def _beat(connection: sqlite3.Connection, runner: str) -> None:
    if not connection.execute("UPDATE runners SET heartbeat_at = ? WHERE id = ?", (time.time(), runner)).rowcount:
        raise no_such("runner", runner, fix="It has to join the search first.")


def _fly(connection: sqlite3.Connection, search: str, path: Iterable[Sequence[str]], change: int) -> None:
    for source, target in path:
        cursor = connection.execute(
            "UPDATE edges SET in_flight = in_flight + ? WHERE search = ? AND source = ? AND target = ?",
            (change, search, source, target),
        )
        if not cursor.rowcount:
            raise no_such("edge", f"{source} → {target}", f"search {search}")


def _release(
    connection: sqlite3.Connection,
    rollout: str,
    search: str,
    path: list[list[str]],
    granted: int,
    status: str,
) -> None:
    _fly(connection, search, path, -1)
    connection.execute("UPDATE searches SET reserved = reserved - ? WHERE id = ?", (granted, search))
    connection.execute("UPDATE rollouts SET status = ? WHERE id = ?", (status, rollout))


def _add_returns(connection: sqlite3.Connection, result: RolloutResult) -> None:
    for (source, target), more in edge_increments(result).items():
        cursor = connection.execute(
            """UPDATE edges SET visits = visits + ?1, value_sum = value_sum + ?2, value_sq_sum = value_sq_sum + ?3,
            best = iif(?4 IS NULL, best, max(coalesce(best, ?4), ?4)), refusals = refusals + ?5
            WHERE search = ?6 AND source = ?7 AND target = ?8""",
            (
                more.visits,
                more.value_sum,
                more.value_sq_sum,
                more.best,
                more.refusals,
                result.search,
                source,
                target,
            ),
        )
        if not cursor.rowcount:
            raise no_such("edge", f"{source} → {target}", f"search {result.search}")
    for state_id, (visits, value_sum) in node_increments(result).items():
        cursor = connection.execute(
            "UPDATE states SET visits = visits + ?, value_sum = value_sum + ? WHERE search = ? AND id = ?",
            (visits, value_sum, result.search, state_id),
        )
        if not cursor.rowcount:
            raise no_such("state", state_id, f"search {result.search}")
    for state_id, (attempt, speedup) in best_by_state(result.attempts).items():
        connection.execute(
            """UPDATE states SET best_attempt = ?1, best_speedup = ?2 WHERE search = ?3 AND id = ?4
            AND (best_attempt IS NULL OR coalesce(?2, 0) > coalesce(best_speedup, 0))""",
            (attempt, speedup, result.search, state_id),
        )


def insert_states(connection: sqlite3.Connection, search: str, states: Sequence[State]) -> None:
    """Add the states that are not there, with nothing counted."""
    try:
        connection.executemany(
            "INSERT INTO states VALUES (?, ?, ?, 0, 0, 0.0, NULL, NULL) ON CONFLICT DO NOTHING",
            [(search, s.id, s.technique) for s in states],
        )
    except sqlite3.IntegrityError:
        raise no_such("search", search) from None


def insert_edges(connection: sqlite3.Connection, search: str, edges: Sequence[ExploredEdge]) -> None:
    """Add the edges that are not there, with nothing counted. Raises :class:`NotFound` when an end is not there."""
    for e in edges:
        try:
            connection.execute(
                "INSERT INTO edges VALUES (?, ?, ?, ?, 0, 0.0, 0.0, NULL, 0, 0) ON CONFLICT DO NOTHING",
                (search, e.source, e.target, e.prior),
            )
        except sqlite3.IntegrityError:
            raise no_such("state", f"{e.source} or {e.target}", f"search {search}") from None


def insert_attempts(connection: sqlite3.Connection, attempts: Sequence[Attempt]) -> None:
    """Add the attempts that are not there, in the order given."""
    connection.executemany(
        "INSERT INTO attempts (id, search, record) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        [(a.id, a.search, a.model_dump_json()) for a in attempts],
    )
