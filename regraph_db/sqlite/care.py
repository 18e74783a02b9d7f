"""The care half: what check and dump read, what repair and load write."""

# ruff: noqa: S608 -- only names of this package's own tables and columns are put into a statement
from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from regraph_db.bounds import refuse_nul
from regraph_db.care import (
    CaredStore,
    StoredKnowledge,
    StoredStep,
    derive,
    expected_techniques,
    in_flight,
    reserved,
)
from regraph_db.derive import RolledUp, Sums, replaced_returns, resolver
from regraph_db.portable import StoredRollout, StoredSearch
from regraph_db.records import Attempt, Technique
from regraph_db.rollouts import best_by_state, no_such
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
from regraph_db.sqlite.search import insert_attempts
from regraph_db.sqlite.writing import alias_table, apply, put_rolled_up, rolled_up

_SUMS = ", ".join(Sums._fields)


class SqliteCare(SqliteBase, CaredStore):
    """Hooks of :class:`CaredStore` and :class:`PortableStore`."""

    def _given_techniques(self) -> list[Technique]:
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT name, description, shipped FROM techniques WHERE given = 1 ORDER BY name"
            ).fetchall()
        return [
            Technique(name=name, description=description, shipped=bool(shipped)) for name, description, shipped in rows
        ]

    def _rolled_up(self) -> list[RolledUp]:
        with self._reading() as connection:
            return rolled_up(connection, "1")

    def _load_rolled_up(self, records: Sequence[RolledUp]) -> None:
        for record in records:
            refuse_nul(record)
        with self._writing() as connection:
            where = "search = ? AND before = ? AND after = ?"
            old = {r: rolled_up(connection, where, r.search, r.before, r.after) for r in records}
            newer = [r for r in records if all(there.count < r.count for there in old[r])]
            replaced = [there for r in newer for there in old[r]]
            put_rolled_up(connection, newer)
            apply(connection, replaced_returns(replaced, newer, resolver(alias_table(connection))))

    def _stored_search(self, search: str) -> StoredSearch:
        with self._reading() as connection:
            row = connection.execute(f"SELECT root, {SEARCH_COLUMNS} FROM searches WHERE id = ?", (search,)).fetchone()
            if row is None:
                raise no_such("search", search)

            def rows(columns: str, table: str, order: str) -> list[tuple[Any, ...]]:
                return connection.execute(
                    f"SELECT {columns} FROM {table} WHERE search = ? ORDER BY {order}", (search,)
                ).fetchall()

            return StoredSearch(
                search=search_record(row[1:]),
                root=row[0],
                states=tuple(map(state, rows(STATE_COLUMNS, "states", "id"))),
                edges=tuple(map(edge, rows(EDGE_COLUMNS, "edges", "source, target"))),
                runners=tuple(map(runner_record, rows(RUNNER_COLUMNS, "runners", "id"))),
                rollouts=tuple(
                    StoredRollout.model_validate({"id": i, "runner": r, "path": json.loads(p), "calls": c, "status": s})
                    for i, r, p, c, s in rows("id, runner, path, calls, status", "rollouts", "id")
                ),
            )

    def _load_search(self, stored: StoredSearch) -> None:
        refuse_nul(stored)
        s = stored.search
        with self._writing() as connection:
            row = connection.execute(
                "SELECT calls, (SELECT count(*) FROM rollouts WHERE search = id) FROM searches WHERE id = ?",
                (s.id,),
            ).fetchone()
            if row is not None and tuple(row) >= stored.progress:
                return
            if row is not None:
                for table in ("rollouts", "runners", "edges", "states"):
                    connection.execute(f"DELETE FROM {table} WHERE search = ?", (s.id,))
            connection.execute(
                """INSERT INTO searches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, json_extract(?, '$.summary'), ?)
                ON CONFLICT DO UPDATE SET
                root = excluded.root, status = excluded.status, budget = excluded.budget, calls = excluded.calls,
                reserved = excluded.reserved, best_attempt = excluded.best_attempt, summary = excluded.summary""",
                (
                    *(
                        s.id,
                        stored.root,
                        s.task.name,
                        s.level,
                        s.status,
                        s.created_at.isoformat(),
                        s.budget,
                        s.calls,
                        s.reserved,
                        s.best_attempt,
                    ),
                    *(s.model_dump_json(include={"summary"}), s.model_dump_json()),
                ),
            )
            connection.executemany(
                "INSERT INTO states VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        s.id,
                        n.id,
                        n.technique,
                        n.expanded,
                        n.visits,
                        n.value_sum,
                        n.best_speedup,
                        n.best_attempt,
                    )
                    for n in stored.states
                ],
            )
            connection.executemany(
                "INSERT INTO edges VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (
                        s.id,
                        e.source,
                        e.target,
                        e.prior,
                        e.visits,
                        e.value_sum,
                        e.value_sq_sum,
                        e.best,
                        e.in_flight,
                        e.refusals,
                    )
                    for e in stored.edges
                ],
            )
            connection.executemany(
                "INSERT INTO runners VALUES (?, ?, ?, ?, ?, ?)",
                [(r.id, s.id, r.lease, r.heartbeat_at.timestamp(), r.host, r.pid) for r in stored.runners],
            )
            connection.executemany(
                "INSERT INTO rollouts VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (r.id, s.id, r.runner, json.dumps(r.path, ensure_ascii=False), r.calls, r.status)
                    for r in stored.rollouts
                ],
            )

    def _load_attempts(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            refuse_nul(attempt)
        with self._writing() as connection:
            insert_attempts(connection, attempts)

    def _stored_knowledge(self) -> StoredKnowledge:
        with self._reading() as connection:
            aliases = {
                alias: (technique, resolved)
                for alias, technique, resolved in connection.execute("SELECT alias, technique, resolved FROM aliases")
            }
            techniques = {
                name: (bool(given), examples, trajectories)
                for name, given, examples, trajectories in connection.execute(
                    "SELECT name, given, examples, trajectories FROM techniques"
                )
            }
            shares = {
                (before, after, task): Sums(*sums)
                for before, after, task, *sums in connection.execute(f"SELECT before, after, task, {_SUMS} FROM shares")
            }
            transitions = {
                (before, after): Sums(*sums)
                for before, after, *sums in connection.execute(f"SELECT before, after, {_SUMS} FROM transitions")
            }
        return StoredKnowledge(aliases, techniques, shares, transitions, tuple(self._rolled_up()))

    def _dead_runners(self) -> set[str]:
        with self._reading() as connection:
            return {
                runner
                for (runner,) in connection.execute(
                    "SELECT id FROM runners WHERE abs(? - heartbeat_at) > lease", (time.time(),)
                )
            }

    def _rewrite_knowledge(self) -> None:
        wrong: list[tuple[str, StoredStep]] = []
        knowledge = self._stored_knowledge()
        derived = derive(
            knowledge, self._stored_trajectories(), lambda trajectory, step: wrong.append((trajectory, step))
        )
        techniques = expected_techniques(knowledge, derived)
        with self._writing() as connection:
            connection.executemany(
                """UPDATE steps SET phrase = ?, before = ?, technique = ?, example = ?, gain = ?
                WHERE trajectory = (SELECT number FROM trajectories WHERE id = ?) AND position = ?""",
                [
                    (s.phrase, s.before, s.technique, s.example, s.gain, trajectory, s.position)
                    for trajectory, s in wrong
                ],
            )
            connection.executemany(
                "UPDATE aliases SET resolved = ? WHERE alias = ?",
                [(t, a) for a, t in derived.resolved.items()],
            )
            for table in ("shares", "transitions"):
                connection.execute(f"DELETE FROM {table}")
            connection.execute("UPDATE techniques SET examples = 0, trajectories = 0")
            apply(connection, derived.total, also=knowledge.techniques.keys() | techniques.keys())

    def _rewrite_search(self, search: str) -> None:
        stored = self._stored_search(search)
        flying = in_flight(stored)
        best = best_by_state(self.attempts(search))
        with self._writing() as connection:
            connection.executemany(
                "UPDATE edges SET in_flight = ? WHERE search = ? AND source = ? AND target = ?",
                [(flying[e.source, e.target], search, e.source, e.target) for e in stored.edges],
            )
            connection.execute("UPDATE searches SET reserved = ? WHERE id = ?", (reserved(stored), search))
            connection.executemany(
                "UPDATE states SET best_attempt = ?, best_speedup = ? WHERE search = ? AND id = ?",
                [(*best.get(n.id, (None, None)), search, n.id) for n in stored.states],
            )
