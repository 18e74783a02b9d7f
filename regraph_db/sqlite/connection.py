"""Connections to one SQLite file: one a thread and process, durable transactions, errors in the project's words."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from regraph_db.errors import InternalFault, StoreError, StoreUnreachable, StoreUnusable

_ADVICE = {
    sqlite3.SQLITE_FULL: "Free some space on the disk; what was acknowledged before is kept.",
    sqlite3.SQLITE_READONLY: "Give yourself write permission on the file and its folder, or name another file.",
    sqlite3.SQLITE_PERM: "Give yourself write permission on the file and its folder, or name another file.",
    sqlite3.SQLITE_CANTOPEN: "Check that the folder is there and that you may write in it.",
    sqlite3.SQLITE_CORRUPT: "The file is damaged: restore a copy, or `regraph db export` what can still be read.",
    sqlite3.SQLITE_NOTADB: "It is no SQLite file: name another one with --store.",
    sqlite3.SQLITE_IOERR: "The disk or the file system failed: see the system's log.",
    sqlite3.SQLITE_TOOBIG: "The text is larger than SQLite holds.",
}


def translate(error: sqlite3.Error, path: Path) -> StoreError | InternalFault:
    """The project's error for what SQLite said."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnreachable(
            "another process holds the file locked.",
            where=str(path),
            fix="Wait for it or stop it, or raise the setting `store_timeout`.",
        )
    if code in _ADVICE:
        return StoreUnusable(f"SQLite: {error}.", where=str(path), fix=_ADVICE[code])
    return InternalFault(f"SQLite: {error}.", where=str(path))


class Connections:
    """Hands each thread its own connection, and a forked child new ones."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.path = path
        self._timeout = timeout
        self._local = threading.local()
        self._guard = threading.Lock()
        self._open: list[sqlite3.Connection] = []
        self._closed = False

    def get(self) -> sqlite3.Connection:
        if self._closed:
            raise InternalFault("the store was closed before this call.", where=str(self.path))
        if getattr(self._local, "pid", None) != os.getpid():
            self._local.connection = self._connect()
            self._local.pid = os.getpid()
        connection: sqlite3.Connection = self._local.connection
        return connection

    def close(self) -> None:
        with self._guard:
            self._closed = True
            while self._open:
                with suppress(sqlite3.Error):
                    self._open.pop().close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the file."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction that holds the write lock from its start; durable when the block ends, nothing when it
        raises."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        try:
            connection = self.get()
            self._begin(connection, begin)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise translate(error, self.path) from error
            raise

    def _begin(self, connection: sqlite3.Connection, begin: str) -> None:
        # SQLite's own busy handler waits; it is not asked while a killed process's log is recovered, hence the loop.
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                connection.execute(begin)
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _connect(self) -> sqlite3.Connection:
        # Shared between threads only so that close() may be called from any; each thread uses its own.
        connection = sqlite3.connect(
            f"file:{_quoted(self.path)}?mode=rw",
            uri=True,
            timeout=self._timeout,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        with self._guard:
            self._open.append(connection)
        return connection


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
