"""The pure rules of the knowledge graph: gains, contributions, aliases, nearest vectors, paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regraph_db.commands.technique import likeliest_path
from regraph_db.derive import Delta, Outline, RolledUp, StepFacts, Sums, gain, micros, moved, resolver
from regraph_db.errors import InputError
from regraph_db.records import Evidence, Level, Step, Transition, TransitionStatistics, Verdict, VerdictKind
from regraph_db.vectors import DIMENSIONS, nearest, vector


def step(
    seconds: float | None,
    *,
    baseline: str = "reference",
    kind: VerdictKind = VerdictKind.PASSED,
    level: Level = Level.GPU,
) -> Step:
    verdict = Verdict(
        verdict=kind,
        level=level,
        candidate_seconds=seconds,
        baseline_seconds=16.0,
        baseline=baseline,
        evidence=Evidence(gpu="H200"),
    )
    return Step(method="tiling", code="x", verdict=verdict)


@pytest.mark.parametrize(
    ("previous", "after", "expected"),
    [
        (None, step(4.0), 2.0),
        (step(4.0), step(1.0), 2.0),
        (step(1.0), step(4.0), -2.0),
        (None, step(4.0, baseline="some kernel"), None),
        (step(4.0, kind=VerdictKind.TIMEOUT), step(1.0), None),
        (step(4.0), step(1.0, kind=VerdictKind.TIMEOUT), None),
        (step(4.0, level=Level.FUNCTIONAL), step(1.0), None),
        (step(4.0), step(1.0, level=Level.MODELLED), None),
        (step(None), step(1.0), None),
        (step(0.0), step(1.0), None),
        (step(4.0), step(None), None),
        (step(4.0), step(0.0), None),
        (Step(method="m", code="x"), step(1.0), None),
        (step(4.0), Step(method="m", code="x"), None),
    ],
)
def test_a_gain_needs_two_measured_times(previous: Step | None, after: Step, expected: float | None) -> None:
    assert gain(previous, after) == expected


facts = st.builds(StepFacts, st.sampled_from("abc"), st.booleans(), st.none() | st.floats(-9, 9))
outlines = st.builds(Outline, st.sampled_from(["", "saxpy"]), st.lists(facts, min_size=1, max_size=4).map(tuple))


@given(st.lists(outlines, max_size=6), st.randoms(use_true_random=False))
def test_sums_are_the_same_to_the_bit_in_any_order(several: list[Outline], chance: object) -> None:
    first, second = Delta(), Delta()
    for outline in several:
        first.add(outline, str)
    chance.shuffle(several)  # type: ignore[attr-defined]
    for outline in several:
        second.add(outline, str)
    assert first.shares == second.shares
    assert first.techniques == second.techniques


@given(st.lists(outlines, max_size=4), outlines)
def test_what_is_taken_away_leaves_no_trace(several: list[Outline], gone: Outline) -> None:
    kept, both = Delta(), Delta()
    for outline in several:
        kept.add(outline, str)
        both.add(outline, str)
    both.add(gone, str)
    both.add(gone, str, -1)
    assert {k: s for k, s in both.shares.items() if s != Sums()} == kept.shares
    assert {k: n for k, n in both.techniques.items() if n != (0, 0)} == kept.techniques


def test_returns_count_by_level_and_functional_ones_not_at_all() -> None:
    delta = Delta()
    for level in (Level.GPU, Level.MODELLED, Level.FUNCTIONAL):
        delta.add_returns(
            RolledUp(search="s", before="a", after="b", task="t", level=level, count=2, micros=micros(1.5)), str
        )
    assert delta.shares == {
        ("a", "b", "t"): Sums(return_count=2, return_micros=1_500_000, modelled_count=2, modelled_micros=1_500_000)
    }


def test_moved_phrases_are_those_that_resolve_differently() -> None:
    assert moved({"a": "b"}, {"a": "b", "b": "c"}) == {"a", "b"}
    assert moved({"a": "b"}, {"a": "b", "c": "c"}) == set()
    with pytest.raises(InputError, match="loop"):
        moved({}, {"a": "b", "b": "a"})
    assert resolver({"a": "b", "b": "c"})("a") == "c"


codes = st.text("ab(); {}+12", max_size=40)


@given(codes, st.lists(codes, max_size=12), st.integers(0, 5))
def test_nearest_is_a_sort_by_cosine_then_id(like: str, others: list[str], limit: int) -> None:
    rows = [(f"{number:02}", vector(code).tobytes()) for number, code in enumerate(others)]
    found = nearest(like, rows, limit)
    cosines = {
        key: round(float(np.dot(np.frombuffer(blob, np.float32).astype(float), vector(like).astype(float))), 6)
        for key, blob in rows
    }
    expected = sorted(cosines, key=lambda key: (-cosines[key], key))[:limit]
    assert [cosine for _, cosine in found] == pytest.approx([cosines[key] for key in expected], abs=2e-6)
    assert len(found) == min(limit, len(rows))


def test_a_vector_is_of_unit_length_or_zero() -> None:
    assert vector("").tolist() == [0.0] * DIMENSIONS
    assert np.linalg.norm(vector("x = y + 1;")) == pytest.approx(1.0, abs=1e-6)


def test_the_likeliest_path_follows_the_shares_of_examples() -> None:
    def edge(before: str, after: str, examples: int) -> Transition:
        return Transition(before=before, after=after, statistics=TransitionStatistics(examples=examples))

    graph = [
        edge("init", "a", 9),
        edge("init", "b", 1),
        edge("a", "c", 1),
        edge("a", "a", 9),
        edge("b", "c", 1),
        edge("c", "init", 1),
    ]
    # init → a → c has the chance 0.9 · 0.1, init → b → c has 0.1 · 1.
    assert [t.after for t in likeliest_path(graph, "init", "c") or ()] == ["b", "c"]
    assert likeliest_path(graph, "init", "init") == []
    assert likeliest_path(graph, "init", "nowhere") is None
    assert likeliest_path([edge("init", "a", 0)], "init", "a") is None
