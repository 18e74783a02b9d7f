"""The shipped table of CUDA optimisation techniques (``techniques.toml``)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from regraph_db.errors import InternalFault
from regraph_db.names import normalise
from regraph_db.records import ROOT, Technique


@dataclass(frozen=True)
class Shipped:
    """A technique of the table. Name and synonyms are in normal form."""

    name: str
    description: str
    synonyms: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The name, then its synonyms."""
        return (self.name, *self.synonyms)

    @property
    def technique(self) -> Technique:
        """As a record for the graph."""
        return Technique(name=self.name, description=self.description, shipped=True)


@cache
def shipped() -> tuple[Shipped, ...]:
    """Every technique of the table, in its order.

    Raises :class:`InternalFault` for a name that is not in normal form, or that stands for two techniques.
    """
    table = tomllib.loads(files("ingest").joinpath("techniques.toml").read_text(encoding="utf-8"))
    found: list[Shipped] = []
    owner: dict[str, str] = {ROOT: ROOT}
    for row in table["technique"]:
        name = row["name"]
        if normalise(name) != name:
            raise InternalFault(
                f"`{name}` is not in normal form.", where="techniques.toml", fix=f"Write `{normalise(name)}`."
            )
        synonyms = tuple(dict.fromkeys(s for raw in row["synonyms"] if (s := normalise(raw)) != name))
        for each in (name, *synonyms):
            if each in owner:
                raise InternalFault(f"`{each}` stands for `{owner[each]}` and for `{name}`.", where="techniques.toml")
            owner[each] = name
        found.append(Shipped(name, row["description"], synonyms))
    return tuple(found)


@cache
def synonyms() -> dict[str, str]:
    """Normalised name or synonym → the technique's name."""
    return {each: entry.name for entry in shipped() for each in entry.names}
