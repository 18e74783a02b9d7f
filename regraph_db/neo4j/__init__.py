"""The shared store: a Neo4j server, statements from ``cypher/`` alone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from neo4j import Transaction

from regraph_db.neo4j.care import Neo4jCare
from regraph_db.neo4j.reading import Neo4jKnowledgeReading
from regraph_db.neo4j.rehearsal import ask, play
from regraph_db.neo4j.search import Neo4jSearch
from regraph_db.neo4j.writing import Neo4jKnowledgeWriting

log = logging.getLogger(__name__)

T = TypeVar("T")


class Neo4jStore(Neo4jKnowledgeReading, Neo4jKnowledgeWriting, Neo4jSearch, Neo4jCare):
    """``neo4j://HOST`` or ``bolt://HOST``. A write is committed on the server when its method returns."""

    def expect_search(self) -> None:
        for part in (self._ask, self._play):
            threading.Thread(target=part, name="rehearsal", daemon=True).start()

    def _ask(self) -> None:
        with _only_a_rehearsal():
            ask(self)

    def _play(self) -> None:
        with (
            _only_a_rehearsal(),
            self._open_driver().session(database=self._settings.neo4j_database) as session,
            session.begin_transaction() as transaction,
        ):
            play(_Rehearsal(transaction))
            transaction.rollback()


@contextmanager
def _only_a_rehearsal() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a store that fails will say so when it is really asked
        log.debug("the rehearsal of a search ended: %s", error)


class _Rehearsal(Neo4jStore):
    """The store within one transaction, which whoever began it rolls back."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction: Any = transaction

    def _write(self, work: Callable[..., T], /, *arguments: Any, **parameters: Any) -> T:
        return work(self._transaction, *arguments, **parameters)

    _read = _write

    def close(self) -> None:
        """It holds nothing of its own."""


__all__ = ["Neo4jStore"]
