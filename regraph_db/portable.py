"""A graph as portable JSON objects, and back: the half of :meth:`dump` and :meth:`load` that every store shares.

Kinds, in the order of a dump: ``regraph`` (the format's number), ``technique`` (those put by name), ``alias``,
``trajectory``, ``rolled_up`` (one search's returns along one transition, names as the search had them), ``search``
(with its states, edges, runners and rollouts), ``attempt``. Everything else is derived from these.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, Literal

from pydantic import Field, ValidationError

from regraph_db.derive import RolledUp
from regraph_db.errors import InputError
from regraph_db.records import (
    Alias,
    Attempt,
    Count,
    ExploredEdge,
    Record,
    Runner,
    Search,
    State,
    Technique,
    Trajectory,
)
from regraph_db.store import GraphStore

#: The number of this format; a reader refuses a larger one.
FORMAT = 1

#: Objects written in one transaction.
BATCH = 200


class StoredRollout(Record):
    """A rollout and what became of it."""

    id: str
    runner: str
    path: tuple[tuple[str, str], ...]  #: the distinct edges that it holds in flight while it is begun
    calls: Count  #: calls that it was granted
    status: Literal["begun", "finished", "reclaimed"]


class StoredSearch(Record):
    """A search with everything of it but its attempts."""

    search: Search
    root: str
    states: tuple[State, ...]
    edges: tuple[ExploredEdge, ...]
    runners: tuple[Runner, ...] = ()
    rollouts: tuple[StoredRollout, ...] = Field(default=())

    @property
    def progress(self) -> tuple[int, int]:
        """Larger when more was done: calls spent, rollouts known."""
        return self.search.calls, len(self.rollouts)


_RECORDS: dict[str, type[Record]] = {
    "technique": Technique,
    "alias": Alias,
    "trajectory": Trajectory,
    "rolled_up": RolledUp,
    "search": StoredSearch,
    "attempt": Attempt,
}


class PortableStore(GraphStore):
    """``dump`` and ``load`` over what each store reads and writes itself."""

    def dump(self) -> Iterator[dict[str, Any]]:
        yield {"kind": "regraph", "format": FORMAT}
        for technique in self._given_techniques():
            yield _object("technique", technique)
        for alias in self.aliases():
            yield _object("alias", alias)
        for trajectory in self.trajectories():
            yield _object("trajectory", trajectory)
        for rolled_up in self._rolled_up():
            yield _object("rolled_up", rolled_up)
        for search in sorted(self.searches(), key=lambda s: s.id):
            yield _object("search", self._stored_search(search.id))
            for attempt in self.attempts(search.id):
                yield _object("attempt", attempt)

    def load(self, objects: Iterable[dict[str, Any]]) -> int:
        count = 0
        for kind, group in groupby(_parsed(objects), key=lambda pair: pair[0]):
            records = (record for _, record in group)
            while batch := list(islice(records, BATCH)):
                self._load_batch(kind, batch)
                count += len(batch)
        return count

    def _load_batch(self, kind: str, batch: Sequence[Any]) -> None:
        if kind == "technique":
            self.put_techniques(batch)
        elif kind == "alias":
            self.put_aliases(batch)
        elif kind == "trajectory":
            self.merge_trajectories(batch)
        elif kind == "rolled_up":
            self._load_rolled_up(batch)
        elif kind == "search":
            for stored in batch:
                self._load_search(stored)
        elif kind == "attempt":
            self._load_attempts(batch)

    @abstractmethod
    def _given_techniques(self) -> list[Technique]:
        """The techniques that were put by name."""

    @abstractmethod
    def _rolled_up(self) -> list[RolledUp]:
        """Every search's returns, by search and names."""

    @abstractmethod
    def _stored_search(self, search: str) -> StoredSearch: ...

    @abstractmethod
    def _load_rolled_up(self, records: Sequence[RolledUp]) -> None:
        """Set these searches' returns; shares and transitions follow."""

    @abstractmethod
    def _load_search(self, stored: StoredSearch) -> None:
        """Write a search as it stands, unless the one here has got at least as far (:attr:`StoredSearch.progress`)."""

    @abstractmethod
    def _load_attempts(self, attempts: Sequence[Attempt]) -> None:
        """Add the attempts that are not there."""


def _object(kind: str, record: Record) -> dict[str, Any]:
    return {"kind": kind, **record.model_dump(mode="json")}


def _parsed(objects: Iterable[dict[str, Any]]) -> Iterator[tuple[str, Record | None]]:
    for number, fields in enumerate(objects, 1):
        where = f"object {number}"
        if not isinstance(fields, dict) or not isinstance(fields.get("kind"), str):
            raise InputError(
                "is no object with a `kind`.", where=where, fix="Give a file that `regraph db export` wrote."
            )
        kind = fields["kind"]
        if kind == "regraph":
            if fields.get("format") != FORMAT:
                raise InputError(
                    f"format {fields.get('format')} is not this program's ({FORMAT}).",
                    where=where,
                    fix="Install the regraph that wrote it.",
                )
            yield kind, None
            continue
        if kind not in _RECORDS:
            raise InputError(f"unknown kind `{kind}`.", where=where, fix="Give a file that `regraph db export` wrote.")
        try:
            yield (
                kind,
                _RECORDS[kind].model_validate({key: value for key, value in fields.items() if key != "kind"}),
            )
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise InputError(f"{first['msg']}.", where=f"{where} ({kind}), {field}") from None
