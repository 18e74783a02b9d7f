"""Opening a Neo4j graph: the driver, the schema's migrations, and the managed transactions that the halves use."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from neo4j import Driver, GraphDatabase, ManagedTransaction, NotificationMinimumSeverity
from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
)

from cypher import statement
from regraph_db.errors import (
    InputError,
    InternalFault,
    RegraphError,
    SchemaMismatch,
    StoreUnreachable,
    StoreUnusable,
)
from regraph_db.settings import Settings
from regraph_db.store import GraphStore

#: Migrations in order; a file that has run anywhere is never edited: add one.
MIGRATIONS = ("001_graph",)

#: The schema that this program reads and writes.
CURRENT = len(MIGRATIONS)

#: Seconds to open one connection; the driver tries again until ``store_timeout``.
_CONNECT = 5.0
#: Growth of the pauses between the driver's tries. It would double them, and find a server that was away for a minute
#: up to a minute late.
_SLOWER = 1.3

# The driver tells every retry to whoever did not set up logging; the errors below say it once.
logging.getLogger("neo4j").addHandler(logging.NullHandler())

T = TypeVar("T")
Row = dict[str, Any]


def rows(transaction: ManagedTransaction, name: str, /, **parameters: Any) -> list[Row]:
    """Run ``cypher/NAME.cypher`` and fetch what it returns."""
    # Not `record.data()`, which copies every value item by item: a millisecond for each vector of bytes.
    return [dict(record) for record in transaction.run(statement(name), parameters)]


class Neo4jBase(GraphStore):
    """What the knowledge, search and care halves share."""

    def __init__(self, url: str, settings: Settings) -> None:
        self.url = _without_credentials(url)
        self._settings = settings
        self._guard = threading.Lock()
        self._pid = os.getpid()
        self._driver: Driver | None = self._connect()
        self._bookmarks = GraphDatabase.bookmark_manager()

    @classmethod
    def open(cls, url: str, settings: Settings, *, create: bool = False) -> Self:
        """Open ``neo4j://HOST`` or ``bolt://HOST`` (+s, +ssc); see :func:`regraph_db.opening.open_store`."""
        store = cls(url, settings)
        try:
            store._greet()
            if create:
                store.migrate()
            version = store.schema_version()
            if version < CURRENT:
                raise SchemaMismatch(
                    f"its schema is {version}, this program's is {CURRENT}.",
                    where=store.url,
                    fix="Run `regraph db init` to make or migrate the graph.",
                )
        except BaseException:
            store.close()
            raise
        return store

    def migrate(self) -> list[str]:
        version = self.schema_version()
        ran = []
        for number, name in enumerate(MIGRATIONS[version:], version + 1):
            # Neo4j keeps changes of schema and of data in separate transactions: each is safe to run again.
            for text in statement(f"schema/{name}").split(";\n"):
                if text.strip():
                    self._write(_run, text)
            self._write(rows, "schema/record_migration", number=number, name=name)
            ran.append(name)
        return ran

    def schema_version(self) -> int:
        found = self._read(rows, "schema/version")
        if not found:
            if self._read(rows, "schema/count_nodes")[0]["nodes"]:
                raise StoreUnusable(
                    f"the database `{self._settings.neo4j_database}` holds nodes of something else.",
                    where=self.url,
                    fix="Name another database with the setting `neo4j_database`; nothing was changed.",
                )
            return 0
        version = int(found[0]["schema"])
        if version > CURRENT:
            raise SchemaMismatch(
                f"a newer regraph wrote it: its schema is {version}, this program's is {CURRENT}.",
                where=self.url,
                fix="Install the newer regraph; nothing was changed.",
            )
        return version

    def close(self) -> None:
        with self._guard:
            driver, self._driver = self._driver, None
        if driver is not None and self._pid == os.getpid():
            driver.close()

    def _write(self, work: Callable[..., T], /, *arguments: Any, **parameters: Any) -> T:
        """``work(transaction, …)`` in one managed write transaction, run again by the driver on deadlock or leader
        change."""
        try:
            with self._open_driver().session(
                database=self._settings.neo4j_database, bookmark_manager=self._bookmarks
            ) as session:
                return session.execute_write(work, *arguments, **parameters)
        except (Neo4jError, DriverError) as error:
            raise self._translated(error) from error

    def _read(self, work: Callable[..., T], /, *arguments: Any, **parameters: Any) -> T:
        """``work(transaction, …)`` in one managed read transaction."""
        try:
            with self._open_driver().session(
                database=self._settings.neo4j_database, bookmark_manager=self._bookmarks
            ) as session:
                return session.execute_read(work, *arguments, **parameters)
        except (Neo4jError, DriverError) as error:
            raise self._translated(error) from error

    def _open_driver(self) -> Driver:
        with self._guard:
            if self._driver is None:
                raise InternalFault("the store was closed before this call.", where=self.url)
            if self._pid != os.getpid():
                # A forked child must not speak on its parent's connections.
                self._pid = os.getpid()
                self._driver = self._connect()
                self._bookmarks = GraphDatabase.bookmark_manager()
            return self._driver

    def _connect(self) -> Driver:
        settings = self._settings
        auth = None
        if settings.neo4j_password is not None:
            auth = (settings.neo4j_user, settings.neo4j_password.get_secret_value())
        try:
            return GraphDatabase.driver(
                self.url,
                auth=auth,
                connection_timeout=_CONNECT,
                connection_acquisition_timeout=settings.store_timeout,
                max_transaction_retry_time=settings.store_timeout,
                retry_delay_multiplier=_SLOWER,
                notifications_min_severity=NotificationMinimumSeverity.OFF,
            )
        except (ConfigurationError, ValueError) as error:
            raise InputError(
                f"{error}",
                where=self.url,
                fix="Write neo4j://HOST:7687 or bolt://HOST:7687 (+s or +ssc for TLS).",
            ) from None

    def _greet(self) -> None:
        """Ask once whether the server answers: a wrong address is told at once, while a server that goes away later
        is waited for."""
        try:
            self._open_driver().verify_connectivity()
        except (Neo4jError, DriverError) as error:
            raise self._translated(error) from error

    def _translated(self, error: Neo4jError | DriverError) -> RegraphError:
        code = getattr(error, "code", "") or ""
        where = f"{self.url}, database `{self._settings.neo4j_database}`"
        if isinstance(error, AuthError) or code.startswith("Neo.ClientError.Security"):
            return StoreUnreachable(
                f"the server refuses the credentials of user `{self._settings.neo4j_user}`.",
                where=self.url,
                fix="Set REGRAPH_NEO4J_PASSWORD (and neo4j_user) to the server's.",
            )
        if isinstance(error, ServiceUnavailable | SessionExpired):
            return StoreUnreachable(
                f"the server does not answer ({_first_line(error)}).",
                where=self.url,
                fix="Start it, or name another store with --store.",
            )
        if code.startswith("Neo.ClientError.Database"):
            return StoreUnusable(
                f"{_first_line(error)}",
                where=where,
                fix="Name another database with the setting `neo4j_database`.",
            )
        if isinstance(error, Neo4jError) and (
            error.is_retryable() or code.startswith(("Neo.TransientError", "Neo.DatabaseError"))
        ):
            return StoreUnusable(
                f"the server could not do it ({code}: {_first_line(error)}).",
                where=where,
                fix="See the server's log; what was acknowledged before is kept.",
            )
        return InternalFault(f"Neo4j: {code} {_first_line(error)}", where=where)

    def __del__(self) -> None:
        # The pool is closed at exit even where nobody closed the store.
        with suppress(Exception):
            self.close()


def _run(transaction: ManagedTransaction, text: str) -> None:
    transaction.run(text).consume()


def _first_line(error: Exception) -> str:
    return (getattr(error, "message", None) or str(error)).splitlines()[0] if str(error) else type(error).__name__


def _without_credentials(url: str) -> str:
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise InputError(
            "a store's URL holds no credentials.",
            where=f"{parts.scheme}://{parts.hostname}",
            fix="Set neo4j_user, and REGRAPH_NEO4J_PASSWORD.",
        )
    if not parts.hostname:
        raise InputError("the URL names no host.", where=url, fix="Write neo4j://HOST:7687 or bolt://HOST:7687.")
    return url
