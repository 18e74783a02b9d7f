"""Normal forms of names, the shipped table, and what similarity alone accepts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.relabel import Relabeller
from ingest.relabel.embedding import Embedding, stems
from ingest.relabel.quality import PRECISION, RECALL, evaluate, pairs, relabelled
from ingest.settings import IngestSettings
from ingest.techniques import shipped, synonyms
from regraph_db.names import normalise


@given(st.text(min_size=1))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text) != ""


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Bank-Conflicts", "bank conflict"),
        ("Warp  Shuffles", "warp shuffle"),
        ("memory_accesses", "memory access"),
        ("boundaries", "boundary"),
        ("GPUs", "gpu"),
        ("bias", "bias"),
        ("loss", "loss"),
        ("radix", "radix"),
        ("vectorisation techniques", "vectorization"),
        ("Shared memory optimization technique", "shared memory"),
        ("caches", "cache"),
        ("batches", "batch"),
        ("prefix axes", "prefix axis"),
        ("optimization", "optimization"),
    ],
)
def test_normal_forms(text: str, normal: str) -> None:
    assert normalise(text) == normal


def test_the_table_is_whole() -> None:
    assert len(shipped()) >= 60
    assert all(entry.description.endswith(".") and len(entry.description) < 160 for entry in shipped())
    assert all(normalise(name) == name for name in synonyms())
    assert synonyms()["double buffering"] == "software pipelining"


def test_the_labelled_pairs_are_enough_and_none_stands_in_the_table() -> None:
    assert len(pairs()) >= 250
    held = sum(pair.held_back for pair in pairs())
    assert 0.4 < held / len(pairs()) < 0.6
    names = {entry.name for entry in shipped()} | {""}
    assert all(pair.technique in names for pair in pairs())
    assert [pair.name for pair in pairs() if pair.same and normalise(pair.name) in synonyms()] == []
    assert len({(normalise(pair.name), pair.technique) for pair in pairs()}) == len(pairs())


def test_the_held_back_half_reaches_precision_and_recall() -> None:
    held = evaluate(IngestSettings())["held_back"]
    assert held.precision >= PRECISION
    assert held.recall >= RECALL


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loop tiling", "loop unrolling"),
        ("loop tiling by 32", "loop unrolling by 32"),
        ("warp shuffle", "warp divergence"),
        ("warp shuffles", "divergence within warps"),
        ("shared memory tiling", "register tiling"),
        ("radix sort", "radix select"),
        ("kernel fusion", "loop fusion"),
    ],
)
def test_what_an_engineer_keeps_apart_stays_apart(one: str, other: str) -> None:
    found = relabelled([one, other], IngestSettings())
    assert found.get(one, one) != found.get(other, other)


@given(st.text(max_size=300))
def test_no_name_breaks_the_embedding(text: str) -> None:
    embedding = Embedding([(name, name) for name in ("warp shuffle", "loop tiling")])
    (vector,) = embedding.vectors([text])
    assert 0.0 <= float((vector * vector).sum()) <= 1.0001


def test_a_name_of_empty_words_is_new() -> None:
    (alias,) = Relabeller(IngestSettings()).decide(["use of the kernel"])
    assert stems("use of the kernel") == []
    assert (alias.author, alias.technique) == ("new", "use of the kernel")


def test_each_way_of_deciding_leaves_its_mark() -> None:
    decide = Relabeller(IngestSettings()).decide
    table, similar, new = decide(["Double-Buffering", "unrolling the inner k loop by 8", "Strassen recursion"])
    assert (table.author, table.technique, table.score) == ("table", "software pipelining", 1.0)
    assert (similar.author, similar.technique) == ("similar", "loop unrolling") and similar.score is not None
    assert (new.author, new.technique, new.review) == ("new", "strassen recursion", False)
    assert decide(["Double buffering", "strassen recursion"]) == []  # each once
    assert decide(["loop unrolling"]) == []  # a technique's own name needs no decision


def test_a_doubtful_name_waits_for_a_person() -> None:
    settings = IngestSettings(accept=1.0, doubt=0.0)
    (alias,) = Relabeller(settings).decide(["unrolling the inner k loop by 8"])
    assert alias.review and alias.author == "new" and alias.technique == alias.alias


class _Model:
    """A model that always gives one answer, and remembers what it was offered."""

    name = "stub"

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.offered: list[list[str]] = []

    def choose(self, phrase: str, candidates: list[str]) -> str | None:
        self.offered.append(list(candidates))
        return self.answer


@pytest.mark.parametrize(
    ("answer", "technique", "author", "review"),
    [
        ("loop unrolling", "loop unrolling", "model:stub", False),
        ("", "unrolling of k", "model:stub", False),
        (None, "unrolling of k", "new", True),
        ("not offered", "unrolling of k", "new", True),
    ],
)
def test_a_model_is_asked_only_in_between_with_at_most_ten(
    answer: str | None, technique: str, author: str, review: bool
) -> None:
    settings = IngestSettings(relabel="model", accept=1.0, margin=1.0, doubt=0.1)
    model = _Model(answer)
    many = [f"technique number {i} of unrolling" for i in range(500)]
    decided = Relabeller(settings, techniques=many, chooser=model).decide(["double buffering", "unrolling of k"])
    assert [len(offered) for offered in model.offered] == [10]
    assert (decided[1].technique, decided[1].author, decided[1].review) == (technique, author, review)
