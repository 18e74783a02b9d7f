"""From an ask to an attempt: the model writes a candidate, the judge judges it, both with a limited number of tries."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from regraph_db.errors import EnvironmentFault
from regraph_db.records import Attempt, Level, Search, Verdict, VerdictKind, content_id
from search.answer import Outcome, Parsed, parse
from search.generators import Answer, Generator, GeneratorFault, Sampling
from search.patience import answer
from search.progress import Progress
from search.scoring import reward_of, speedup_of
from search.seconds import Stopwatch
from search.settings import SearchSettings
from search.strategies import Ask
from verify import Task

log = logging.getLogger(__name__)


class Judging(Protocol):
    """What a search needs of the judge; :class:`verify.Judge` is one."""

    def submit(
        self,
        task: Task | None,
        source: str,
        level: Level | None = None,
        *,
        baseline: str | None = None,
        fresh: bool = False,
    ) -> Future[Verdict]: ...


@dataclass
class Candidate:
    """What the model wrote; with the judge, where there is something to judge."""

    ask: Ask
    parsed: Parsed
    generate_seconds: float
    sent_at: float = 0.0
    verdict: Future[Verdict] | None = None
    judged_at: float | None = None

    def drop(self) -> None:
        """Nobody waits for the verdict any more."""
        if self.verdict is not None:
            self.verdict.cancel()


class Workshop:
    """The generator and the judge of one runner. What fails there is tried again, and never becomes a reward."""

    def __init__(
        self,
        search: Search,
        task: Task,
        generator: Generator,
        judge: Judging,
        settings: SearchSettings,
        progress: Progress,
        watch: Stopwatch,
        *,
        baseline: str | None = None,
        baseline_seconds: float | None = None,
    ) -> None:
        """``baseline`` and ``baseline_seconds`` are the user's own kernel and its modelled seconds, where there are."""
        self.search = search
        self.task = task
        self.generator = generator
        self.judge = judge
        self.settings = settings
        self.progress = progress
        self.watch = watch
        self.baseline = baseline
        self.baseline_seconds = baseline_seconds
        self.shortened: dict[str, int] = {}  #: what was left out of prompts that did not fit the context, how often
        self._failed_in_a_row = 0

    def write(self, ask: Ask, seed: int) -> Candidate:
        """One generator call; its code is with the judge when this returns."""
        began = time.monotonic()
        self.progress.doing = f"the model writes: {ask.technique or 'one prompt'}"
        parsed = self._parsed(ask, seed)
        candidate = Candidate(ask, parsed, time.monotonic() - began)
        if parsed.outcome is Outcome.ANSWERED:
            candidate.verdict = self._submit(parsed.code)
            candidate.sent_at = time.monotonic()
            candidate.verdict.add_done_callback(lambda _: setattr(candidate, "judged_at", time.monotonic()))
        return candidate

    def attempt(self, candidate: Candidate, rollout: str, index: int) -> Attempt:
        """The record of a candidate, when the judge has judged it."""
        ask, parsed = candidate.ask, candidate.parsed
        verdict, seconds = None, 0.0
        if candidate.verdict is not None:
            verdict = self._verdict(candidate.verdict, parsed.code)
            seconds = max(0.0, (candidate.judged_at or time.monotonic()) - candidate.sent_at)
        failed = parsed.outcome is Outcome.FAILED or (
            verdict is not None and verdict.verdict is VerdictKind.HARNESS_ERROR
        )
        self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
        speedup = speedup_of(verdict, self.search.level, self.baseline_seconds)
        return Attempt(
            id=content_id("attempt", rollout, index),
            search=self.search.id,
            rollout=rollout,
            index=index,
            source=ask.source,
            target=ask.target,
            technique=ask.technique,
            example=ask.example,
            parent=ask.parent,
            outcome=parsed.outcome,
            code=parsed.code,
            verdict=verdict,
            reward=reward_of(parsed.outcome, verdict, speedup, self.settings, ask.guide),
            speedup=speedup,
            generate_seconds=candidate.generate_seconds,
            verify_seconds=seconds,
        )

    def refuse_to_go_on(self) -> None:
        """Raise :class:`EnvironmentFault` when too many calls in a row failed."""
        if self._failed_in_a_row >= self.settings.failures:
            raise EnvironmentFault(
                f"{self._failed_in_a_row} calls in a row failed ({self.progress.note or 'see the log'}).",
                where=f"search {self.search.id}",
                fix=f"Mend it and go on with `regraph search resume {self.search.id[:8]}`.",
            )

    def _parsed(self, ask: Ask, seed: int) -> Parsed:
        settings = self.settings
        sampling = Sampling(seed, settings.temperature, settings.top_p, settings.max_tokens, settings.generator_seconds)
        try:
            with self.watch.measuring("generate"):
                written = answer(self.generator, ask.prompt, sampling, retries=settings.retries)
        except GeneratorFault as error:
            log.warning("the generator failed: %s", error)
            self.progress.note = f"the generator failed: {error}"
            return Parsed(Outcome.FAILED)
        self._say_what_was_left_out(written)
        limit = settings.answer_limit
        return parse(written.text[:limit], given=ask.given, cut=written.cut or len(written.text) > limit)

    def _say_what_was_left_out(self, written: Answer) -> None:
        if written.left_out:
            self.shortened[written.left_out] = self.shortened.get(written.left_out, 0) + 1
            self.progress.note = f"{written.left_out}: the prompt did not fit the context"
            log.info("%s: the prompt did not fit the model's context", written.left_out)

    def _submit(self, code: str, *, fresh: bool = False) -> Future[Verdict]:
        return self.judge.submit(self.task, code, self.search.level, baseline=self.baseline, fresh=fresh)

    def _verdict(self, judging: Future[Verdict], code: str) -> Verdict:
        self.progress.doing = "the judge compiles and runs"
        with self.watch.measuring("verify"):
            verdict = judging.result()
            for _ in range(self.settings.retries):
                if verdict.verdict is not VerdictKind.HARNESS_ERROR:
                    break
                log.warning("the judge failed and is asked again: %s", verdict.reason)
                verdict = self._submit(code, fresh=True).result()
        if verdict.verdict is VerdictKind.HARNESS_ERROR:
            self.progress.note = f"the judge failed: {verdict.reason}"
        return verdict
