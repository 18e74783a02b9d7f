"""Opening a SQLite graph: the URL, the schema's migrations, and the transactions that the halves of the store use."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from regraph_db.errors import InputError, SchemaMismatch, StoreUnusable
from regraph_db.settings import Settings
from regraph_db.sqlite.connection import Connections, translate
from regraph_db.sqlite.schema import APPLICATION_ID, CURRENT, MIGRATIONS
from regraph_db.store import GraphStore

_PREFIX = "sqlite:///"


class SqliteBase(GraphStore):
    """What the knowledge, search and care halves share."""

    def __init__(self, url: str, path: Path, timeout: float) -> None:
        self.url = url
        self.path = path
        self._connections = Connections(path, timeout)

    @classmethod
    def open(cls, url: str, settings: Settings, *, create: bool = False) -> Self:
        """Open ``sqlite:///FILE`` (relative) or ``sqlite:////FILE`` (absolute); see
        :func:`regraph_db.opening.open_store`."""
        path = _path(url)
        if not path.exists():
            if not create:
                raise StoreUnusable("there is no graph here.", where=str(path), fix="Make one with `regraph db init`.")
            _create(path)
        store = cls(url, path, settings.store_timeout)
        try:
            if create:
                store.migrate()
            version = store.schema_version()
            if version < CURRENT:
                raise SchemaMismatch(
                    f"its schema is {version}, this program's is {CURRENT}.",
                    where=str(path),
                    fix="Run `regraph db init` to migrate it.",
                )
        except BaseException:
            store.close()
            raise
        return store

    def migrate(self) -> list[str]:
        if self.schema_version() == CURRENT:
            return []
        try:
            # Only now that the file is known to be a graph or empty; it stays in this mode for ever.
            self._raw().execute("PRAGMA journal_mode = WAL")
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        with self._writing() as connection:
            version = self._version(connection)
            ran = []
            for migration in MIGRATIONS[version:]:
                for statement in migration.statements:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO migrations VALUES (?, ?, ?)",
                    (migration.number, migration.name, datetime.now(UTC).isoformat()),
                )
                ran.append(f"{migration.number:03}_{migration.name}")
            return ran

    def schema_version(self) -> int:
        with self._reading() as connection:
            return self._version(connection, begin=False)

    def close(self) -> None:
        self._connections.close()

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._connections.reading()

    def _writing(self) -> AbstractContextManager[sqlite3.Connection]:
        return self._connections.writing()

    def _raw(self) -> sqlite3.Connection:
        try:
            return self._connections.get()
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def _version(self, connection: sqlite3.Connection, *, begin: bool = True) -> int:
        """The file's schema; with ``begin`` an empty file becomes a regraph one of schema 0."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != APPLICATION_ID:
            if application or tables:
                raise StoreUnusable(
                    "it is a SQLite file of another program.",
                    where=str(self.path),
                    fix="Name another file with --store; nothing was changed.",
                )
            if not begin:
                return 0
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(
                """CREATE TABLE migrations (
                number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT"""
            )
        (version,) = connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone()
        if version > CURRENT:
            raise SchemaMismatch(
                f"a newer regraph wrote it: its schema is {version}, this program's is {CURRENT}.",
                where=str(self.path),
                fix="Install the newer regraph; nothing was changed.",
            )
        return int(version)


def _path(url: str) -> Path:
    if not url.startswith(_PREFIX) or not url.removeprefix(_PREFIX):
        raise InputError(
            "a SQLite store is named by its file.",
            where=url,
            fix="Write sqlite:///FILE, or sqlite:////FOLDER/FILE for an absolute path.",
        )
    name = url.removeprefix(_PREFIX)
    if name == ":memory:" or "\x00" in name:
        raise InputError("a graph in memory would be forgotten.", where=repr(url), fix="Name a file.")
    return Path(name).expanduser()


def _create(path: Path) -> None:
    if not path.parent.is_dir():
        raise StoreUnusable(
            "the folder is not there.",
            where=str(path.parent),
            fix="Make it, or name another file with --store.",
        )
    try:
        path.touch()
    except OSError as error:
        raise StoreUnusable(
            f"the file cannot be made: {error.strerror}.",
            where=str(path),
            fix="Get write permission in the folder, or name another file with --store.",
        ) from error
