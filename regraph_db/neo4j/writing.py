"""The knowledge half's writes: every one holds the lock of the ``Regraph`` node, so that aliases and trajectories
agree."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from neo4j import ManagedTransaction

from regraph_db.bounds import check_alias, check_technique, check_trajectory
from regraph_db.derive import Delta, Outline, RolledUp, StepFacts, Trust, moved, resolver, trust
from regraph_db.neo4j.base import Neo4jBase, rows
from regraph_db.records import ROOT, Alias, MergeReport, Technique, Trajectory, Verdict
from regraph_db.vectors import vector


class Neo4jKnowledgeWriting(Neo4jBase):
    """Writes of the knowledge half."""

    def put_techniques(self, techniques: Sequence[Technique]) -> None:
        for technique in techniques:
            check_technique(technique)

        def work(transaction: ManagedTransaction) -> None:
            rows(transaction, "ingest/lock")
            rows(transaction, "ingest/put_techniques", rows=[t.model_dump() for t in techniques])

        self._write(work)

    def put_aliases(self, aliases: Sequence[Alias], *, replace: bool = False) -> None:
        for alias in aliases:
            check_alias(alias)

        def work(transaction: ManagedTransaction) -> None:
            rows(transaction, "ingest/lock")
            _put_aliases(transaction, aliases, replace=replace)

        self._write(work)

    def revoke_alias(self, alias: str) -> Alias | None:
        def work(transaction: ManagedTransaction) -> str | None:
            rows(transaction, "ingest/lock")
            stored = rows(transaction, "ingest/aliases")
            old = {row["alias"]: row["technique"] for row in stored}
            if alias not in old:
                return None
            rows(transaction, "ingest/delete_alias", alias=alias)
            _follow(transaction, old, {name: target for name, target in old.items() if name != alias})
            return next(str(row["record"]) for row in stored if row["alias"] == alias)

        record = self._write(work)
        return None if record is None else Alias.model_validate_json(record)

    def merge_trajectories(self, trajectories: Sequence[Trajectory], aliases: Sequence[Alias] = ()) -> MergeReport:
        """See the contract. Where the connection is lost while the server commits, the driver runs the merge again, and
        the report counts as duplicates what the lost answer had merged."""
        for alias in aliases:
            check_alias(alias)
        prepared: dict[str, _Prepared] = {}
        for trajectory in trajectories:
            check_trajectory(trajectory)
            same = prepared.get(trajectory.id)
            if same is None or _trust(trajectory) > _trust(same.trajectory):
                prepared[trajectory.id] = _Prepared.of(trajectory)
        if not trajectories and not aliases:
            return MergeReport()
        report = self._write(_merge, prepared, aliases)
        return report.model_copy(update={"duplicates": len(trajectories) - report.merged - report.verified})


class _Prepared(NamedTuple):
    """A trajectory with everything that needs no lock."""

    trajectory: Trajectory
    outline: Outline
    vectors: list[bytes]  #: of the code before each step

    @classmethod
    def of(cls, trajectory: Trajectory) -> _Prepared:
        codes = [trajectory.source, *(step.code for step in trajectory.steps[:-1])]
        return cls(trajectory, Outline.of(trajectory), [vector(code).tobytes() for code in codes])


def _merge(transaction: ManagedTransaction, prepared: dict[str, _Prepared], aliases: Sequence[Alias]) -> MergeReport:
    rows(transaction, "ingest/lock")
    known = known_trajectories(transaction, list(prepared))
    fresh = {
        identity: one
        for identity, one in prepared.items()
        if identity not in known or _trust(one.trajectory) > known[identity]
    }
    old = _remove(transaction, [identity for identity in fresh if identity in known])
    phrases = {step.phrase for outline in [*old, *(one.outline for one in fresh.values())] for step in outline.steps}
    names = _resolved(transaction, phrases, aliases)
    standing = set(
        rows(transaction, "ingest/known", techniques=[*set(names.values())], transitions=[])[0]["techniques"]
    )
    _put_aliases(transaction, aliases, replace=False)
    if not fresh:
        return MergeReport()
    delta = Delta()
    for outline in old:
        delta.add(outline, names.__getitem__, -1)
    for one in fresh.values():
        delta.add(one.outline, names.__getitem__)
    pairs = [list(pair) for pair in delta.transitions()]
    known_pairs = rows(transaction, "ingest/known", techniques=[], transitions=pairs)[0]["transitions"]
    add_to_techniques(transaction, delta)
    rows(
        transaction,
        "ingest/merge_trajectories",
        rows=[_properties(identity, one, names) for identity, one in fresh.items()],
    )
    add_sums(transaction, delta)
    if old:
        sweep(transaction, delta.names())
    new_techniques = delta.techniques.keys() - standing
    return MergeReport(
        merged=len(fresh) - len(old),
        verified=len(old),
        steps=sum(len(one.outline.steps) for identity, one in fresh.items() if identity not in known),
        new_techniques=tuple(sorted(new_techniques)),
        known_techniques=len(delta.techniques) - len(new_techniques),
        new_transitions=len(pairs) - len(known_pairs),
        known_transitions=len(known_pairs),
    )


def _trust(trajectory: Trajectory) -> Trust:
    return trust(step.verdict for step in trajectory.steps)


def known_trajectories(transaction: ManagedTransaction, ids: Sequence[str]) -> dict[str, Trust]:
    """Those of these ids that stand, each with how far it was verified."""
    return {
        row["id"]: trust(text and Verdict.model_validate_json(text) for text in row["verdicts"])
        for row in rows(transaction, "ingest/known_trajectories", ids=list(ids))
    }


def _remove(transaction: ManagedTransaction, ids: Sequence[str]) -> list[Outline]:
    """Take trajectories away and return what the graph's shape took from them."""
    if not ids:
        return []
    found = rows(transaction, "ingest/remove_trajectories", ids=list(ids))
    return [Outline(row["task"], tuple(StepFacts(*step) for step in row["steps"])) for row in found]


def _resolved(transaction: ManagedTransaction, phrases: Collection[str], aliases: Sequence[Alias]) -> dict[str, str]:
    """The technique of each phrase, once ``aliases`` are written too."""
    if aliases:
        table = alias_table(transaction)
        for alias in aliases:
            table.setdefault(alias.alias, alias.technique)
        to_technique = resolver(table)
        return {phrase: to_technique(phrase) for phrase in phrases}
    named = {row["phrase"]: row["technique"] for row in rows(transaction, "ingest/resolve", phrases=list(phrases))}
    return {phrase: named.get(phrase, phrase) for phrase in phrases}


def _properties(identity: str, prepared: _Prepared, names: dict[str, str]) -> dict[str, Any]:
    """A trajectory and its steps as the properties of their nodes."""
    t, outline = prepared.trajectory, prepared.outline
    steps = []
    walk = outline.walk(names.__getitem__)
    for position, (step, facts, (before, after)) in enumerate(zip(t.steps, outline.steps, walk, strict=True)):
        verdict = None if step.verdict is None else step.verdict.model_dump_json(exclude_defaults=True)
        steps.append(
            {
                "id": f"{identity}:{position}",
                "name": step.method,
                "position": position,
                "phrase": facts.phrase,
                "before": before,
                "technique": after,
                "example": facts.example,
                "gain": facts.gain,
                "task": t.task,
                "function": t.function,
                "think": step.think,
                "method": step.method,
                "detail": step.detail,
                "code": step.code,
                "verdict": verdict,
                "vector": prepared.vectors[position],
            }
        )
    head = {"id": identity, "name": t.task or t.function or identity, "length": len(steps)}
    return {
        "properties": head | t.model_dump(include={"task", "author", "function", "source", "search"}),
        "steps": steps,
    }


def _put_aliases(transaction: ManagedTransaction, aliases: Sequence[Alias], *, replace: bool) -> None:
    if not aliases:
        return
    old = alias_table(transaction)
    new = dict(old)
    chosen: dict[str, Alias] = {}
    for alias in aliases:
        if replace or alias.alias not in new:
            new[alias.alias] = alias.technique
            chosen[alias.alias] = alias
    if not chosen:
        return
    rows(
        transaction,
        "ingest/put_aliases",
        rows=[
            {
                "alias": a.alias,
                "technique": a.technique,
                "review": a.review,
                "author": a.author,
                "record": a.model_dump_json(),
            }
            for a in chosen.values()
        ],
    )
    _follow(transaction, old, new)


def _follow(transaction: ManagedTransaction, old: dict[str, str], new: dict[str, str]) -> None:
    """Move every step, share and technique from one alias table to another. Raises :class:`InputError` on a loop."""
    phrases = sorted(moved(old, new))
    before, after = resolver(old), resolver(new)
    delta = Delta()
    if phrases:
        for row in rows(transaction, "ingest/outlines", phrases=phrases):
            outline = Outline(row["task"], tuple(StepFacts(*step) for step in row["steps"]))
            delta.add(outline, before, -1)
            delta.add(outline, after)
        for row in rows(transaction, "ingest/rolled_up_of_names", names=phrases):
            returns = RolledUp.model_validate(row)
            delta.add_returns(returns, before, -1)
            delta.add_returns(returns, after)
    changed = {alias for alias in old.keys() | new.keys() if old.get(alias) != new.get(alias)} | set(phrases)
    also = {to(alias) for alias in changed for to in (before, after)}
    add_to_techniques(transaction, delta, also=also)
    rows(
        transaction,
        "ingest/move_steps",
        rows=[{"phrase": phrase, "technique": after(phrase)} for phrase in phrases],
    )
    named = [{"alias": alias, "technique": after(alias)} for alias in changed if alias in new]
    rows(transaction, "ingest/name_aliases", rows=named)
    add_sums(transaction, delta)
    sweep(transaction, delta.names() | also)


def add_to_techniques(transaction: ManagedTransaction, delta: Delta, *, also: Collection[str] = ()) -> None:
    """Add a delta's counts to the techniques, and make those that do not stand yet."""
    counted = []
    for name in (delta.names() | set(also)) - {ROOT}:
        examples, trajectories = delta.techniques.get(name, (0, 0))
        counted.append({"name": name, "examples": examples, "trajectories": trajectories})
    rows(transaction, "ingest/add_to_techniques", rows=counted)


def add_sums(transaction: ManagedTransaction, delta: Delta) -> None:
    """Add a delta's sums to transitions and shares; the techniques at their ends stand already."""
    transitions = [{"before": b, "after": a, **sums._asdict()} for (b, a), sums in delta.transitions().items()]
    shares = [{"before": b, "after": a, "task": task, **sums._asdict()} for (b, a, task), sums in delta.shares.items()]
    rows(transaction, "ingest/add_to_transitions", rows=transitions)
    rows(transaction, "ingest/add_to_shares", rows=shares)


def sweep(transaction: ManagedTransaction, names: Collection[str]) -> None:
    """Remove those of these techniques that nothing names any more."""
    rows(transaction, "ingest/sweep_techniques", names=sorted(set(names) - {ROOT}))


def alias_table(transaction: ManagedTransaction) -> dict[str, str]:
    """Every alias with what it names."""
    return {row["alias"]: row["technique"] for row in rows(transaction, "ingest/aliases")}
