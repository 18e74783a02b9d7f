"""Every strategy on a real store: equal budgets, one path for one seed, nothing of the searched task in a prompt."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from search_doubles import FakeJudge, Faulty, Scripted, trajectories

from regraph_db.errors import EnvironmentFault, InputError
from regraph_db.opening import open_store
from regraph_db.records import (
    ROOT,
    Level,
    Rollout,
    RolloutResult,
    SearchStatus,
    Step,
    Trajectory,
    Verdict,
    VerdictKind,
)
from regraph_db.settings import load
from regraph_db.store import GraphStore
from search import best_so_far, run_search
from search.generators import Answer, Prompt, Sampling
from search.outcome import SearchOutcome
from search.progress import Progress
from search.run import open_search, work
from search.scoring import speedup_of
from search.seconds import Stopwatch
from search.settings import SearchSettings
from search.strategies import STRATEGIES
from verify import Task

BUDGET = 41


def search(store: GraphStore, task: Task, strategy: str = "mcgs", seed: int = 1, **values: object) -> SearchOutcome:
    settings = SearchSettings.model_validate({"budget": BUDGET, **values})
    return run_search(
        task, generator=Scripted(), judge=FakeJudge(), store=store, strategy=strategy, settings=settings, seed=seed
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_equal_budgets_are_equal(strategy: str, store: GraphStore, task: Task) -> None:
    generator = Scripted()
    outcome = run_search(
        task, generator=generator, judge=FakeJudge(), store=store, strategy=strategy,
        settings=SearchSettings(budget=BUDGET), seed=3,
    )  # fmt: skip
    assert len(generator.calls) == outcome.calls == len(outcome.attempts) == BUDGET
    record = store.search(outcome.search)
    assert (record.calls, record.reserved, record.status) == (BUDGET, 0, SearchStatus.FINISHED)
    assert sum(outcome.verdicts.values()) == BUDGET
    assert all(edge.in_flight == 0 for edge in store.snapshot(outcome.search).edges)
    assert store.check() == []
    assert outcome.best is not None
    assert outcome.best.verdict.passed
    assert record.best_attempt == outcome.best.attempt


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_seed_walks_the_same_path(strategy: str, task: Task, tmp_path_factory: pytest.TempPathFactory) -> None:
    seen = []
    for seed in (5, 5, 6):
        url = f"sqlite:///{tmp_path_factory.mktemp('graph')}/graph.db"
        with open_store(load(), url=url, create=True) as store:
            store.merge_trajectories(trajectories())
            generator = Scripted()
            run_search(
                task, generator=generator, judge=FakeJudge(), store=store, strategy=strategy,
                settings=SearchSettings(budget=20), seed=seed,
            )  # fmt: skip
            seen.append(generator.calls)
    assert seen[0] == seen[1]
    assert seen[0] != seen[2]


def test_paper_mode_spends_its_budget_too(store: GraphStore, task: Task) -> None:
    outcome = search(store, task, mode="paper")
    assert outcome.calls == BUDGET
    states = store.snapshot(outcome.search).states
    assert sum(state.visits for state in states) > 0


def test_visits_on_edges_are_those_of_the_attempts(store: GraphStore, task: Task) -> None:
    outcome = search(store, task)
    edges = {(e.source, e.target): e for e in store.snapshot(outcome.search).edges}
    walked = {(a.source, a.target) for a in outcome.attempts if a.reward is not None}
    assert {key for key, edge in edges.items() if edge.visits} == walked
    best = max(a.reward for a in outcome.attempts if a.reward is not None)
    assert max(edge.best for edge in edges.values() if edge.best is not None) == best


def test_a_step_rewrites_the_code_its_parent_wrote(store: GraphStore, task: Task) -> None:
    outcome = search(store, task)
    by_id = {attempt.id: attempt for attempt in outcome.attempts}
    deep = [attempt for attempt in outcome.attempts if attempt.parent]
    assert deep
    for attempt in deep:
        parent = by_id[str(attempt.parent)]
        assert parent.verdict is not None
        assert parent.verdict.passed
        assert parent.target == attempt.source
    assert outcome.best is not None
    assert outcome.best.steps[0].parent is None
    assert all(after.parent == before.id for before, after in pairwise(outcome.best.steps))


@pytest.mark.parametrize("strategy", ["mcgs", "random", "rag"])
def test_nothing_of_the_task_itself_reaches_a_prompt(strategy: str, store: GraphStore, task: Task) -> None:
    secret = Step(method="one thread per element", detail="the answer", code="void saxpy() { the_answer(); }")
    own = Trajectory(task=task.name, author="t", function="saxpy", source=task.reference, steps=(secret,))
    renamed = own.model_copy(update={"task": "other", "author": "u"})
    store.merge_trajectories([own, renamed])
    generator = Scripted()
    run_search(task, generator=generator, judge=FakeJudge(), store=store, strategy=strategy, budget=15)
    assert not [text for text, _ in generator.calls if "the_answer" in text]


def test_what_was_learnt_flows_back_once(store: GraphStore, task: Task) -> None:
    outcome = search(store, task)
    learnt = {(t.before, t.after): t.statistics.return_count for t in store.transitions()}
    visits = sum(edge.visits for edge in store.snapshot(outcome.search).edges)
    assert sum(learnt.values()) == visits > 0
    store.roll_up(outcome.search)
    assert {(t.before, t.after): t.statistics.return_count for t in store.transitions()} == learnt
    assert all(t.statistics.return_count == 0 for t in store.transitions(without_task=task.name))


def test_correctness_alone_is_said_and_never_rolled_up(store: GraphStore, task: Task) -> None:
    outcome = run_search(task, generator=Scripted(), judge=FakeJudge(level=Level.FUNCTIONAL), store=store, budget=20)
    assert outcome.notes[0] == "speed not measured"
    assert outcome.best is not None
    assert outcome.best.speedup is None
    assert all(t.statistics.return_count == t.statistics.modelled_count == 0 for t in store.transitions())
    curve = best_so_far(outcome.attempts)
    assert len(curve) == 20
    assert curve[-1] == max(a.reward for a in outcome.attempts if a.reward is not None)


def test_modelled_speed_is_labelled_and_kept_apart(store: GraphStore, task: Task) -> None:
    outcome = run_search(task, generator=Scripted(), judge=FakeJudge(level=Level.MODELLED), store=store, budget=20)
    assert outcome.notes[0] == "speed modelled, not measured"
    sums = [t.statistics for t in store.transitions()]
    assert sum(s.modelled_count for s in sums) > 0 == sum(s.return_count for s in sums)


def test_the_best_three_are_timed_again(store: GraphStore, task: Task) -> None:
    judge = FakeJudge()
    outcome = run_search(task, generator=Scripted(), judge=judge, store=store, budget=BUDGET)
    passed = {a.code: a.speedup for a in outcome.attempts if a.speedup is not None}
    assert judge.fresh == sorted(passed, key=lambda code: -(passed[code] or 0.0))[:3]
    judge = FakeJudge()
    run_search(
        task, generator=Scripted(), judge=judge, store=store,
        settings=SearchSettings.model_validate({"mode": "paper", "budget": 20}),
    )  # fmt: skip
    assert judge.fresh == []


def test_fsr_feeds_the_best_kernel_and_the_errors_back(store: GraphStore, task: Task) -> None:
    generator = Scripted()
    run_search(
        task, generator=generator, judge=FakeJudge(), store=store, strategy="fsr", budget=30, gpu="NVIDIA H200, 132 SMs"
    )
    prompts = [text for text, _ in generator.calls]
    assert all("NVIDIA H200, 132 SMs" in text for text in prompts)
    assert len(set(prompts[:5])) == 1
    assert "## Last result" not in prompts[0]
    assert "times the baseline's speed" in prompts[5] or "wrong_result" in prompts[5]
    assert prompts[25] == prompts[0], "after five rounds it starts afresh"


def test_an_own_kernel_is_start_and_baseline(store: GraphStore, task: Task) -> None:
    generator = Scripted()
    outcome = run_search(
        task, generator=generator, judge=FakeJudge(), store=store, strategy="standard", budget=3,
        start_code="__global__ void mine() {}",
    )  # fmt: skip
    assert all("void mine()" in text for text, _ in generator.calls)
    assert store.search(outcome.search).settings["start"] == "kernel"


def test_an_empty_graph_is_refused_with_advice(task: Task, tmp_path: pytest.TempPathFactory) -> None:
    with open_store(load(), url=f"sqlite:///{tmp_path}/empty.db", create=True) as store:
        with pytest.raises(InputError, match="regraph ingest add"):
            run_search(task, generator=Scripted(), judge=FakeJudge(), store=store, budget=5)
        assert store.searches() == [], "a search that cannot begin leaves nothing"
        assert (
            run_search(task, generator=Scripted(), judge=FakeJudge(), store=store, strategy="cot", budget=5).calls == 5
        )


def test_early_stop(store: GraphStore, task: Task) -> None:
    outcome = search(store, task, early_stop=6, early_stop_gain=1000.0)
    assert outcome.calls < BUDGET
    assert "stopped after" in outcome.notes[-1]


@pytest.mark.parametrize("how", ["hangs", "raises", "faults"])
def test_a_failing_generator_stops_the_search_and_never_becomes_a_reward(
    how: str, store: GraphStore, task: Task
) -> None:
    values = {"budget": 20, "generator_seconds": 0.05, "retries": 0, "failures": 2}
    settings = SearchSettings.model_validate(values)
    generator = Faulty(how)
    with pytest.raises(EnvironmentFault, match="search resume"):
        run_search(task, generator=generator, judge=FakeJudge(), store=store, settings=settings)
    (record,) = store.searches()
    assert (record.status, record.reserved) == (SearchStatus.OPEN, 0)
    snapshot = store.snapshot(record.id)
    assert all(edge.visits == edge.in_flight == 0 for edge in snapshot.edges)
    assert all(a.reward is None and a.outcome == "failed" for a in store.attempts(record.id))


@pytest.mark.parametrize(("how", "said"), [("huge", "truncated"), ("nothing", "no_code")])
def test_useless_answers_cost_budget(how: str, said: str, store: GraphStore, task: Task) -> None:
    outcome = run_search(task, generator=Faulty(how), judge=FakeJudge(), store=store, budget=8)
    assert outcome.best is None
    assert outcome.verdicts == {said: 8}
    assert all(len(a.code) == 0 and a.reward == -1.0 for a in outcome.attempts)


def test_a_judge_that_fails_once_is_asked_again(store: GraphStore, task: Task) -> None:
    judge = FakeJudge(harness_errors=2)
    outcome = run_search(task, generator=Scripted(), judge=judge, store=store, budget=10)
    assert "harness_error" not in outcome.verdicts


def test_the_model_writes_while_the_store_is_asked(store: GraphStore, task: Task, monkeypatch: Any) -> None:
    second_begun = threading.Event()
    begin, begun = store.begin_rollout, []

    def counted(rollout: Rollout) -> int:
        begun.append(rollout)
        if len(begun) == 2:
            second_begun.set()
        return begin(rollout)

    class Slow(Scripted):
        def generate(self, prompt: Prompt, sampling: Sampling) -> Answer:
            assert second_begun.wait(60), "the second rollout waits for the first one's answer"
            return super().generate(prompt, sampling)

    monkeypatch.setattr(store, "begin_rollout", counted)
    outcome = run_search(
        task, generator=Slow(), judge=FakeJudge(), store=store, settings=SearchSettings(budget=12, retries=0)
    )
    assert "failed" not in outcome.verdicts


def test_an_error_while_writing_reaches_the_runner_and_gives_the_calls_back(store: GraphStore, task: Task) -> None:
    class Broken(FakeJudge):
        def submit(self, *_: Any, **__: Any) -> Future[Verdict]:
            raise InputError("the task is at fault.")

    with pytest.raises(InputError, match="at fault"):
        run_search(task, generator=Scripted(), judge=Broken(), store=store, budget=12)
    (record,) = store.searches()
    assert (record.calls, record.reserved, record.status) == (0, 0, SearchStatus.OPEN)


def test_each_second_is_counted_once_and_first_for_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("search.seconds.time", clock)
    now = 0.0
    watch = Stopwatch()
    with watch.measuring("search"):
        now = 1.0
        with watch.measuring("store"):
            now = 3.0
            with watch.writing():
                now = 7.0
            now = 15.0
        with watch.measuring("verify"):
            now = 31.0
    now = 63.0
    assert watch.report() == {"generate": 4.0, "verify": 16.0, "store": 10.0, "search": 1.0, "wait": 0.0, "total": 63.0}


def test_an_interrupted_search_goes_on(store: GraphStore, task: Task) -> None:
    settings = SearchSettings(budget=BUDGET)
    record = open_search(store, task, strategy="mcgs", model="scripted", level=Level.GPU, settings=settings, seed=2)

    def interrupt(progress: Progress) -> None:
        if progress.own_calls == 13:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(store, record, task, Scripted(), FakeJudge(), watcher=interrupt)
    halted = store.search(record.id)
    assert 0 < halted.calls <= 14
    assert halted.reserved == 0
    attempts = list(store.attempts(record.id))
    assert len(attempts) == halted.calls
    best = max(a.speedup or 0.0 for a in attempts)
    assert max(state.best_speedup or 0.0 for state in store.snapshot(record.id).states) == best, "a code was forgotten"
    work(store, halted, task, Scripted(), FakeJudge())
    assert store.search(record.id).calls == BUDGET
    assert all(edge.in_flight == 0 for edge in store.snapshot(record.id).edges)
    assert store.snapshot(record.id).root == ROOT


def test_a_resumed_search_is_the_uninterrupted_one(task: Task, tmp_path: Path) -> None:
    """Ended between two rollouts, again and again, one runner walks the path that it walks in one go."""
    walks = []
    for name, every in (("whole", 0), ("parts", 3)):
        with open_store(load(), url=f"sqlite:///{tmp_path}/{name}.db", create=True) as store:
            store.merge_trajectories(trajectories())
            settings = SearchSettings(budget=BUDGET, overlap=1)
            record = open_search(
                store, task, strategy="mcgs", model="scripted", level=Level.GPU, settings=settings, seed=2,
                search_id="the search",
            )  # fmt: skip
            runs = 0
            while (halted := store.search(record.id)).calls < BUDGET:
                runs += 1
                with suppress(KeyboardInterrupt):
                    work(cast(GraphStore, Interrupted(store, every)), halted, task, Scripted(), FakeJudge())
            assert runs == 1 if not every else runs > 3
            walks.append([(a.source, a.target, a.code, a.reward) for a in store.attempts(record.id)])
    assert walks[0] == walks[1]


class Interrupted:
    """A store whose caller is interrupted after every so many finished rollouts."""

    def __init__(self, store: GraphStore, every: int) -> None:
        self._store = store
        self._every = every
        self._finished = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def finish_rollout(self, result: RolloutResult) -> bool:
        done = self._store.finish_rollout(result)
        self._finished += 1
        if self._finished == self._every:
            raise KeyboardInterrupt
        return done


def test_a_modelled_speed_over_an_own_kernel_is_over_its_modelled_time() -> None:
    verdict = Verdict(verdict=VerdictKind.PASSED, level=Level.MODELLED, modelled_seconds=2.0, modelled_speedup=90.0)
    assert speedup_of(verdict, Level.MODELLED) == 90.0
    assert speedup_of(verdict, Level.MODELLED, baseline_seconds=3.0) == 1.5
    assert speedup_of(verdict, Level.GPU) is None
    assert speedup_of(verdict, Level.FUNCTIONAL) is None
