"""The decision which technique a name means: the table, then similarity, then a model for what lies in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ingest.relabel.nearest import Candidate, Nearest, table_index
from ingest.settings import IngestSettings
from ingest.techniques import synonyms
from regraph_db.names import normalise
from regraph_db.records import ROOT, Alias, now


class Chooser(Protocol):
    """A model that picks one of at most ten techniques."""

    name: str

    def choose(self, phrase: str, candidates: Sequence[str]) -> str | None:
        """The candidate that ``phrase`` means, ``""`` for none of them, ``None`` when the answer cannot be used."""


class Relabeller:
    """Decides names once each.

    Under ``exact`` and ``similar`` with the setting ``onto = table`` a decision depends on the name and the shipped
    table
    alone, so that the order of ingestion, its batches and its writers change nothing. A model is asked only about names
    between the two thresholds, with at most ten candidates, however large the graph is.
    """

    def __init__(
        self,
        settings: IngestSettings,
        *,
        decided: Iterable[str] = (),
        techniques: Iterable[str] = (),
        chooser: Chooser | None = None,
        nearest: Nearest | None = None,
    ) -> None:
        """``decided``: phrases that the graph has an alias for; ``techniques``: names that the graph holds;
        ``nearest``: an index to use instead of the one that the settings ask for."""
        self._settings = settings
        self._decided = set(decided)
        self._chooser = chooser if settings.relabel == "model" else None
        self._nearest = nearest
        if nearest is None and settings.relabel != "exact":
            widened = self._chooser is not None or settings.onto == "graph"
            further = [name for name in techniques if name not in synonyms() and name != ROOT] if widened else []
            self._nearest = Nearest(further) if further else table_index()

    def decide(self, methods: Iterable[str]) -> list[Alias]:
        """The aliases for those of ``methods`` that nobody decided yet, in their order. A technique's own name needs
        none."""
        phrases: list[str] = []
        for method in methods:
            phrase = normalise(method)
            if phrase not in self._decided:
                self._decided.add(phrase)
                if synonyms().get(phrase) != phrase:
                    phrases.append(phrase)
        similar = [phrase for phrase in phrases if phrase not in synonyms()]
        nearest = dict(zip(similar, self._candidates(similar), strict=True))
        return [self._decide(phrase, nearest.get(phrase, [])) for phrase in phrases]

    def _candidates(self, phrases: Sequence[str]) -> list[list[Candidate]]:
        if self._nearest is None:
            return [[] for _ in phrases]
        return self._nearest.nearest(phrases, self._settings.candidates if self._chooser is not None else 1)

    def _decide(self, phrase: str, candidates: Sequence[Candidate]) -> Alias:
        known = synonyms().get(phrase)
        if known is not None:
            return Alias(alias=phrase, technique=known, author="table", score=1.0, decided_at=now())
        if not candidates:
            return Alias(alias=phrase, technique=phrase, author="new", decided_at=now())
        best = candidates[0]
        if best.score >= self._settings.accept and self._may_accept(best.technique):
            return Alias(alias=phrase, technique=best.technique, author="similar", score=best.score, decided_at=now())
        if best.score < self._settings.doubt:
            return Alias(alias=phrase, technique=phrase, author="new", score=best.score, decided_at=now())
        return self._ask(phrase, candidates)

    def _may_accept(self, technique: str) -> bool:
        return self._settings.onto == "graph" or technique in synonyms()

    def _ask(self, phrase: str, candidates: Sequence[Candidate]) -> Alias:
        """Between the thresholds: the model's word, or new and to be reviewed."""
        doubtful = Alias(
            alias=phrase, technique=phrase, author="new", score=candidates[0].score, decided_at=now(), review=True
        )
        if self._chooser is None:
            return doubtful
        offered = {each.technique: each.score for each in candidates[: self._settings.candidates]}
        chosen = self._chooser.choose(phrase, list(offered))
        if chosen is None or (chosen and chosen not in offered):
            return doubtful
        score = offered[chosen] if chosen else candidates[0].score
        return Alias(
            alias=phrase,
            technique=chosen or phrase,
            author=f"model:{self._chooser.name}",
            score=score,
            decided_at=now(),
        )
