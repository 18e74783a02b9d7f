"""How good relabelling is without a model: precision and recall on labelled pairs, half of them held back from
tuning."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ingest.relabel.decide import Relabeller
from ingest.settings import IngestSettings
from ingest.techniques import synonyms
from regraph_db.names import normalise

#: What the held-back half must reach.
PRECISION, RECALL = 0.97, 0.85


@dataclass(frozen=True)
class Pair:
    """A name and a technique ("" for any), and whether an engineer would call them the same."""

    name: str
    technique: str
    same: bool

    @property
    def held_back(self) -> bool:
        """Whether it is kept from tuning: a hash of the name decides."""
        return hashlib.sha256(normalise(self.name).encode()).digest()[0] % 2 == 1


@dataclass(frozen=True)
class Quality:
    """Counts over one half. A name that is relabelled onto a wrong technique counts as wrong and, if it has one, as
    missed."""

    pairs: int
    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    def document(self) -> dict[str, float]:
        """Its JSON form."""
        return {**vars(self), "precision": round(self.precision, 4), "recall": round(self.recall, 4)}


@cache
def pairs() -> tuple[Pair, ...]:
    """The labelled pairs of ``pairs.toml``."""
    table = tomllib.loads(files("ingest").joinpath("relabel/pairs.toml").read_text(encoding="utf-8"))
    return tuple(
        Pair(name, technique, kind == "same") for kind in ("same", "different") for name, technique in table[kind]
    )


def relabelled(names: list[str], settings: IngestSettings) -> dict[str, str]:
    """What each name is relabelled onto by table and similarity alone; names that stay new are left out."""
    relabeller = Relabeller(settings.model_copy(update={"relabel": "similar", "onto": "table"}))
    decided = {alias.alias: alias.technique for alias in relabeller.decide(names) if alias.author != "new"}
    result = {}
    for name in names:
        phrase = normalise(name)
        technique = decided.get(phrase, synonyms().get(phrase))
        if technique is not None:
            result[name] = technique
    return result


def evaluate(settings: IngestSettings) -> dict[str, Quality]:
    """The quality on each half, by ``tuning`` and ``held_back``."""
    found = relabelled([pair.name for pair in pairs()], settings)
    return {
        half: _quality([pair for pair in pairs() if pair.held_back == held], found)
        for half, held in (("tuning", False), ("held_back", True))
    }


def _quality(half: list[Pair], found: dict[str, str]) -> Quality:
    right = wrong = missed = 0
    for pair in half:
        technique = found.get(pair.name)
        if pair.same:
            right += technique == pair.technique
            missed += technique != pair.technique
            wrong += technique is not None and technique != pair.technique
        else:
            wrong += technique is not None and pair.technique in ("", technique)
    return Quality(len(half), right, wrong, missed)
