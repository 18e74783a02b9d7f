"""How good relabelling is without a model: precision and recall on labelled pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from ingest.relabel.decide import Relabeller
from ingest.relabel.fitting import left_out
from ingest.relabel.nearest import Nearest
from ingest.relabel.pairs import Pair, held_back, tuned, unseen
from ingest.settings import IngestSettings
from ingest.techniques import synonyms

#: What must be reached on the held-back pairs.
PRECISION, RECALL = 0.97, 0.85


@dataclass(frozen=True)
class Mistake:
    """A name that was relabelled onto a technique that it does not mean."""

    name: str
    taken_for: str
    means: str
    """The technique that it means; "" for another than ``taken_for``."""


@dataclass(frozen=True)
class Quality:
    """Counts over labelled pairs. A name relabelled onto a wrong technique counts as wrong and, if it has one, as
    missed."""

    pairs: int
    right: int
    missed: int
    mistakes: tuple[Mistake, ...]

    @property
    def wrong(self) -> int:
        return len(self.mistakes)

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def suffices(self) -> bool:
        """Whether precision and recall reach what is asked of them."""
        return self.precision >= PRECISION and self.recall >= RECALL

    def document(self) -> dict[str, object]:
        """Its JSON form."""
        counts = {"pairs": self.pairs, "right": self.right, "wrong": self.wrong, "missed": self.missed}
        shares = {"precision": round(self.precision, 4), "recall": round(self.recall, 4)}
        return {**counts, **shares, "mistakes": [asdict(each) for each in self.mistakes]}


def relabelled(names: Iterable[str], settings: IngestSettings, nearest: Nearest | None = None) -> dict[str, str]:
    """What each name is relabelled onto by table and similarity alone, by its normal form; names that stay new are left
    out."""
    relabeller = Relabeller(settings.model_copy(update={"relabel": "similar", "onto": "table"}), nearest=nearest)
    phrases = list(names)
    found = {phrase: synonyms()[phrase] for phrase in phrases if phrase in synonyms()}
    return found | {alias.alias: alias.technique for alias in relabeller.decide(phrases) if alias.author != "new"}


def evaluate(settings: IngestSettings) -> dict[str, Quality]:
    """The quality on the tuning sets, each decided without having learnt from it; and :func:`evaluate_held_back`."""
    judged = [(pair, technique) for test, nearest in left_out() for pair, technique in _judged(test, settings, nearest)]
    return {"tuning": _quality(judged), **evaluate_held_back(settings)}


def evaluate_held_back(settings: IngestSettings) -> dict[str, Quality]:
    """The quality on the held-back pairs, and on those of them whose names the table does not know. A held-back name
    that a tuning set has too is left out."""
    held = _judged(unseen(held_back(), tuned()), settings)
    return {
        "held_back": _quality(held),
        "held_back_not_in_table": _quality([each for each in held if each[0].phrase not in synonyms()]),
    }


def _judged(
    pairs: Sequence[Pair], settings: IngestSettings, nearest: Nearest | None = None
) -> list[tuple[Pair, str | None]]:
    found = relabelled([pair.phrase for pair in pairs], settings, nearest)
    return [(pair, found.get(pair.phrase)) for pair in pairs]


def _quality(judged: Sequence[tuple[Pair, str | None]]) -> Quality:
    right = missed = 0
    mistakes: list[Mistake] = []
    for pair, technique in judged:
        if pair.same:
            right += technique == pair.technique
            missed += technique != pair.technique
            wrong = technique is not None and technique != pair.technique
        else:
            wrong = technique is not None and pair.technique in ("", technique)
        if wrong and technique is not None:
            mistakes.append(Mistake(pair.name, technique, pair.technique if pair.same else ""))
    return Quality(len(judged), right, missed, tuple(mistakes))
