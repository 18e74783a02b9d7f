"""Labelled pairs of a free name and a technique: sets to learn from, one to choose the threshold by, two held back."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from regraph_db.names import normalise


@dataclass(frozen=True)
class Pair:
    """A name and a technique ("" for any), and whether an engineer would call them the same."""

    name: str
    technique: str
    same: bool

    @property
    def phrase(self) -> str:
        """The name in normal form."""
        return normalise(self.name)


@cache
def tuning() -> tuple[tuple[Pair, ...], ...]:
    """The sets of ``pairs.toml``, in the order in which they were written."""
    return tuple(_pairs(table) for table in _table("pairs.toml")["set"])


@cache
def tuned() -> tuple[Pair, ...]:
    """The pairs of all tuning sets."""
    return tuple(pair for each in tuning() for pair in each)


@cache
def calibration() -> tuple[Pair, ...]:
    """The pairs of ``calibration.toml`` that are in no other set: the threshold is chosen on them."""
    return unseen(_pairs(_table("calibration.toml")), (*held_back(), *tuned()))


@cache
def learnt() -> tuple[Pair, ...]:
    """What the shipped index learns from: the tuning sets, and, the threshold being chosen, the calibration too."""
    return (*tuned(), *calibration())


@cache
def held_back() -> tuple[Pair, ...]:
    """The pairs of ``held_back.toml``."""
    return _pairs(_table("held_back.toml"))


def unseen(pairs: Iterable[Pair], seen: Iterable[Pair]) -> tuple[Pair, ...]:
    """Those of ``pairs`` whose name, in normal form, none of ``seen`` has."""
    phrases = {pair.phrase for pair in seen}
    return tuple(pair for pair in pairs if pair.phrase not in phrases)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files("ingest").joinpath(f"relabel/{name}").read_text(encoding="utf-8"))


def _pairs(table: Mapping[str, Sequence[tuple[str, str]]]) -> tuple[Pair, ...]:
    return tuple(
        Pair(name, technique, kind == "same") for kind in ("same", "different") for name, technique in table[kind]
    )
