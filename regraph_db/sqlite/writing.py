"""The knowledge half's writes: trajectories merged exactly once, aliases that the whole graph follows."""

# ruff: noqa: S608 -- only names of this package's own tables and columns are put into a statement
from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence

from regraph_db.bounds import check_alias, check_technique, check_trajectory
from regraph_db.derive import Delta, Outline, RolledUp, StepFacts, Sums, Trust, moved, resolver, trust
from regraph_db.records import ROOT, Alias, MergeReport, Technique, Trajectory, Verdict
from regraph_db.sqlite.base import SqliteBase
from regraph_db.vectors import vector

_SUM_COLUMNS = ", ".join(Sums._fields)
_PLUS = ", ".join(f"{name} = {name} + excluded.{name}" for name in Sums._fields)
_EMPTY = "examples = 0 AND return_count = 0 AND modelled_count = 0"


class SqliteKnowledgeWriting(SqliteBase):
    """Writes of the knowledge half."""

    def put_techniques(self, techniques: Sequence[Technique]) -> None:
        for technique in techniques:
            check_technique(technique)
        with self._writing() as connection:
            connection.executemany(
                """INSERT INTO techniques VALUES (?, ?, ?, 1, 0, 0) ON CONFLICT (name) DO UPDATE SET given = 1,
                description = iif(excluded.description = '', description, excluded.description),
                shipped = max(shipped, excluded.shipped)""",
                [(t.name, t.description, t.shipped) for t in techniques],
            )

    def put_aliases(self, aliases: Sequence[Alias], *, replace: bool = False) -> None:
        for alias in aliases:
            check_alias(alias)
        with self._writing() as connection:
            put_aliases(connection, aliases, replace=replace)

    def revoke_alias(self, alias: str) -> Alias | None:
        with self._writing() as connection:
            row = connection.execute("SELECT record FROM aliases WHERE alias = ?", (alias,)).fetchone()
            if row is None:
                return None
            old = alias_table(connection)
            connection.execute("DELETE FROM aliases WHERE alias = ?", (alias,))
            follow(connection, old, {name: target for name, target in old.items() if name != alias})
            return Alias.model_validate_json(row[0])

    def merge_trajectories(self, trajectories: Sequence[Trajectory], aliases: Sequence[Alias] = ()) -> MergeReport:
        for alias in aliases:
            check_alias(alias)
        prepared = [_prepare(trajectory) for trajectory in trajectories]
        with self._writing() as connection:
            known_before = _Known(connection)
            put_aliases(connection, aliases, replace=False)
            to_technique = resolver(alias_table(connection))
            delta = Delta()
            merged = verified = steps = 0
            for trajectory, identity, outline, vectors in prepared:
                standing = known_trajectories(connection, [identity]).get(identity)
                if standing is None:
                    merged += 1
                    steps += len(outline.steps)
                elif trust(step.verdict for step in trajectory.steps) > standing:
                    verified += 1
                    for old in _remove(connection, identity):
                        delta.add(old, to_technique, -1)
                else:
                    continue
                _insert(connection, trajectory, identity, outline, outline.walk(to_technique), vectors)
                delta.add(outline, to_technique)
            new_techniques = known_before.new_techniques(delta.techniques)
            new_transitions = known_before.new_transitions(transitions := delta.transitions())
            apply(connection, delta)
        return MergeReport(
            merged=merged,
            verified=verified,
            duplicates=len(prepared) - merged - verified,
            steps=steps,
            new_techniques=tuple(sorted(new_techniques)),
            known_techniques=len(delta.techniques) - len(new_techniques),
            new_transitions=new_transitions,
            known_transitions=len(transitions) - new_transitions,
        )


class _Known:
    """What the graph held when a merge began."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._techniques = {name for (name,) in connection.execute("SELECT name FROM techniques")}

    def new_techniques(self, names: Iterable[str]) -> set[str]:
        return set(names) - self._techniques

    def new_transitions(self, keys: Collection[tuple[str, str]]) -> int:
        """How many are not there yet; asked before they are written."""
        query = "SELECT 1 FROM transitions WHERE before = ? AND after = ?"
        return sum(self._connection.execute(query, key).fetchone() is None for key in keys)


def _prepare(trajectory: Trajectory) -> tuple[Trajectory, str, Outline, list[bytes]]:
    """Everything that needs no lock: checks, id, facts, vectors of the code before each step."""
    check_trajectory(trajectory)
    codes = [trajectory.source, *(step.code for step in trajectory.steps[:-1])]
    return trajectory, trajectory.id, Outline.of(trajectory), [vector(code).tobytes() for code in codes]


def _insert(
    connection: sqlite3.Connection,
    trajectory: Trajectory,
    identity: str,
    outline: Outline,
    walk: list[tuple[str, str]],
    vectors: list[bytes],
) -> None:
    t = trajectory
    number = connection.execute(
        "INSERT INTO trajectories (id, task, author, function, source, search, length) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (identity, t.task, t.author, t.function, t.source, t.search, len(t.steps)),
    ).lastrowid
    for position, (step, facts, (before, after)) in enumerate(zip(t.steps, outline.steps, walk, strict=True)):
        row = connection.execute(
            """INSERT INTO steps (trajectory, position, phrase, before, technique, example, gain, vector)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (number, position, facts.phrase, before, after, facts.example, facts.gain, vectors[position]),
        ).lastrowid
        verdict = None if step.verdict is None else step.verdict.model_dump_json(exclude_defaults=True)
        connection.execute(
            "INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?)",
            (row, step.think, step.method, step.detail, step.code, verdict),
        )


def _remove(connection: sqlite3.Connection, identity: str) -> list[Outline]:
    """Take a trajectory away and return what the graph's shape took from it; nothing where it has lost its steps."""
    (number,) = connection.execute("SELECT number FROM trajectories WHERE id = ?", (identity,)).fetchone()
    outlines = _outlines(connection, "s.trajectory = ?", number)
    connection.execute("DELETE FROM texts WHERE step IN (SELECT number FROM steps WHERE trajectory = ?)", (number,))
    connection.execute("DELETE FROM steps WHERE trajectory = ?", (number,))
    connection.execute("DELETE FROM trajectories WHERE number = ?", (number,))
    return outlines


def known_trajectories(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Trust]:
    """Those of these ids that stand, each with how far it was verified."""
    verdicts: dict[str, list[Verdict | None]] = {}
    for identity, step, verdict in connection.execute(
        """SELECT t.id, x.step, x.verdict FROM trajectories t LEFT JOIN steps s ON s.trajectory = t.number
        LEFT JOIN texts x ON x.step = s.number WHERE t.id IN (SELECT value FROM json_each(?))""",
        (json.dumps(list(ids)),),
    ):
        of_steps = verdicts.setdefault(identity, [])
        if step is not None:
            of_steps.append(verdict and Verdict.model_validate_json(verdict))
    return {identity: trust(found) for identity, found in verdicts.items()}


def alias_table(connection: sqlite3.Connection) -> dict[str, str]:
    """Every alias with what it names."""
    return dict(connection.execute("SELECT alias, technique FROM aliases").fetchall())


def put_aliases(connection: sqlite3.Connection, aliases: Sequence[Alias], *, replace: bool) -> None:
    """Write aliases inside a transaction and let the graph follow."""
    if not aliases:
        return
    old = alias_table(connection)
    new = dict(old)
    chosen: dict[str, Alias] = {}
    for alias in aliases:
        if replace or alias.alias not in new:
            new[alias.alias] = alias.technique
            chosen[alias.alias] = alias
    if not chosen:
        return
    connection.executemany(
        """INSERT INTO aliases VALUES (?, ?, '', ?, ?) ON CONFLICT (alias) DO UPDATE SET
        technique = excluded.technique, review = excluded.review, record = excluded.record""",
        [(a.alias, a.technique, a.review, a.model_dump_json()) for a in chosen.values()],
    )
    follow(connection, old, new)


def follow(connection: sqlite3.Connection, old: dict[str, str], new: dict[str, str]) -> None:
    """Move every step, share and technique from one alias table to another. Raises :class:`InputError` on a loop."""
    phrases = sorted(moved(old, new))
    before, after = resolver(old), resolver(new)
    delta = Delta()
    of_phrases = "s.trajectory IN (SELECT trajectory FROM steps WHERE phrase IN (SELECT value FROM json_each(?)))"
    for outline in _outlines(connection, of_phrases, json.dumps(phrases)):
        delta.add(outline, before, -1)
        delta.add(outline, after)
    for returns in _rolled_up(connection, phrases):
        delta.add_returns(returns, before, -1)
        delta.add_returns(returns, after)
    pairs = [(after(phrase), phrase) for phrase in phrases]
    connection.executemany("UPDATE steps SET technique = ? WHERE phrase = ?", pairs)
    connection.executemany(
        """UPDATE steps SET before = ? WHERE number IN (SELECT next.number FROM steps this
        JOIN steps next ON next.trajectory = this.trajectory AND next.position = this.position + 1
        WHERE this.phrase = ?)""",
        pairs,
    )
    changed = {alias for alias in old.keys() | new.keys() if old.get(alias) != new.get(alias)} | set(phrases)
    connection.executemany(
        "UPDATE aliases SET resolved = ? WHERE alias = ?", [(after(alias), alias) for alias in changed]
    )
    apply(connection, delta, also={to(alias) for alias in changed for to in (before, after)})


def _outlines(connection: sqlite3.Connection, where: str, parameter: str | int) -> list[Outline]:
    """The outlines of the trajectories that ``where`` selects."""
    rows = connection.execute(
        f"""SELECT s.trajectory, t.task, s.phrase, s.example, s.gain
        FROM steps s JOIN trajectories t ON t.number = s.trajectory WHERE {where}
        ORDER BY s.trajectory, s.position""",
        (parameter,),
    )
    tasks: dict[int, str] = {}
    steps: dict[int, list[StepFacts]] = {}
    for number, task, phrase, example, gain in rows:
        tasks[number] = task
        steps.setdefault(number, []).append(StepFacts(phrase, bool(example), gain))
    return [Outline(tasks[number], tuple(facts)) for number, facts in steps.items()]


def _rolled_up(connection: sqlite3.Connection, names: Collection[str]) -> list[RolledUp]:
    return rolled_up(
        connection,
        "before IN (SELECT value FROM json_each(?1)) OR after IN (SELECT value FROM json_each(?1))",
        json.dumps(list(names)),
    )


def rolled_up(connection: sqlite3.Connection, where: str, *parameters: str) -> list[RolledUp]:
    """The rolled-up returns that ``where`` selects, by search and names."""
    columns = ", ".join(RolledUp.model_fields)
    rows = connection.execute(
        f"SELECT {columns} FROM rolled_up WHERE {where} ORDER BY search, before, after", parameters
    )
    return [RolledUp.model_validate(dict(zip(RolledUp.model_fields, row, strict=True))) for row in rows]


def put_rolled_up(connection: sqlite3.Connection, returns: Sequence[RolledUp]) -> None:
    """Set these returns in place of those of the same search and names."""
    connection.executemany(
        "INSERT OR REPLACE INTO rolled_up VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(r.search, r.before, r.after, r.task, r.level, r.count, r.micros) for r in returns],
    )


def apply(connection: sqlite3.Connection, delta: Delta, *, also: Collection[str] = ()) -> None:
    """Add a delta to shares, transitions and techniques; what is left with nothing goes."""
    shares = [(*key, *sums) for key, sums in delta.shares.items()]
    totals = [(*key, *sums) for key, sums in delta.transitions().items()]
    for table, key, rows in (
        ("shares", "before, after, task", shares),
        ("transitions", "before, after", totals),
    ):
        marks = ", ".join("?" * (key.count(",") + 1 + len(Sums._fields)))
        connection.executemany(
            f"INSERT INTO {table} ({key}, {_SUM_COLUMNS}) VALUES ({marks}) ON CONFLICT DO UPDATE SET {_PLUS}",
            rows,
        )
    connection.executemany(
        f"DELETE FROM shares WHERE before = ? AND after = ? AND task = ? AND {_EMPTY}", list(delta.shares)
    )
    connection.executemany(
        f"DELETE FROM transitions WHERE before = ? AND after = ? AND {_EMPTY}", list(delta.transitions())
    )
    names = (delta.names() | set(also)) - {ROOT}
    counted = [(name, *delta.techniques.get(name, (0, 0))) for name in names]
    connection.executemany(
        """INSERT INTO techniques VALUES (?, '', 0, 0, ?, ?) ON CONFLICT DO UPDATE
        SET examples = examples + excluded.examples, trajectories = trajectories + excluded.trajectories""",
        counted,
    )
    connection.executemany(
        """DELETE FROM techniques WHERE name = ?1 AND given = 0 AND trajectories = 0
        AND NOT EXISTS (SELECT 1 FROM aliases WHERE resolved = ?1)
        AND NOT EXISTS (SELECT 1 FROM transitions WHERE before = ?1)
        AND NOT EXISTS (SELECT 1 FROM transitions WHERE after = ?1)""",
        [(name,) for name in names],
    )
