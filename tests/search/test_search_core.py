"""The core on golden trees, and its invariants on random cyclic graphs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regraph_db.records import (
    ROOT,
    ExploredEdge,
    Level,
    RolloutResult,
    State,
    Transition,
    TransitionStatistics,
)
from search.core import FAILED, Judged, Knowledge, Selection, Step, Tree, Walked, knowledge, reward, select, walk
from search.core.returns import edge_returns
from search.core.selection import masked, recursive_values
from search.settings import PAPER, SearchSettings

GOLDEN = sorted((Path(__file__).parent / "trees").glob("*.json"))


def tree_of(document: dict[str, Any]) -> Tree:
    tree = Tree.rooted(ROOT)
    states = [State.model_validate(one) for one in document["states"]]
    tree.nodes.clear()
    tree.add(states, [ExploredEdge.model_validate(one) for one in document["edges"]])
    return tree


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_golden_tree(file: Path) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    for case in document["cases"]:
        chosen = SearchSettings.model_validate(case["settings"])
        selection = select(tree_of(document), Knowledge({}), chosen)
        assert [list(key) for key in selection.path] == case["path"], case["why"]
        assert selection.generate is case["generate"], case["why"]


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_permuting_children_changes_nothing(file: Path) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    expected = select(tree_of(document), Knowledge({}), SearchSettings())
    for seed in range(5):
        shuffled = dict(document, edges=Random(seed).sample(document["edges"], len(document["edges"])))
        assert select(tree_of(shuffled), Knowledge({}), SearchSettings()) == expected


def test_selection_bound_is_the_equation() -> None:
    """Q + c·σ·sqrt(2 ln(1 + Σ(N+O)) / (N+O)), worked out by hand for two edges."""
    edges = [
        ExploredEdge(source=ROOT, target="a", visits=3, value_sum=6.0, value_sq_sum=14.0, best=3.0, in_flight=1),
        ExploredEdge(source=ROOT, target="b", visits=1, value_sum=1.5, value_sq_sum=2.25, best=1.5),
    ]
    tree = Tree.rooted(ROOT)
    tree.add([State(id="a", technique="a", best_attempt="x"), State(id="b", technique="b", best_attempt="y")], edges)
    tree.nodes[ROOT].expanded = True
    sigma = max(0.5, math.sqrt(16.25 / 4 - (7.5 / 4) ** 2))
    assert tree.sigma(0.5) == pytest.approx(sigma)
    for c in (0.0, 0.1, 0.5, 1.0, 2.0):
        bound = {
            "a": 2.0 + c * sigma * math.sqrt(2 * math.log(6) / 4),
            "b": 1.5 + c * sigma * math.sqrt(2 * math.log(6) / 1),
        }
        chosen = SearchSettings(exploration=c)
        # b has no successors, so that the walk ends there and is generated again
        assert select(tree, Knowledge({}), chosen).path[0] == (ROOT, max(bound, key=lambda name: bound[name]))


def test_paper_mode_is_every_literal_reading_and_can_be_overruled() -> None:
    literal = SearchSettings.model_validate({"mode": "paper"})
    assert {key: getattr(literal, key) for key in PAPER} == PAPER
    assert SearchSettings.model_validate({"mode": "paper", "statistics": "edges"}).statistics == "edges"


def test_rewards() -> None:
    paper, log = SearchSettings(), SearchSettings(reward_scale="log2")
    assert reward(0.25, paper) == -0.75
    assert reward(1.0, paper) == 1.0
    assert reward(8.0, paper) == 8.0
    assert reward(8.0, log) == 3.0
    assert reward(0.25, log) == -0.75
    assert reward(1e-30, paper) > FAILED
    assert reward(None, paper, guide=1.5) == 2.5
    assert reward(None, paper, guide=-3.0) == 1.0


def test_suffix_and_rollout_returns() -> None:
    suffix, whole = SearchSettings(), SearchSettings(returns="rollout")
    assert edge_returns([2.0, 5.0], [3.0, 4.0, FAILED], suffix) == ([5.0, 5.0], [4.0, 4.0, FAILED])
    assert edge_returns([2.0, 5.0], [3.0, 4.0, FAILED], whole) == ([4.0, 4.0], [4.0, 4.0, 4.0])
    assert edge_returns([2.0], [FAILED], suffix) == ([2.0], [FAILED])
    assert edge_returns([2.0], [FAILED], whole) == ([FAILED], [FAILED])
    assert edge_returns([2.0], [None], suffix) == ([None], [None])


def test_recursive_values_average_over_the_edges_below() -> None:
    tree = Tree.rooted(ROOT)
    tree.add(
        [State(id="a", technique="a"), State(id="b", technique="b")],
        [
            ExploredEdge(source=ROOT, target="a", visits=1, value_sum=1.0),
            ExploredEdge(source="a", target="b", visits=3, value_sum=15.0),
        ],
    )
    assert recursive_values(tree) == {(ROOT, "a"): 4.0, ("a", "b"): 5.0}


def test_priors_prefer_gain_then_examples_and_never_mix_modelled_returns() -> None:
    found = [
        Transition(before=ROOT, after="fast", statistics=TransitionStatistics(examples=1, gain_count=4, gain_sum=8.0)),
        Transition(before=ROOT, after="common", statistics=TransitionStatistics(examples=50)),
        Transition(before=ROOT, after="praised", statistics=TransitionStatistics(modelled_count=9, modelled_sum=9e9)),
    ]
    measured = knowledge(found, SearchSettings(), Level.GPU)
    assert [s.technique for s in measured.after(ROOT)] == ["fast", "common", "praised"]
    assert knowledge(found, SearchSettings(), Level.MODELLED).after(ROOT)[0].technique == "praised"
    assert knowledge(found, SearchSettings(prior="count"), Level.GPU).after(ROOT)[0].technique == "common"
    assert measured.gain(ROOT, "fast") == pytest.approx(8.0 / 6.0)


# -- random searches -------------------------------------------------------------------------------

NAMES = [ROOT, *"abcdefg"]


@st.composite
def graphs(draw: st.DrawFn) -> list[Transition]:
    pairs = draw(st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES[1:])), min_size=1, max_size=24))
    pairs.add((ROOT, "a"))
    return [
        Transition(before=u, after=v, statistics=TransitionStatistics(examples=draw(st.integers(1, 3))))
        for u, v in sorted(pairs)
    ]


def outcome(rng: Random) -> Judged:
    draw = rng.random()
    if draw < 0.15:
        return Judged(None, refused=True)
    return Judged(None if draw < 0.2 else FAILED if draw < 0.45 else rng.uniform(-0.9, 30.0))


def one_rollout(
    tree: Tree, facts: Knowledge, chosen: SearchSettings, seed: str, see: Callable[[Step], None] = lambda _: None
) -> tuple[Selection, Walked, list[tuple[Step, Judged]]]:
    rng, judge = Random(f"{seed} policy"), Random(f"{seed} judge")
    selection = select(tree, facts, chosen)
    tree.begin(selection.path)
    steps, done = walk(tree, selection, facts, chosen, rng, chosen.step_cap), []
    try:
        step = next(steps)
        while True:
            see(step)
            done.append((step, outcome(judge)))
            step = steps.send(done[-1][1])
    except StopIteration as end:
        walked: Walked = end.value
    tree.release(selection.path)
    result = RolloutResult(
        rollout=seed, search="s", returns=walked.returns, states=walked.states, edges=walked.edges,
        returned_at_nodes=walked.returned_at_nodes,
    )  # fmt: skip
    tree.add(walked.states, walked.edges)
    good = {s.target: j.reward for s, j in done if j.reward is not None and j.reward > FAILED}
    tree.finish(result, {state: None if value is None else value + 1 for state, value in good.items()})
    return selection, walked, done


SEARCHES = st.tuples(graphs(), st.sampled_from(["graph", "paper"]), st.integers(0, 10_000))


@settings(max_examples=60, deadline=None)
@given(SEARCHES)
def test_a_search_on_a_cyclic_graph_ends_and_its_counts_add_up(drawn: tuple[list[Transition], str, int]) -> None:
    transitions, mode, seed = drawn
    chosen = SearchSettings.model_validate({"mode": mode})
    facts = knowledge(transitions, chosen, Level.GPU)
    tree = Tree.rooted(ROOT)
    visits = dict.fromkeys(tree.edges, 0)
    for number in range(25):
        selection, walked, done = one_rollout(tree, facts, chosen, f"{seed} {number}")
        assert done or all(masked(edge, chosen) for edge in tree.nodes[ROOT].edges)
        assert walked.calls == len(done) <= chosen.step_cap * chosen.attempts_at_node
        assert all(one[0] == other[1] for one, other in zip(selection.path[1:], selection.path, strict=False))
        for one in walked.returns:
            if one.value is not None:
                visits[one.source, one.target] = visits.get((one.source, one.target), 0) + 1
        path = [(s.source, s.target) for s, _ in done]
        if mode == "graph":
            assert all(path.count(key) <= 1 + chosen.attempts_at_node for key in path)
    assert {key: edge.visits for key, edge in tree.edges.items() if edge.visits} == {
        k: n for k, n in visits.items() if n
    }
    assert all(edge.in_flight == 0 for edge in tree.edges.values())
    assert tree.count == sum(visits.values())
    for edge in tree.edges.values():
        if edge.visits:
            assert edge.best is not None
            assert edge.value_sum / edge.visits <= edge.best + 1e-9
            assert edge.value_sq_sum >= edge.value_sum**2 / edge.visits - 1e-6


@settings(max_examples=40, deadline=None)
@given(SEARCHES)
def test_a_resumed_search_is_the_uninterrupted_one(drawn: tuple[list[Transition], str, int]) -> None:
    """Going on from the sums alone, as a snapshot holds them, walks the same path."""
    transitions, mode, seed = drawn
    chosen = SearchSettings.model_validate({"mode": mode})
    facts = knowledge(transitions, chosen, Level.GPU)
    whole, parts = Tree.rooted(ROOT), Tree.rooted(ROOT)
    for number in range(12):
        expected = one_rollout(whole, facts, chosen, f"{seed} {number}")
        parts = copied(parts)
        assert one_rollout(parts, facts, chosen, f"{seed} {number}") == expected


def copied(tree: Tree) -> Tree:
    """The tree as a store would give it back."""
    fresh = Tree(tree.root)
    states = [
        State(
            id=n.id, technique=n.technique, expanded=n.expanded, visits=n.visits, value_sum=n.value_sum,
            best_speedup=n.best_speedup, best_attempt="x" if n.verified else None,
        )
        for n in tree.nodes.values()
    ]  # fmt: skip
    fields = ("source", "target", "prior", "visits", "value_sum", "value_sq_sum", "best", "in_flight", "refusals")
    fresh.add(states, [ExploredEdge(**{f: getattr(e, f) for f in fields}) for e in tree.edges.values()])
    return fresh


@settings(max_examples=40, deadline=None)
@given(graphs(), st.integers(0, 10_000))
def test_a_rollout_starts_where_code_stands_and_each_step_where_the_last_one_ended(
    transitions: list[Transition], seed: int
) -> None:
    chosen = SearchSettings()
    facts = knowledge(transitions, chosen, Level.GPU)
    tree = Tree.rooted(ROOT)
    for number in range(15):
        verified = {name for name, node in tree.nodes.items() if node.verified}
        _, _, done = one_rollout(tree, facts, chosen, f"{seed} {number}")
        place = None
        for step, judged in done:
            assert step.source in verified if place is None else step.source == place
            assert any(s.technique == step.after for s in facts.after(step.before)), "outside the graph's reach"
            place = step.target if judged.reward is not None and judged.reward > FAILED else step.source


def test_refused_edges_are_masked_after_two() -> None:
    chosen = SearchSettings(epsilon=0.0)
    facts = knowledge([Transition(before=ROOT, after="a")], chosen, Level.GPU)
    tree = Tree.rooted(ROOT)
    calls = 0
    for number in range(6):
        selection = select(tree, facts, chosen)
        steps = walk(tree, selection, facts, chosen, Random(number), 10)
        try:
            next(steps)
            calls += 1
            steps.send(Judged(None, refused=True))
        except StopIteration as end:
            result = RolloutResult(rollout=str(number), search="s", returns=end.value.returns)
            tree.finish(result, {})
    assert calls == 2
    assert tree.edges[ROOT, "a"].refusals == 2


def test_applied_sets_key_the_states_when_asked() -> None:
    chosen = SearchSettings(state="applied", epsilon=0.0)
    facts = knowledge([Transition(before=u, after=v) for u in (ROOT, *"ab") for v in "ab"], chosen, Level.GPU)
    tree = Tree.rooted(ROOT)
    for number in range(30):
        one_rollout(tree, facts, chosen, str(number))
    by_technique = [node.id for node in tree.nodes.values() if node.technique == "a"]
    assert len(by_technique) == 2  # after nothing or itself, and with b


def test_repair_asks_once_more_and_takes_its_reward() -> None:
    chosen = SearchSettings(repair=True, epsilon=0.0)
    facts = knowledge([Transition(before=ROOT, after="a")], chosen, Level.GPU)
    tree = Tree.rooted(ROOT)
    steps = walk(tree, select(tree, facts, chosen), facts, chosen, Random(0), 10)
    assert not next(steps).repair
    assert steps.send(Judged(FAILED)).repair
    with pytest.raises(StopIteration) as end:
        steps.send(Judged(3.0))
    assert [one.value for one in end.value.value.returns] == [3.0]
    assert end.value.value.calls == 2
