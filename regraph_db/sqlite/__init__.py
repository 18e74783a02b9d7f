"""The embedded store: one SQLite file, several threads and processes on one machine, no server."""

from __future__ import annotations

from regraph_db.sqlite.care import SqliteCare
from regraph_db.sqlite.reading import SqliteKnowledgeReading
from regraph_db.sqlite.search import SqliteSearch
from regraph_db.sqlite.writing import SqliteKnowledgeWriting


class SqliteStore(SqliteKnowledgeReading, SqliteKnowledgeWriting, SqliteSearch, SqliteCare):
    """``sqlite:///FILE``. Write-ahead log, a write is on the disk when its method returns."""


__all__ = ["SqliteStore"]
