"""Any sequence of writes gives the same answers on a store as on the plain model in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import count

import pytest
from graph_model import KnowledgeModel, SearchModel
from graph_samples import FAILED, attempt, passed, search, trajectory
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from regraph_db.errors import InputError
from regraph_db.names import normalise
from regraph_db.records import (
    Alias,
    EdgeReturn,
    ExploredEdge,
    Rollout,
    RolloutResult,
    Runner,
    State,
    Technique,
    Trajectory,
)
from regraph_db.store import GraphStore

METHODS = ["Tiling", "loop-unrolling", "unrolling optimization", "vector loads", "`}) DETACH DELETE n //", "🚀"]
NAMES = [*map(normalise, METHODS), "elsewhere"]
TASKS = ["", "saxpy", "dot"]

verdicts = st.one_of(
    st.none(),
    st.just(FAILED),
    st.builds(passed, st.sampled_from([0.3, 1.0, 4.0]), gpu=st.sampled_from(["H200", "A100"])),
)
trajectories = st.lists(st.tuples(st.sampled_from(METHODS), verdicts), min_size=1, max_size=4).flatmap(
    lambda steps: st.builds(
        lambda task, author: trajectory(
            *(m for m, _ in steps), task=task, author=author, verdicts=[v for _, v in steps]
        ),
        st.sampled_from(TASKS),
        st.sampled_from(["a", "b"]),
    )
)
aliases = st.builds(
    Alias, alias=st.sampled_from(NAMES), technique=st.sampled_from(NAMES), author=st.just("table"), review=st.booleans()
)
pairs = st.sampled_from([("root", "a"), ("root", "b"), ("a", "b"), ("b", "a"), ("a", "a")])
values = st.integers(-8, 64).map(lambda eighths: eighths / 8)


class Machine(RuleBasedStateMachine):
    """Writes on a store and on the model; every invariant is one question to both."""

    empty: Callable[[], GraphStore]
    names: Iterator[int] = count()

    def __init__(self) -> None:
        super().__init__()
        self.store = type(self).empty()
        self.knowledge = KnowledgeModel()
        self.id = f"search {next(self.names)}"
        self.search = SearchModel(search(self.id, budget=12))
        self.store.open_search(self.search.search, State(id="root", technique="init"))
        self.search.add((State(id="root", technique="init"),), ())
        self.store.join(Runner(id=f"runner {self.id}", search=self.id))
        self.rollouts = 0

    @rule(batch=st.lists(trajectories, max_size=3), decided=st.lists(aliases, max_size=2))
    def merge(self, batch: list[Trajectory], decided: list[Alias]) -> None:
        model = self.knowledge
        if not model.put_aliases(decided, replace=False):
            with pytest.raises(InputError):
                self.store.merge_trajectories(batch, decided)
            return
        assert self.store.merge_trajectories(batch, decided).merged == model.merge(batch)

    @rule(decided=st.lists(aliases, min_size=1, max_size=2), replace=st.booleans())
    def put_aliases(self, decided: list[Alias], replace: bool) -> None:
        if not self.knowledge.put_aliases(decided, replace=replace):
            with pytest.raises(InputError):
                self.store.put_aliases(decided, replace=replace)
        else:
            self.store.put_aliases(decided, replace=replace)

    @rule(name=st.sampled_from(NAMES))
    def revoke(self, name: str) -> None:
        assert self.store.revoke_alias(name) == self.knowledge.aliases.pop(name, None)

    @rule(name=st.sampled_from(NAMES), description=st.sampled_from(["", "one line"]), shipped=st.booleans())
    def put_technique(self, name: str, description: str, shipped: bool) -> None:
        technique = Technique(name=name, description=description, shipped=shipped)
        self.store.put_techniques([technique])
        self.knowledge.put_techniques([technique])

    @rule()
    def expand(self) -> None:
        states = (State(id="a", technique="tiling"), State(id="b", technique="unrolling"))
        edges = (ExploredEdge(source="root", target="a", prior=2.0), ExploredEdge(source="root", target="b"))
        self.store.expand(self.id, "root", states, edges)
        self.search.add(states, edges)
        self.search.states["root"] = self.search.states["root"].model_copy(update={"expanded": True})

    @rule(data=st.data(), calls=st.integers(0, 4))
    def begin(self, data: st.DataObject, calls: int) -> None:
        edges = sorted(self.search.edges)
        path = data.draw(st.lists(st.sampled_from(edges), max_size=3)) if edges else []
        self.rollouts += 1
        identity = f"{self.id} rollout {self.rollouts}"
        rollout = Rollout(id=identity, search=self.id, runner=f"runner {self.id}", path=tuple(path), calls=calls)
        granted = self.search.begin(rollout)
        assert self.store.begin_rollout(rollout) == granted
        if granted:
            assert self.store.begin_rollout(rollout) == granted

    @precondition(lambda self: self.search.begun or self.search.ended)
    @rule(data=st.data(), returns=st.lists(st.tuples(pairs, st.none() | values, st.integers(0, 1)), max_size=3))
    def finish(self, data: st.DataObject, returns: list[tuple[tuple[str, str], float | None, int]]) -> None:
        rollout = data.draw(st.sampled_from(sorted(self.search.begun | self.search.ended)))
        speedup = data.draw(st.none() | st.sampled_from([0.5, 2.0, 3.0]))
        states = tuple(State(id=name, technique=technique) for name, technique in (("a", "tiling"), ("b", "unrolling")))
        result = RolloutResult(
            rollout=rollout,
            search=self.id,
            returns=tuple(EdgeReturn(source=u, target=v, value=value, refusals=no) for (u, v), value, no in returns),
            states=states,
            edges=tuple(ExploredEdge(source=u, target=v, prior=0.25) for (u, v), _, _ in returns),
            attempts=(attempt(f"attempt of {rollout}", rollout, search=self.id, speedup=speedup),),
            calls=2,
            returned_at_nodes=(("root", 0.5), ("a", 1.5), ("a", -1.0)),
        )
        assert self.store.finish_rollout(result) == self.search.finish(result)

    @rule()
    def roll_up(self) -> None:
        self.store.roll_up(self.id)
        technique = {state.id: state.technique for state in self.search.states.values()}
        for (source, target), edge in self.search.edges.items():
            if edge.visits:
                key = (self.id, technique[source], technique[target])
                self.knowledge.returns[key] = ("saxpy", edge.visits, Fraction(edge.value_sum))

    @invariant()
    def same_knowledge(self) -> None:
        model, store = self.knowledge, self.store
        assert store.techniques() == model.techniques()
        assert store.aliases() == [model.aliases[name] for name in sorted(model.aliases)]
        for task in (None, "saxpy"):
            expected = model.transitions(without_task=task)
            assert store.transitions(without_task=task) == expected
            assert store.transitions("init", without_task=task) == [t for t in expected if t.before == "init"]
        for transition in model.transitions()[:2]:
            ends = (transition.before, transition.after)
            found = [e.id for e in store.examples(*ends, limit=100, without_task="dot")]
            assert found == model.examples(*ends, without_task="dot")
        assert {t.id for t in store.trajectories()} == set(model.trajectories)

    @invariant()
    def same_search(self) -> None:
        model = self.search
        snapshot = self.store.snapshot(self.id)
        flying = model.flying()
        assert {s.id: s for s in snapshot.states} == model.states
        assert {(e.source, e.target): e for e in snapshot.edges} == {
            key: edge.model_copy(update={"in_flight": flying[key]}) for key, edge in model.edges.items()
        }
        assert snapshot.search.calls == model.search.calls
        assert snapshot.search.reserved == sum(granted for _, granted in model.begun.values())
        assert list(self.store.attempts(self.id)) == model.attempts

    def teardown(self) -> None:
        assert self.store.check() == []
        self.store.close()


@pytest.mark.timeout(900)
def test_any_sequence_of_writes_gives_the_models_answers(empty: Callable[[], GraphStore], kind: str) -> None:
    machine = type("Machine", (Machine,), {"empty": staticmethod(empty)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=150 if kind == "sqlite" else 8,
            stateful_step_count=20 if kind == "sqlite" else 12,
            deadline=None,
            phases=(Phase.explicit, Phase.reuse, Phase.generate),
            suppress_health_check=list(HealthCheck),
        ),
    )
