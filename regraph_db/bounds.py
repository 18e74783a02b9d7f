"""What a store refuses to hold, named by its field: NUL bytes, and names too long to be a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from regraph_db.errors import InputError
from regraph_db.names import normalise
from regraph_db.records import ROOT, Alias, Record, Technique, Trajectory

#: Characters of a key (a technique, alias, task or id): three of them at four bytes each fit one index entry of Neo4j.
KEY_LIMIT = 500


def refuse_nul(record: Record) -> None:
    """Raise :class:`InputError` naming the first field of ``record`` that holds a NUL byte."""
    if "\\u0000" not in record.model_dump_json():
        return
    for path, text in _texts(record, type(record).__name__.lower()):
        if "\x00" in text:
            raise InputError("holds a NUL byte, which no store keeps.", where=path, fix="Remove the byte.")


def refuse_long_key(field: str, key: str) -> None:
    """Raise :class:`InputError` when ``key`` has more than :data:`KEY_LIMIT` characters."""
    if len(key) > KEY_LIMIT:
        raise InputError(
            f"has {len(key):,} characters; a name or id has at most {KEY_LIMIT}.",
            where=f"{field} `{key[:40]}…`",
            fix="Give it a shorter name.",
        )


def check_trajectory(trajectory: Trajectory) -> None:
    """Raise :class:`InputError` when no store would hold ``trajectory``: a NUL byte, a key too long, a step named as
    the root."""
    refuse_nul(trajectory)
    refuse_long_key("trajectory.task", trajectory.task)
    refuse_long_key("trajectory.function", trajectory.function)
    for index, step in enumerate(trajectory.steps):
        phrase = normalise(step.method)
        refuse_long_key(f"trajectory.steps[{index}].method", phrase)
        if phrase == ROOT:
            raise InputError(
                f"a step's method is `{ROOT}`, the name of the graph's root.",
                where=f"trajectory.steps[{index}].method",
                fix="Name the optimisation that the step applies.",
            )


def check_technique(technique: Technique) -> None:
    """Raise :class:`InputError` when no store would hold ``technique``."""
    refuse_nul(technique)
    refuse_long_key("technique.name", technique.name)
    if technique.name == ROOT:
        raise InputError(f"`{ROOT}` is the graph's root and not a technique.", where="technique.name")


def check_alias(alias: Alias) -> None:
    """Raise :class:`InputError` when no store would hold ``alias``; loops are the store's to find."""
    refuse_nul(alias)
    refuse_long_key("alias.alias", alias.alias)
    refuse_long_key("alias.technique", alias.technique)
    if ROOT in (alias.alias, alias.technique):
        raise InputError(f"`{ROOT}` is the graph's root: it has no alias and is none.", where=f"alias `{alias.alias}`")


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _texts(getattr(value, name), f"{path}.{name}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key, f"{path} key")
            yield from _texts(item, f"{path}.{key}")
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]")
