"""The knowledge half of the contract: merging, aliases, statistics, examples, streams."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from graph_samples import FAILED, passed, trajectory

from regraph_db.errors import InputError
from regraph_db.records import Alias, Level, Technique, Trajectory
from regraph_db.store import GraphStore


def alias(name: str, technique: str, *, review: bool = False) -> Alias:
    return Alias(alias=name, technique=technique, author="similar", score=0.875, review=review)


def edges(store: GraphStore, **options: str) -> dict[tuple[str, str], int]:
    return {(t.before, t.after): t.statistics.examples for t in store.transitions(None, **options)}


def test_a_merge_reports_what_is_new_and_what_was_known(store: GraphStore) -> None:
    first = store.merge_trajectories([trajectory("tiling", "unrolling")])
    assert (first.merged, first.duplicates, first.steps) == (1, 0, 2)
    assert first.new_techniques == ("tiling", "unrolling")
    assert (first.new_transitions, first.known_transitions) == (2, 0)
    second = store.merge_trajectories([trajectory("tiling", "unrolling"), trajectory("Tiling", "tiling", task="dot")])
    assert (second.merged, second.duplicates, second.steps) == (1, 1, 2)
    assert (second.new_techniques, second.known_techniques) == ((), 1)
    assert (second.new_transitions, second.known_transitions) == (1, 1)


def test_a_trajectory_counts_once_however_often_it_comes(store: GraphStore) -> None:
    one = trajectory("tiling", "unrolling")
    for _ in range(3):
        store.merge_trajectories([one, one])
    assert edges(store) == {("init", "tiling"): 1, ("tiling", "unrolling"): 1}
    assert store.known_trajectories([one.id, "unknown"]) == {one.id: (0, 0)}


def test_verdicts_that_reach_further_replace_those_that_stand(store: GraphStore) -> None:
    plain = trajectory("tiling", "unrolling", "padding")
    cut = trajectory("tiling", "unrolling", verdicts=[passed(1.0), FAILED]).model_copy(update={"whole": plain.id})
    store.merge_trajectories([plain])
    report = store.merge_trajectories([cut, plain])
    assert (report.merged, report.verified, report.duplicates, report.steps) == (0, 1, 1, 0)
    assert store.known_trajectories([plain.id]) == {plain.id: (2, 4)}
    assert edges(store) == {("init", "tiling"): 1}
    assert [t.name for t, _, _ in store.techniques()] == ["tiling", "unrolling"]
    assert list(store.trajectories()) == [cut]
    assert (store.counts().trajectories, store.counts().steps) == (1, 2)
    assert store.merge_trajectories([plain]).duplicates == 1
    assert list(store.trajectories()) == [cut] and store.check() == []


def test_the_order_in_which_levels_come_in_does_not_matter(empty: Callable[[], GraphStore]) -> None:
    checked = passed(1.0).model_copy(update={"level": Level.FUNCTIONAL})
    versions = [
        trajectory("tiling", "unrolling", verdicts=verdicts)
        for verdicts in ([], [checked, None], [checked, checked], [passed(1.0), checked], [passed(1.0), passed(0.5)])
    ]
    found = []
    for order in (versions[-1:], versions, versions[::-1], [versions[3], versions[0], versions[4], versions[1]]):
        for batches in ([order], [[one] for one in order]):
            store = empty()
            for batch in batches:
                store.merge_trajectories(batch)
            assert list(store.trajectories()) == versions[-1:] and store.check() == []
            found.append((store.transitions(), store.techniques()))
    assert all(each == found[0] for each in found)


def test_cycles_and_self_loops_are_edges(store: GraphStore) -> None:
    store.merge_trajectories([trajectory("tiling", "tiling", "unrolling", "tiling")])
    assert edges(store) == {
        ("init", "tiling"): 1,
        ("tiling", "tiling"): 1,
        ("tiling", "unrolling"): 1,
        ("unrolling", "tiling"): 1,
    }


def test_a_trajectory_comes_back_as_it_was_given(store: GraphStore) -> None:
    one = trajectory("Tiling", "x  Y", verdicts=[passed(0.1), FAILED])
    other = trajectory("tiling", task="dot")
    store.merge_trajectories([one, other])
    assert {t.id: t for t in store.trajectories()} == {one.id: one, other.id: other}
    assert list(store.trajectories(task="dot")) == [other]


def test_gains_are_logarithms_of_measured_time_ratios(store: GraphStore) -> None:
    store.merge_trajectories([trajectory("tiling", "unrolling", verdicts=[passed(4.0), passed(0.5)])])
    first, second = store.transitions()
    assert (first.statistics.gain_count, first.statistics.gain_sum) == (1, 1.0)
    assert (second.statistics.gain_count, second.statistics.gain_sum) == (1, 3.0)
    (example,) = store.examples("tiling", "unrolling")
    assert example.gain == 3.0


def test_times_of_different_gpus_and_levels_are_never_compared(store: GraphStore) -> None:
    checked = passed(1.0).model_copy(update={"level": Level.FUNCTIONAL})
    store.merge_trajectories(
        [
            trajectory("tiling", "unrolling", verdicts=[passed(4.0), passed(0.5, gpu="A100")]),
            trajectory("tiling", "unrolling", task="dot", verdicts=[checked, passed(1.0)]),
        ]
    )
    (after,) = store.transitions("tiling")
    assert (after.statistics.examples, after.statistics.gain_count) == (2, 0)


def test_a_failed_step_is_kept_but_is_no_example(store: GraphStore) -> None:
    one = trajectory("tiling", "unrolling", verdicts=[passed(1.0), FAILED])
    store.merge_trajectories([one])
    assert edges(store) == {("init", "tiling"): 1}
    assert store.examples("tiling", "unrolling") == []
    assert store.counts().steps == 2
    assert [(t.name, n, of) for t, n, of in store.techniques()] == [("tiling", 1, 1), ("unrolling", 0, 1)]


def test_order_and_batches_do_not_change_the_graph(empty: Callable[[], GraphStore]) -> None:
    batch = [
        trajectory(
            "tiling",
            "unrolling",
            "vector loads",
            task=task,
            author=str(i),
            verdicts=[passed(i + 0.1), passed(0.3), None],
        )
        for i, task in enumerate(["saxpy", "dot", "saxpy", "sum", "dot", "sum", "saxpy"])
    ]
    whole = empty()
    whole.merge_trajectories(batch)
    expected = (whole.transitions(), whole.techniques(), whole.transitions(without_task="dot"))
    shuffled = random.Random(1).sample(batch, len(batch))
    parts = empty()
    for one in shuffled:
        parts.merge_trajectories([one])
    assert (parts.transitions(), parts.techniques(), parts.transitions(without_task="dot")) == expected


def test_leaving_a_task_out_leaves_nothing_of_it(store: GraphStore) -> None:
    store.merge_trajectories(
        [
            trajectory("tiling", "unrolling", verdicts=[passed(4.0), passed(1.0)]),
            trajectory("tiling", "vector loads", task="dot", verdicts=[passed(2.0)]),
        ]
    )
    (left,) = store.transitions("init", without_task="saxpy")
    assert (left.statistics.examples, left.statistics.gain_sum) == (1, 2.0)
    assert all(t.after != "unrolling" for t in store.transitions(without_task="saxpy"))


def test_the_nearest_example_comes_first_and_never_from_the_named_kernel(store: GraphStore) -> None:
    store.merge_trajectories([trajectory("tiling", task=task) for task in ("saxpy", "dot", "sum")])
    like = "void dot() { for }"
    found = store.examples("init", "tiling", like=like, limit=3)
    assert found[0].task == "dot"
    assert math.isclose(found[0].similarity or 0, 1.0)
    assert [e.similarity for e in found] == sorted((e.similarity or 0 for e in found), reverse=True)
    assert found[0].before == like
    assert found[0].after == "void dot() { /* 0 tiling */ }"
    other = store.examples("init", "tiling", like=like, limit=3, without_task="dot")
    assert {e.task for e in other} == {"saxpy", "sum"}
    assert {e.task for e in store.nearest_examples(like, limit=9, without_function="sum")} == {"saxpy", "dot"}
    assert store.examples("init", "nothing", like=like) == []


def test_an_alias_moves_every_step_and_its_revocation_moves_them_back(store: GraphStore) -> None:
    store.merge_trajectories([trajectory("tile it", "unrolling"), trajectory("tiling", "tile it", task="dot")])
    before = (store.transitions(), store.techniques())
    store.put_aliases([alias("tile it", "tiling")])
    assert edges(store) == {("init", "tiling"): 2, ("tiling", "unrolling"): 1, ("tiling", "tiling"): 1}
    (moved,) = store.examples("tiling", "unrolling")
    assert moved.transition == ("tiling", "unrolling")
    assert store.revoke_alias("tile it") is not None
    assert (store.transitions(), store.techniques()) == before
    assert store.revoke_alias("tile it") is None
    assert store.check() == []


def test_aliases_chain_and_a_decided_one_stays_unless_replaced(store: GraphStore) -> None:
    store.merge_trajectories([trajectory("x")], [alias("x", "y")])
    store.put_aliases([alias("y", "z"), alias("x", "ignored")])
    assert edges(store) == {("init", "z"): 1}
    store.put_aliases([alias("x", "w")], replace=True)
    assert edges(store) == {("init", "w"): 1}
    assert {a.alias: a.technique for a in store.aliases()} == {"x": "w", "y": "z"}


@pytest.mark.parametrize(
    "batch",
    [[("a", "b"), ("b", "a")], [("init", "b")], [("a", "init")]],
    ids=["a loop", "the root's alias", "to the root"],
)
def test_a_loop_and_the_root_are_refused_whole(store: GraphStore, batch: list[tuple[str, str]]) -> None:
    with pytest.raises(InputError):
        store.put_aliases([alias("good", "tiling"), *(alias(*pair) for pair in batch)])
    with pytest.raises(InputError):
        store.merge_trajectories([trajectory("tiling")], [alias(*pair) for pair in batch])
    assert store.counts().aliases == 0
    assert store.counts().trajectories == 0


def test_aliases_are_listed_for_review(store: GraphStore) -> None:
    doubtful = alias("maybe", "tiling", review=True)
    store.put_aliases([doubtful, alias("sure", "tiling")])
    assert store.aliases(review=True) == [doubtful]
    assert [a.alias for a in store.aliases()] == ["maybe", "sure"]


def test_a_given_technique_exists_without_steps_and_keeps_its_description(store: GraphStore) -> None:
    store.put_techniques([Technique(name="tiling", description="one line", shipped=True)])
    store.put_techniques([Technique(name="tiling")])
    assert store.techniques() == [(Technique(name="tiling", description="one line", shipped=True), 0, 0)]


def test_a_step_named_as_the_root_is_refused(store: GraphStore) -> None:
    with pytest.raises(InputError, match=r"steps\[1\].method"):
        store.merge_trajectories([trajectory("tiling", "Init")])


def test_nothing_is_a_batch_too(store: GraphStore) -> None:
    assert store.merge_trajectories([]).merged == 0
    store.put_aliases([])
    store.put_techniques([])
    assert store.counts().model_dump() == dict.fromkeys(store.counts().model_dump(), 0)


def test_a_page_boundary_loses_no_trajectory(store: GraphStore) -> None:
    batch: list[Trajectory] = [trajectory("tiling", author=str(i)) for i in range(130)]
    store.merge_trajectories(batch)
    assert [t.id for t in store.trajectories()] == sorted(t.id for t in batch)


def test_a_page_boundary_loses_no_example(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.merge_trajectories([trajectory("tiling", author=str(i)) for i in range(5)])
    whole = store.examples("init", "tiling", like="for", limit=9), store.nearest_examples("for", limit=9)
    for page in (1, 2, 5):
        monkeypatch.setattr("regraph_db.neo4j.reading._VECTORS", page)
        monkeypatch.setattr("regraph_db.vectors._BATCH", page)
        assert (store.examples("init", "tiling", like="for", limit=9), store.nearest_examples("for", limit=9)) == whole
    assert len(whole[0]) == len(whole[1]) == 5
