"""ReGraphT's search (arXiv 2510.19873): the core's decisions turned into prompts; and its random walk."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from regraph_db.records import Attempt, SearchSnapshot, State, VerdictKind
from search import prompt
from search.answer import Outcome
from search.core import Halted, Judged, Selection, Step, Tree, Walked, select, walk
from search.generators import Prompt
from search.generators.generator import example_forms
from search.strategies.ground import Standing, standing_of
from search.strategies.strategy import Ask, Plan, Rollout, Strategy

#: Characters of a failure that a repair prompt quotes.
_QUOTED = 1200


class GraphSearch(Strategy):
    """Monte Carlo Graph Search over the reasoning graph."""

    name = "mcgs"
    needs_transitions = True

    def plan(self, snapshot: SearchSnapshot, rng: Random) -> Plan:
        ground = self.ground
        tree = Tree.of(snapshot)
        selection = select(tree, ground.knowledge, ground.settings)
        for expansion in selection.expansions:
            ground.expand(expansion)
        states = {state.id: state for state in snapshot.states}

        def rollout(granted: int) -> Rollout:
            return self._walk(tree, selection, states, rng, granted)

        return Plan(ground.settings.step_cap, rollout, selection.path)

    def _walk(
        self,
        tree: Tree,
        selection: Selection,
        states: Mapping[str, State],
        rng: Random,
        granted: int,
        *,
        shared: bool = True,
    ) -> Rollout:
        """One rollout. ``shared``: a step starts from the best code that the search has at its state, not only from
        what this rollout itself wrote there."""
        ground = self.ground
        settings = ground.settings if shared else ground.settings.model_copy(update={"epsilon": 1.0})
        steps = walk(tree, selection, ground.knowledge, settings, rng, granted, through_failures=not shared)
        own: dict[str, Standing] = {}
        failed: Attempt | None = None
        try:
            step = next(steps)
            while True:
                standing = self._standing(step.source, own, states if shared else {})
                try:
                    (attempt,) = yield [self._ask(step, standing, failed if step.repair else None)]
                except Halted as halted:
                    steps.throw(halted)
                    raise
                failed = attempt
                if attempt.verdict is not None and attempt.verdict.passed:
                    known = own.get(step.target)
                    if known is None or standing_of(attempt).worth > known.worth:
                        own[step.target] = standing_of(attempt)
                step = steps.send(judged(attempt))
        except StopIteration as end:
            walked: Walked = end.value
            return walked

    def _standing(self, state: str, own: Mapping[str, Standing], states: Mapping[str, State]) -> Standing:
        fresh = own.get(state)
        stored = states.get(state)
        if stored is None or stored.best_attempt is None:
            return fresh or Standing(self.ground.search.start_code)
        known = self.ground.standing(stored)
        return fresh if fresh is not None and fresh.worth >= known.worth else known

    def _ask(self, step: Step, standing: Standing, failed: Attempt | None) -> Ask:
        ground = self.ground
        code, feedback = standing.code, ""
        if failed is not None and failed.code:
            code, feedback = failed.code, _words(failed)
        example = ground.example(step.before, step.after, code)
        detail = (example.detail if example else "") or ground.description(step.after)
        before, after = (example.before, example.after) if example else ("", "")
        forms = [
            (left_out, prompt.rewrite(step.after, detail, code, before=one, after=other, feedback=feedback))
            for left_out, one, other in example_forms(before, after)
        ]
        return Ask(
            Prompt(forms),
            code,
            source=step.source,
            target=step.target,
            technique=step.after,
            example=example.id if example else None,
            parent=standing.attempt,
            guide=standing.guide + ground.knowledge.gain(step.before, step.after),
        )


class RandomWalk(GraphSearch):
    """ReGraphT without MCGS: random walks from the sequential code, at most five attempts at a node."""

    name = "random"

    def plan(self, snapshot: SearchSnapshot, rng: Random) -> Plan:
        tree = Tree.rooted(snapshot.root)

        def rollout(granted: int) -> Rollout:
            return self._walk(tree, Selection((), False), {}, rng, granted, shared=False)

        settings = self.ground.settings  # a walk keeps nothing for the next one, so its attempts are no steps of it
        return Plan(settings.step_cap * settings.attempts_at_node, rollout)


def judged(attempt: Attempt) -> Judged:
    """What the core learns from an attempt. A refusal, an unchanged answer and code that the level cannot run mask the
    edge in the end; a failing generator or judge teaches nothing."""
    refused = attempt.outcome in (Outcome.UNSUITABLE, Outcome.UNCHANGED)
    if attempt.verdict is not None and attempt.verdict.verdict is VerdictKind.UNSUPPORTED:
        refused = True
    return Judged(attempt.reward, refused)


def _words(attempt: Attempt) -> str:
    """What the judge said, for a prompt."""
    if attempt.verdict is None:
        return attempt.outcome
    text = f"{attempt.verdict.verdict}: {attempt.verdict.reason or attempt.verdict.log}"
    return text[:_QUOTED]
