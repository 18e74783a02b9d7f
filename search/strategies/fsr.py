"""FSR, the loop of CUDA-LLM (arXiv 2506.09092): N candidates a round, the best one or the errors into the next prompt.

N and D are not published; both are settings. After D rounds it starts afresh, until the budget is spent, and returns
the best kernel that it ever saw rather than the last round's.
"""

from __future__ import annotations

from random import Random

from regraph_db.records import Attempt, Level, SearchSnapshot
from search import prompt
from search.core import Walked
from search.generators import Prompt
from search.generators.generator import CODE_GRAMMAR
from search.strategies.strategy import Ask, Plan, Rollout, Strategy

#: Failures quoted when no candidate of the rounds before was right, and characters of each.
_QUOTED, _CHARACTERS = 2, 500


class FeatureSearch(Strategy):
    """Rounds of candidates, each written from what the rounds before brought."""

    name = "fsr"
    interleaves = False

    def plan(self, snapshot: SearchSnapshot, rng: Random) -> Plan:
        def rollout(granted: int) -> Rollout:
            ask = self._ask()
            count = min(granted, self.ground.settings.fsr_candidates)
            yield [ask] * count
            return Walked(calls=count)

        return Plan(self.ground.settings.fsr_candidates, rollout)

    def _ask(self) -> Ask:
        ground = self.ground
        history = self._history()
        passed = [attempt for attempt in history if attempt.verdict is not None and attempt.verdict.passed]
        code, parent, feedback = ground.search.start_code, None, ""
        if passed:
            best = max(passed, key=lambda attempt: attempt.reward or 0.0)
            code, parent, feedback = best.code, best.id, self._praise(best)
        elif history:
            feedback = "\n".join(_complaint(attempt) for attempt in history[-_QUOTED:])
        text = prompt.fsr(code, f"Write {ground.task.function}: {ground.task.title}.", ground.gpu, feedback=feedback)
        bare = prompt.fsr(code, f"Write {ground.task.function}: {ground.task.title}.", ground.gpu)
        return Ask(Prompt([("", text), ("feedback dropped", bare)], CODE_GRAMMAR), code, parent=parent)

    def _history(self) -> list[Attempt]:
        """The attempts since the last fresh start, in order."""
        rounds: dict[str, list[Attempt]] = {}
        for attempt in self.ground.attempts():
            rounds.setdefault(attempt.rollout, []).append(attempt)
        done = list(rounds.values())
        current = done[len(done) - len(done) % self.ground.settings.fsr_rounds :]
        return [attempt for one in current for attempt in one]

    def _praise(self, best: Attempt) -> str:
        if best.speedup is None:
            return "passed; its speed was not measured"
        how = " (modelled)" if self.ground.search.level is Level.MODELLED else ""
        return f"passed, {best.speedup:.3g} times the baseline's speed{how}"


def _complaint(attempt: Attempt) -> str:
    verdict = attempt.verdict
    if verdict is None:
        return attempt.outcome
    return f"{verdict.verdict}: {verdict.reason or verdict.log}"[:_CHARACTERS]
