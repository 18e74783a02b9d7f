"""The knowledge half's reads. Neo4j reads what is committed row by row, so a read of several nodes takes the write
lock that every merge holds: it sees a trajectory whole or not at all. Such statements say so with ``SET g.lock =
0``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from neo4j import ManagedTransaction

from regraph_db.care import StoredStep, StoredTrajectory
from regraph_db.derive import Sums, Trust, restored
from regraph_db.neo4j.base import Neo4jBase, Row, rows
from regraph_db.neo4j.writing import known_trajectories
from regraph_db.records import Alias, Counts, Example, Step, Technique, Trajectory, Transition, Verdict
from regraph_db.vectors import nearest

#: Trajectories read at once by a stream.
_PAGE = 64

#: Vectors of examples read at once.
_VECTORS = 2048


class Neo4jKnowledgeReading(Neo4jBase):
    """Reads of the knowledge half."""

    def techniques(self) -> list[tuple[Technique, int, int]]:
        found = self._write(rows, "ingest/techniques")
        listed = [
            (technique(row), int(row["examples"]), int(row["trajectories"])) for row in found if row["alias_of"] is None
        ]
        return sorted(listed, key=lambda entry: entry[0].name)

    def aliases(self, *, review: bool | None = None) -> list[Alias]:
        found = self._read(rows, "ingest/aliases")
        listed = [
            Alias.model_validate_json(row["record"]) for row in found if review is None or row["review"] == review
        ]
        return sorted(listed, key=lambda alias: alias.alias)

    def transitions(self, before: str | None = None, *, without_task: str | None = None) -> list[Transition]:
        if before is None:
            found = self._write(rows, "search/all_transitions", task=without_task)
        else:
            found = self._write(rows, "search/transitions", before=before, task=without_task)
        listed = []
        for row in found:
            left = sums(row["total"]).plus(sums(row["share"]), -1)
            if not left.empty:
                listed.append(Transition(before=row["before"], after=row["after"], statistics=left.statistics()))
        return sorted(listed, key=lambda transition: (transition.before, transition.after))

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
        given = {"before": before, "after": after, "task": without_task, "function": without_function}
        return self._read(_examples, "example", like, limit, given)

    def nearest_examples(
        self,
        like: str,
        *,
        limit: int = 1,
        without_task: str | None = None,
        without_function: str | None = None,
    ) -> list[Example]:
        return self._read(_examples, "all_example", like, limit, {"task": without_task, "function": without_function})

    def trajectories(self, *, task: str | None = None) -> Iterator[Trajectory]:
        for stored in self._stored_trajectories(task):
            if stored.trajectory is not None:
                yield stored.trajectory

    def _stored_trajectories(self, task: str | None = None) -> Iterator[StoredTrajectory]:
        last = ""
        while True:
            if task is None:
                page = self._write(rows, "ingest/trajectories", last=last, page=_PAGE)
            else:
                page = self._write(rows, "ingest/trajectories_of_task", task=task, last=last, page=_PAGE)
            yield from map(_stored_trajectory, page)
            if len(page) < _PAGE:
                return
            last = page[-1]["id"]

    def known_trajectories(self, ids: Sequence[str]) -> dict[str, Trust]:
        return self._read(known_trajectories, list(ids))

    def counts(self) -> Counts:
        return Counts.model_validate(self._write(rows, "ingest/counts")[0])


def _examples(transaction: ManagedTransaction, which: str, like: str, limit: int, given: Row) -> list[Example]:
    if limit <= 0:
        return []
    chosen: list[tuple[str, float | None]]
    if like:
        chosen = [*nearest(like, _vectors(transaction, f"search/{which}_vectors", given), limit)]
    else:
        chosen = [(row["id"], None) for row in rows(transaction, f"search/{which}_ids", limit=limit, given=given)]
    texts = {row["id"]: row for row in rows(transaction, "search/examples", ids=[key for key, _ in chosen])}
    return [_example(texts[key], similarity) for key, similarity in chosen if key in texts]


def _vectors(transaction: ManagedTransaction, name: str, given: Row) -> Iterator[tuple[str, bytes]]:
    """Ids and vectors, page by page: memory stays flat."""
    last = ""
    while True:
        (found,) = rows(transaction, name, page=_VECTORS, given={**given, "last": last})
        yield from zip(found["ids"], found["vectors"], strict=True)
        if len(found["ids"]) < _VECTORS:
            return
        last = found["ids"][-1]


def sums(properties: Row | None) -> Sums:
    """The sums among a transition's or share's properties."""
    return Sums() if properties is None else Sums(*(properties[name] for name in Sums._fields))


def technique(row: Row) -> Technique:
    """A row of ``ingest/techniques`` as a record."""
    return Technique(name=row["name"], description=row["description"], shipped=row["shipped"])


def _example(row: Row, similarity: float | None) -> Example:
    return Example(
        id=row["id"],
        task=row["task"],
        function=row["function"],
        transition=(row["source"], row["target"]),
        method=row["method"],
        think=row["think"],
        detail=row["detail"],
        before=row["before"],
        after=row["after"],
        verdict=_verdict(row["verdict"]),
        gain=row["gain"],
        similarity=similarity,
    )


def _stored_trajectory(row: Row) -> StoredTrajectory:
    steps = tuple(
        Step(
            think=step["think"],
            method=step["method"],
            detail=step["detail"],
            code=step["code"],
            verdict=_verdict(step["verdict"]),
        )
        for step in row["steps"]
    )
    places = tuple(
        StoredStep(s["position"], s["phrase"], s["before"], s["technique"] or "", s["example"], s["gain"])
        for s in row["steps"]
    )
    record = None
    if steps:
        record = Trajectory(
            task=row["task"],
            author=row["author"],
            function=row["function"],
            source=row["source"],
            steps=steps,
            search=row["search"],
        )
        record = restored(record, row["id"])
    return StoredTrajectory(row["id"], row["length"], record, places)


def _verdict(text: str | None) -> Verdict | None:
    return None if text is None else Verdict.model_validate_json(text)
