"""The care half: what check and dump read, what repair and load write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from neo4j import ManagedTransaction

from regraph_db.bounds import refuse_nul
from regraph_db.care import CaredStore, StoredKnowledge, derive, expected_techniques, in_flight, reserved
from regraph_db.derive import RolledUp
from regraph_db.neo4j.base import Neo4jBase, Row, rows
from regraph_db.neo4j.reading import sums, technique
from regraph_db.neo4j.records import (
    edge,
    edge_properties,
    runner_properties,
    runner_record,
    search_properties,
    search_record,
    state,
    state_properties,
)
from regraph_db.neo4j.search import add_attempts, put_returns
from regraph_db.neo4j.writing import add_sums, add_to_techniques, sweep
from regraph_db.portable import StoredRollout, StoredSearch
from regraph_db.records import ROOT, Attempt, Problem, Technique
from regraph_db.rollouts import best_by_state, no_such


class Neo4jCare(Neo4jBase, CaredStore):
    """Hooks of :class:`CaredStore` and :class:`PortableStore`."""

    def check(self) -> list[Problem]:
        captions = (caption for search in self.searches() for caption in self._wrong_captions(search.id))
        return [*super().check(), *captions]

    def _wrong_captions(self, search: str) -> Iterator[Problem]:
        """What Browser shows and does not follow from the sums; only this store keeps captions."""
        for row in self._write(rows, "search/wrong_captions", search=search):
            for *place, there, due in row["states"] + row["edges"]:
                yield Problem(
                    invariant="caption",
                    where=f"search {search}, {' → '.join(place)}",
                    detail=f"is {there}, should be {due}",
                    repairable=True,
                )

    def _given_techniques(self) -> list[Technique]:
        found = self._write(rows, "ingest/techniques")
        return sorted((technique(row) for row in found if row["given"]), key=lambda t: t.name)

    def _rolled_up(self) -> list[RolledUp]:
        found = [RolledUp.model_validate(row) for row in self._read(rows, "ingest/rolled_up")]
        return sorted(found, key=lambda r: (r.search, r.before, r.after))

    def _load_rolled_up(self, records: Sequence[RolledUp]) -> None:
        for record in records:
            refuse_nul(record)

        def work(transaction: ManagedTransaction) -> None:
            rows(transaction, "ingest/lock")
            keys = [{"search": r.search, "before": r.before, "after": r.after} for r in records]
            found = [RolledUp.model_validate(row) for row in rows(transaction, "ingest/rolled_up_of_keys", rows=keys)]
            old = {(r.search, r.before, r.after): r for r in found}
            newer = [
                r
                for r in records
                if (r.search, r.before, r.after) not in old or old[r.search, r.before, r.after].count < r.count
            ]
            replaced = [old[key] for r in newer if (key := (r.search, r.before, r.after)) in old]
            put_returns(transaction, replaced, newer)

        self._write(work)

    def _stored_search(self, search: str) -> StoredSearch:
        return self._write(_stored_search, search)

    def _load_search(self, stored: StoredSearch) -> None:
        refuse_nul(stored)

        def work(transaction: ManagedTransaction) -> None:
            found = rows(transaction, "search/lock", search=stored.search.id)
            if found:
                if _stored_search(transaction, stored.search.id).progress >= stored.progress:
                    return
                rows(transaction, "search/unload_search", search=stored.search.id)
            s = stored.search
            counted = {"calls": s.calls, "reserved": s.reserved}
            rows(
                transaction,
                "search/load_search",
                id=s.id,
                properties=search_properties(s, stored.root) | counted,
                states=[state_properties(s.id, n) for n in stored.states],
                edges=[
                    {"source": e.source, "target": e.target, "properties": edge_properties(e)} for e in stored.edges
                ],
                runners=[
                    runner_properties(r) | {"heartbeat_at": round(r.heartbeat_at.timestamp() * 1_000_000)}
                    for r in stored.runners
                ],
                rollouts=[
                    {
                        "id": o.id,
                        "search": s.id,
                        "runner": o.runner,
                        "path": json.dumps(o.path, ensure_ascii=False),
                        "calls": o.calls,
                        "status": o.status,
                    }
                    for o in stored.rollouts
                ],
            )

        self._write(work)

    def _load_attempts(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            refuse_nul(attempt)

        def work(transaction: ManagedTransaction) -> None:
            for search, group in groupby(attempts, key=lambda a: a.search):
                if not rows(transaction, "search/lock", search=search):
                    raise no_such("search", search)
                add_attempts(transaction, search, list(group))

        self._write(work)

    def _stored_knowledge(self) -> StoredKnowledge:
        return self._write(_stored_knowledge)

    def _dead_runners(self) -> set[str]:
        return {row["id"] for row in self._read(rows, "search/dead_runners")}

    def _rewrite_knowledge(self) -> None:
        wrong: list[Row] = []
        knowledge = self._stored_knowledge()
        derived = derive(
            knowledge,
            self._stored_trajectories(),
            lambda trajectory, step: wrong.append(
                {
                    "id": f"{trajectory}:{step.position}",
                    "phrase": step.phrase,
                    "before": step.before,
                    "technique": step.technique,
                    "example": step.example,
                    "gain": step.gain,
                }
            ),
        )
        names = knowledge.techniques.keys() | expected_techniques(knowledge, derived).keys()

        def work(transaction: ManagedTransaction) -> None:
            rows(transaction, "ingest/lock")
            rows(transaction, "ingest/clear_derived")
            rows(transaction, "ingest/clear_shares")
            add_to_techniques(transaction, derived.total, also=names)
            rows(transaction, "ingest/place_steps", rows=wrong)
            named = [{"alias": alias, "technique": t} for alias, t in derived.resolved.items()]
            rows(transaction, "ingest/name_aliases", rows=named)
            add_sums(transaction, derived.total)
            sweep(transaction, names)

        self._write(work)

    def _rewrite_search(self, search: str) -> None:
        stored = self._stored_search(search)
        flying = in_flight(stored)
        best = best_by_state(self.attempts(search))

        def work(transaction: ManagedTransaction) -> None:
            rows(transaction, "search/lock", search=search)
            edges = [
                {"source": e.source, "target": e.target, "in_flight": flying[e.source, e.target]} for e in stored.edges
            ]
            rows(transaction, "search/rewrite_edges", search=search, rows=edges)
            pairs = [(n.id, *best.get(n.id, (None, None))) for n in stored.states]
            states = [{"id": n, "attempt": attempt, "speedup": speedup} for n, attempt, speedup in pairs]
            rows(transaction, "search/rewrite_states", search=search, rows=states)
            rows(transaction, "search/rewrite_reserved", search=search, reserved=reserved(stored))

        self._write(work)


def _stored_search(transaction: ManagedTransaction, search: str) -> StoredSearch:
    found = rows(transaction, "search/snapshot", search=search)
    if not found:
        raise no_such("search", search)
    row = found[0]
    rollouts = [
        StoredRollout.model_validate({**o, "path": json.loads(o["path"])})
        for o in rows(transaction, "search/rollouts", search=search)
    ]
    runners = map(runner_record, rows(transaction, "search/runners", search=search))
    return StoredSearch(
        search=search_record(row["search"]),
        root=row["search"]["root"],
        states=tuple(sorted(map(state, row["states"]), key=lambda s: s.id)),
        edges=tuple(sorted(map(edge, row["edges"]), key=lambda e: (e.source, e.target))),
        runners=tuple(sorted(runners, key=lambda r: r.id)),
        rollouts=tuple(sorted(rollouts, key=lambda o: o.id)),
    )


def _stored_knowledge(transaction: ManagedTransaction) -> StoredKnowledge:
    techniques = rows(transaction, "ingest/techniques")
    aliases = rows(transaction, "ingest/aliases")
    transitions = rows(transaction, "search/all_transitions", task=None)
    shares = rows(transaction, "ingest/shares")
    rolled_up = [RolledUp.model_validate(row) for row in rows(transaction, "ingest/rolled_up")]
    return StoredKnowledge(
        aliases={row["alias"]: (row["technique"], row["resolved"] or "") for row in aliases},
        techniques={t["name"]: (t["given"], t["examples"], t["trajectories"]) for t in techniques if t["name"] != ROOT},
        shares={(row["before"], row["after"], row["task"]): sums(row["sums"]) for row in shares},
        transitions={(row["before"], row["after"]): sums(row["total"]) for row in transitions},
        rolled_up=tuple(rolled_up),
    )
