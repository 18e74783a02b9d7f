"""The embedded store's tables, as ordered migrations. A migration that has run anywhere is never edited: add one."""

from __future__ import annotations

from typing import NamedTuple

#: ``PRAGMA application_id`` of a regraph file: "RGPH".
APPLICATION_ID = 0x52475048


class Migration(NamedTuple):
    number: int
    name: str
    statements: tuple[str, ...]


_SUMS = """
    examples INTEGER NOT NULL, gain_count INTEGER NOT NULL, gain_micros INTEGER NOT NULL,
    return_count INTEGER NOT NULL, return_micros INTEGER NOT NULL,
    modelled_count INTEGER NOT NULL, modelled_micros INTEGER NOT NULL
"""

_KNOWLEDGE = (
    # `given`: put by name; such a technique exists without steps.
    """CREATE TABLE techniques (
        name TEXT PRIMARY KEY, description TEXT NOT NULL, shipped INTEGER NOT NULL, given INTEGER NOT NULL,
        examples INTEGER NOT NULL, trajectories INTEGER NOT NULL) STRICT, WITHOUT ROWID""",
    # `resolved`: the end of the chain that starts at `technique`.
    """CREATE TABLE aliases (
        alias TEXT PRIMARY KEY, technique TEXT NOT NULL, resolved TEXT NOT NULL, review INTEGER NOT NULL,
        record TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    "CREATE INDEX aliases_resolved ON aliases (resolved)",
    """CREATE TABLE trajectories (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, task TEXT NOT NULL, author TEXT NOT NULL,
        function TEXT NOT NULL, source TEXT NOT NULL, search TEXT NOT NULL, length INTEGER NOT NULL) STRICT""",
    "CREATE INDEX trajectories_task ON trajectories (task, id)",
    # The narrow half of a step, which scans read, apart from its texts, which only the chosen ones need.
    """CREATE TABLE steps (
        number INTEGER PRIMARY KEY, trajectory INTEGER NOT NULL REFERENCES trajectories, position INTEGER NOT NULL,
        phrase TEXT NOT NULL, before TEXT NOT NULL, technique TEXT NOT NULL, example INTEGER NOT NULL, gain REAL,
        vector BLOB NOT NULL, UNIQUE (trajectory, position)) STRICT""",
    "CREATE INDEX steps_transition ON steps (before, technique, example)",
    "CREATE INDEX steps_phrase ON steps (phrase, trajectory)",
    """CREATE TABLE texts (
        step INTEGER PRIMARY KEY REFERENCES steps, think TEXT NOT NULL, method TEXT NOT NULL, detail TEXT NOT NULL,
        code TEXT NOT NULL, verdict TEXT) STRICT""",
    f"""CREATE TABLE shares (
        before TEXT NOT NULL, after TEXT NOT NULL, task TEXT NOT NULL, {_SUMS},
        PRIMARY KEY (before, after, task)) STRICT, WITHOUT ROWID""",
    f"""CREATE TABLE transitions (
        before TEXT NOT NULL, after TEXT NOT NULL, {_SUMS}, PRIMARY KEY (before, after)) STRICT, WITHOUT ROWID""",
    "CREATE INDEX transitions_after ON transitions (after)",
    # Names as the search had them; aliases resolve them.
    """CREATE TABLE rolled_up (
        search TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL, task TEXT NOT NULL, level TEXT NOT NULL,
        count INTEGER NOT NULL, micros INTEGER NOT NULL, PRIMARY KEY (search, before, after)) STRICT, WITHOUT ROWID""",
)

_SEARCH = (
    """CREATE TABLE searches (
        id TEXT PRIMARY KEY, root TEXT NOT NULL, task TEXT NOT NULL, level TEXT NOT NULL, status TEXT NOT NULL,
        created_at TEXT NOT NULL, budget INTEGER NOT NULL, calls INTEGER NOT NULL, reserved INTEGER NOT NULL,
        best_attempt TEXT, summary TEXT NOT NULL, record TEXT NOT NULL) STRICT""",
    """CREATE TABLE states (
        search TEXT NOT NULL REFERENCES searches, id TEXT NOT NULL, technique TEXT NOT NULL, expanded INTEGER NOT NULL,
        visits INTEGER NOT NULL, value_sum REAL NOT NULL, best_speedup REAL, best_attempt TEXT,
        PRIMARY KEY (search, id)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE edges (
        search TEXT NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL, prior REAL NOT NULL,
        visits INTEGER NOT NULL, value_sum REAL NOT NULL, value_sq_sum REAL NOT NULL, best REAL,
        in_flight INTEGER NOT NULL, refusals INTEGER NOT NULL, PRIMARY KEY (search, source, target),
        FOREIGN KEY (search, source) REFERENCES states (search, id),
        FOREIGN KEY (search, target) REFERENCES states (search, id)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE runners (
        id TEXT PRIMARY KEY, search TEXT NOT NULL REFERENCES searches, lease REAL NOT NULL, heartbeat_at REAL NOT NULL,
        host TEXT NOT NULL, pid INTEGER NOT NULL) STRICT""",
    "CREATE INDEX runners_search ON runners (search)",
    # status: begun, finished or reclaimed; calls: those granted.
    """CREATE TABLE rollouts (
        id TEXT PRIMARY KEY, search TEXT NOT NULL REFERENCES searches, runner TEXT NOT NULL, path TEXT NOT NULL,
        calls INTEGER NOT NULL, status TEXT NOT NULL) STRICT""",
    "CREATE INDEX rollouts_search ON rollouts (search)",
    "CREATE INDEX rollouts_begun ON rollouts (runner) WHERE status = 'begun'",
    """CREATE TABLE attempts (
        number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, search TEXT NOT NULL REFERENCES searches,
        record TEXT NOT NULL) STRICT""",
    "CREATE INDEX attempts_search ON attempts (search, number)",
)

MIGRATIONS = (Migration(1, "graph", _KNOWLEDGE + _SEARCH),)

#: The schema that this program reads and writes.
CURRENT = MIGRATIONS[-1].number
