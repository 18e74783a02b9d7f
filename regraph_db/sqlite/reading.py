"""The knowledge half's reads: each one consistent view of the file, streams in pages."""

# ruff: noqa: S608 -- only names of this package's own tables and columns are put into a statement
from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from regraph_db.care import StoredStep, StoredTrajectory
from regraph_db.derive import Sums, Trust, restored
from regraph_db.records import Alias, Counts, Example, Step, Technique, Trajectory, Transition, Verdict
from regraph_db.sqlite.base import SqliteBase
from regraph_db.sqlite.writing import known_trajectories
from regraph_db.vectors import nearest

#: Trajectories read at once by a stream.
_PAGE = 64

#: A technique that is an alias of another is none.
_LISTED = "NOT EXISTS (SELECT 1 FROM aliases WHERE alias = name AND resolved <> name)"

_EXAMPLE = """
    SELECT t.id || ':' || s.position, t.task, t.function, s.before, s.technique, x.method, x.think, x.detail,
        coalesce(p.code, t.source), x.code, x.verdict, s.gain
    FROM steps s JOIN trajectories t ON t.number = s.trajectory JOIN texts x ON x.step = s.number
    LEFT JOIN steps q ON q.trajectory = s.trajectory AND q.position = s.position - 1
    LEFT JOIN texts p ON p.step = q.number
    WHERE t.id = ? AND s.position = ?
"""


class SqliteKnowledgeReading(SqliteBase):
    """Reads of the knowledge half."""

    def techniques(self) -> list[tuple[Technique, int, int]]:
        with self._reading() as connection:
            rows = connection.execute(
                f"""SELECT name, description, shipped, examples, trajectories FROM techniques
                WHERE {_LISTED} ORDER BY name"""
            ).fetchall()
        return [
            (Technique(name=name, description=description, shipped=bool(shipped)), examples, trajectories)
            for name, description, shipped, examples, trajectories in rows
        ]

    def aliases(self, *, review: bool | None = None) -> list[Alias]:
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT record FROM aliases WHERE ?1 IS NULL OR review = ?1 ORDER BY alias", (review,)
            ).fetchall()
        return [Alias.model_validate_json(record) for (record,) in rows]

    def transitions(self, before: str | None = None, *, without_task: str | None = None) -> list[Transition]:
        columns = ", ".join(f"t.{name}, coalesce(s.{name}, 0)" for name in Sums._fields)
        where = "" if before is None else "WHERE t.before = :before"
        with self._reading() as connection:
            rows = connection.execute(
                f"""SELECT t.before, t.after, {columns} FROM transitions t
                LEFT JOIN shares s ON s.before = t.before AND s.after = t.after AND s.task = :task
                {where} ORDER BY t.before, t.after""",
                {"before": before, "task": without_task},
            ).fetchall()
        result = []
        for source, target, *values in rows:
            sums = Sums(*values[0::2]).plus(Sums(*values[1::2]), -1)
            if not sums.empty:
                result.append(Transition(before=source, after=target, statistics=sums.statistics()))
        return result

    def examples(
        self,
        before: str,
        after: str,
        *,
        like: str = "",
        limit: int = 1,
        without_task: str | None = None,
        without_function: str | None = None,
    ) -> list[Example]:
        return self._nearest("s.before = :before AND s.technique = :after AND s.example = 1", like, limit, {
            "before": before, "after": after, "task": without_task, "function": without_function
        })  # fmt: skip

    def nearest_examples(
        self,
        like: str,
        *,
        limit: int = 1,
        without_task: str | None = None,
        without_function: str | None = None,
    ) -> list[Example]:
        return self._nearest("s.example = 1", like, limit, {"task": without_task, "function": without_function})

    def _nearest(self, which: str, like: str, limit: int, parameters: dict[str, str | None]) -> list[Example]:
        source = f"""FROM steps s JOIN trajectories t ON t.number = s.trajectory WHERE {which}
            AND (:task IS NULL OR t.task <> :task) AND (:function IS NULL OR t.function <> :function)"""
        with self._reading() as connection:
            chosen: list[tuple[str, float | None]]
            if like:
                rows = connection.execute(f"SELECT t.id || ':' || s.position, s.vector {source}", parameters)
                chosen = [*nearest(like, rows, limit)]
            else:
                query = f"SELECT t.id || ':' || s.position AS id {source} ORDER BY id LIMIT :limit"
                chosen = [(key, None) for (key,) in connection.execute(query, {**parameters, "limit": limit})]
            return [_example(connection, key, similarity) for key, similarity in chosen]

    def trajectories(self, *, task: str | None = None) -> Iterator[Trajectory]:
        for stored in self._stored_trajectories(task):
            if stored.trajectory is not None:
                yield stored.trajectory

    def _stored_trajectories(self, task: str | None = None) -> Iterator[StoredTrajectory]:
        last = ""
        while True:
            with self._reading() as connection:
                heads = connection.execute(
                    f"""SELECT number, id, task, author, function, source, search, length FROM trajectories
                    WHERE id > :last {"" if task is None else "AND task = :task"} ORDER BY id LIMIT {_PAGE}""",
                    {"last": last, "task": task},
                ).fetchall()
                page = [stored_trajectory(connection, *head) for head in heads]
            yield from page
            if len(heads) < _PAGE:
                return
            last = heads[-1][1]

    def known_trajectories(self, ids: Sequence[str]) -> dict[str, Trust]:
        with self._reading() as connection:
            return known_trajectories(connection, ids)

    def counts(self) -> Counts:
        with self._reading() as connection:
            row = connection.execute(
                f"""SELECT (SELECT count(*) FROM techniques WHERE {_LISTED}), (SELECT count(*) FROM aliases),
                (SELECT count(*) FROM trajectories), (SELECT count(*) FROM steps), (SELECT count(*) FROM transitions),
                (SELECT coalesce(sum(examples), 0) FROM transitions), (SELECT count(*) FROM searches),
                (SELECT count(*) FROM attempts)"""
            ).fetchone()
        return Counts(**dict(zip(Counts.model_fields, row, strict=True)))


def _example(connection: sqlite3.Connection, key: str, similarity: float | None) -> Example:
    trajectory, _, position = key.rpartition(":")
    row = connection.execute(_EXAMPLE, (trajectory, int(position))).fetchone()
    identity, task, function, before, after, method, think, detail, code_before, code_after, verdict, gain = row
    return Example(
        id=identity,
        task=task,
        function=function,
        transition=(before, after),
        method=method,
        think=think,
        detail=detail,
        before=code_before,
        after=code_after,
        verdict=_verdict(verdict),
        gain=gain,
        similarity=similarity,
    )


def stored_trajectory(
    connection: sqlite3.Connection,
    number: int,
    identity: str,
    task: str,
    author: str,
    function: str,
    source: str,
    search: str,
    length: int,
) -> StoredTrajectory:
    """One trajectory with its steps' places in the graph."""
    rows: list[tuple[Any, ...]] = connection.execute(
        """SELECT x.think, x.method, x.detail, x.code, x.verdict, s.position, s.phrase, s.before, s.technique,
            s.example, s.gain
        FROM steps s JOIN texts x ON x.step = s.number WHERE s.trajectory = ? ORDER BY s.position""",
        (number,),
    ).fetchall()
    steps = tuple(
        Step(think=row[0], method=row[1], detail=row[2], code=row[3], verdict=_verdict(row[4])) for row in rows
    )
    places = tuple(StoredStep(row[5], row[6], row[7], row[8], bool(row[9]), row[10]) for row in rows)
    record = (
        restored(
            Trajectory(task=task, author=author, function=function, source=source, steps=steps, search=search), identity
        )
        if steps
        else None
    )
    return StoredTrajectory(identity, length, record, places)


def _verdict(text: str | None) -> Verdict | None:
    return None if text is None else Verdict.model_validate_json(text)
