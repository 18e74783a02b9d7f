"""Baselines whose calls do not depend on each other: one shot, chain of thought, retrieval."""

from __future__ import annotations

from abc import abstractmethod
from random import Random

from regraph_db.records import SearchSnapshot
from search import prompt
from search.core import Walked
from search.generators import Prompt
from search.generators.generator import CODE_GRAMMAR, STEPS_GRAMMAR, example_forms
from search.strategies.strategy import Ask, Plan, Rollout, Strategy


class _Samples(Strategy):
    """Every call rewrites the start code anew; only the seed differs."""

    def plan(self, snapshot: SearchSnapshot, rng: Random) -> Plan:
        def rollout(granted: int) -> Rollout:
            yield [self.ask()]
            return Walked(calls=1)

        return Plan(1, rollout)

    @abstractmethod
    def ask(self) -> Ask: ...


class OneShot(_Samples):
    """The whole task in one prompt."""

    name = "standard"

    def ask(self) -> Ask:
        code = self.ground.search.start_code
        return Ask(Prompt([("", prompt.standard(code))], CODE_GRAMMAR), code)


class ChainOfThought(_Samples):
    """The steps named first, then applied, in one answer."""

    name = "cot"

    def ask(self) -> Ask:
        code = self.ground.search.start_code
        return Ask(Prompt([("", prompt.cot(code))], STEPS_GRAMMAR), code)


class Retrieval(_Samples):
    """One shot with the example of the whole graph that is most like the code."""

    name = "rag"

    def ask(self) -> Ask:
        code = self.ground.search.start_code
        example = self.ground.nearest(code)
        before, after = (example.before, example.after) if example else ("", "")
        forms = [
            (left_out, prompt.standard(code, before=one, after=other))
            for left_out, one, other in example_forms(before, after)
        ]
        return Ask(Prompt(forms, CODE_GRAMMAR), code, example=example.id if example else None)
