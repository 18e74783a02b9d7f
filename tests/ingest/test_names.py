"""Normal forms of names, the shipped table, and what similarity alone accepts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.relabel import Relabeller
from ingest.relabel.embedding import Embedding, features, stems
from ingest.relabel.fitting import fit, threshold
from ingest.relabel.known import Known, shipped_coefficients
from ingest.relabel.meaning import meanings
from ingest.relabel.nearest import Nearest, confidence_weights, table_index
from ingest.relabel.pairs import calibration, held_back, learnt, tuning, unseen
from ingest.relabel.quality import Quality, evaluate, evaluate_held_back, relabelled
from ingest.settings import IngestSettings
from ingest.techniques import shipped, synonyms
from regraph_db.errors import InternalFault
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


def test_the_labelled_pairs_are_enough_and_none_is_in_doubt() -> None:
    measured = unseen(held_back(), learnt())
    assert len(measured) >= 250
    assert sum(not pair.same for pair in measured) >= 90
    assert not {pair.phrase for pair in measured} & {pair.phrase for pair in learnt()}
    for pairs in (*tuning(), calibration(), held_back()):
        assert {pair.technique for pair in pairs} <= {entry.name for entry in shipped()} | {""}
        assert len({(pair.phrase, pair.technique) for pair in pairs}) == len(pairs)


@pytest.fixture(scope="module")
def measured() -> dict[str, Quality]:
    return evaluate_held_back(IngestSettings())


def test_the_quality_does_not_fall_behind_what_was_measured(measured: dict[str, Quality]) -> None:
    # The recall aimed at, 0.85, is not reached on the held-back pairs (docs/techniques.md); this holds what is.
    assert measured["held_back"].precision >= 0.97, measured["held_back"].mistakes
    assert measured["held_back"].recall >= 0.85
    assert measured["held_back_not_in_table"].pairs < measured["held_back"].pairs


def _is_told(name: str, each: Quality) -> None:
    page = (Path(__file__).parents[2] / "docs" / "techniques.md").read_text(encoding="utf-8")
    row = f"| {each.pairs} | {each.right} | {each.wrong} | {each.missed} | {each.precision:.3f} | {each.recall:.3f} |"
    assert row in page, f"{name}: {row}"


def test_the_page_tells_the_measured_quality(measured: dict[str, Quality]) -> None:
    for name, each in measured.items():
        _is_told(name, each)


@pytest.mark.slow
def test_each_tuning_set_is_predicted_by_the_others() -> None:
    found = evaluate(IngestSettings())["tuning"]
    # Each set is in another manner than those learnt from, and half of them are harder than what is held back.
    assert found.precision >= 0.96, found.mistakes
    _is_told("tuning", found)
    weights, constant = confidence_weights()
    assert [*weights, constant] == pytest.approx(list(fit().values()), abs=2e-2)


@pytest.mark.slow
def test_the_threshold_is_what_the_calibration_implies() -> None:
    others = {pair.phrase for each in (*tuning(), held_back()) for pair in each}
    assert others.isdisjoint(pair.phrase for pair in calibration())
    assert len(calibration()) >= 350
    assert IngestSettings().accept == threshold()


@pytest.mark.slow
def test_the_coefficients_are_what_fitting_gives() -> None:
    anew = Nearest(pairs=learnt())
    names = ["unrolling the inner k loop by 8", "swap data between lanes", "strassen recursion"]
    for (ours,), (fresh,) in zip(table_index().evidence(names, 1), anew.evidence(names, 1), strict=True):
        assert ours.technique == fresh.technique
        assert ours.numbers() == pytest.approx(fresh.numbers(), abs=5e-3)


def test_coefficients_of_other_names_are_refused() -> None:
    known = Known(Embedding([("warp shuffle", "warp shuffle")]), ["warp shuffle"])
    with pytest.raises(InternalFault, match="fitting"):
        shipped_coefficients(known, 1)


def test_known_names_are_told_apart_by_their_words() -> None:
    phrases = ["warp shuffle", "loop tiling", "shuffle within a warp"]
    known = Known(Embedding([(phrase, phrase) for phrase in phrases]), phrases)
    cosines = known.words(features("warp shuffle"))
    assert cosines[0] == pytest.approx(1.0, abs=1e-5)
    assert cosines[2] > 0.5 > cosines[1]
    coefficients = known.coefficients([0, 1, -1], 2)
    (said,) = known.kernels(["warp shuffle"], cosines[None], 3) @ coefficients
    assert said[0] > 0.5 > max(abs(said[1]), abs(said[2]))


def test_a_name_is_decided_alike_in_any_company() -> None:
    names = [*sorted(synonyms())[:150], "unrolling the inner k loop by 8"]
    alone = table_index().nearest(names[-1:], 3)
    assert table_index().nearest(names, 3)[-1:] == alone
    assert table_index().nearest(names[::-1], 3)[:1] == alone


def test_meaning_reaches_beyond_the_words() -> None:
    exchange, swap, texture, nothing = meanings(["exchange", "swap", "texture", "?"])
    assert exchange @ swap > 0.4 > exchange @ texture
    assert not nothing.any()


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
    phrases = (normalise(one), normalise(other))
    found = relabelled(phrases, IngestSettings())
    first, second = (found.get(phrase, phrase) for phrase in phrases)
    assert first != second


@given(st.text(max_size=300))
def test_no_name_breaks_the_embedding(text: str) -> None:
    embedding = Embedding([(name, name) for name in ("warp shuffle", "loop tiling")])
    columns, values = embedding.sparse(features(text))
    assert len(columns) == len(values) == len(set(columns))
    assert 0.0 <= float((values * values).sum()) <= 1.0001
    (meaning,) = meanings([text])
    assert float((meaning * meaning).sum()) == pytest.approx(1.0, abs=1e-4) or not meaning.any()


def test_a_name_of_empty_words_is_new() -> None:
    (alias,) = Relabeller(IngestSettings()).decide(["use of the kernel"])
    assert stems("use of the kernel") == []
    assert (alias.author, alias.technique) == ("new", "use of the kernel")


def test_each_way_of_deciding_leaves_its_mark() -> None:
    decide = Relabeller(IngestSettings()).decide
    table, similar, new = decide(["Double-Buffering", "unrolling the inner k loop by 8", "Strassen multiplication"])
    assert (table.author, table.technique, table.score) == ("table", "software pipelining", 1.0)
    assert (similar.author, similar.technique) == ("similar", "loop unrolling") and similar.score is not None
    assert (new.author, new.technique, new.review) == ("new", "strassen multiplication", False)
    assert decide(["Double buffering", "strassen multiplication"]) == []  # each once
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
    settings = IngestSettings(relabel="model", accept=1.0, doubt=0.0)
    model = _Model(answer)
    many = [f"technique number {i} of unrolling" for i in range(500)]
    decided = Relabeller(settings, techniques=many, chooser=model).decide(["double buffering", "unrolling of k"])
    assert [len(offered) for offered in model.offered] == [10]
    assert (decided[1].technique, decided[1].author, decided[1].review) == (technique, author, review)


def test_a_technique_beside_the_table_is_found_by_its_name() -> None:
    nearest = Nearest(["strassen recursion", "morton ordering"])
    ((best, *_),) = nearest.nearest(["recursion after strassen"], 3)
    assert best.technique == "strassen recursion"
    assert 0.0 <= best.score <= 1.0


def test_candidates_are_ordered_and_as_many_as_asked_for() -> None:
    (found,) = table_index().nearest(["reduce the divergence of branches"], 10)
    assert len(found) == 10
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert len({each.technique for each in found}) == 10
