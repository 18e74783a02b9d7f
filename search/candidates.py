"""From an ask to an attempt: the model writes a candidate, the judge judges it, both with a limited number of tries."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Protocol, Self

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
    """What the model writes; then with the judge, where there is something to judge."""

    ask: Ask
    seed: int
    written: Future[Parsed] = field(default_factory=Future)
    generate_seconds: float = 0.0
    sent_at: float = 0.0
    verdict: Future[Verdict] | None = None
    judged_at: float | None = None

    def drop(self) -> None:
        """Nobody waits for it any more."""
        self.written.cancel()
        if self.verdict is not None:
            self.verdict.cancel()


class Workshop:
    """The generator and the judge of one runner. What fails there is tried again, and never becomes a reward.

    Candidates are written one by one in a thread of their own, in the order in which they were asked for: the model
    does not stand still while the runner waits for the judge or the store.
    """

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
        self._asked: SimpleQueue[Candidate | None] = SimpleQueue()

    def __enter__(self) -> Self:
        # A daemon: a model that hangs does not keep the process.
        threading.Thread(target=self._write_all, name="writing", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._asked.put(None)

    def write(self, ask: Ask, seed: int) -> Candidate:
        """One generator call, begun when those before it have ended."""
        candidate = Candidate(ask, seed)
        self._asked.put(candidate)
        return candidate

    def attempt(self, candidate: Candidate, rollout: str, index: int) -> Attempt:
        """The record of a candidate, when the model has written it and the judge has judged it."""
        ask = candidate.ask
        self.progress.doing = ""
        with self.watch.measuring("generate"):
            parsed = candidate.written.result()
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

    def _write_all(self) -> None:
        while (candidate := self._asked.get()) is not None:
            if candidate.written.set_running_or_notify_cancel():
                try:
                    candidate.written.set_result(self._write(candidate))
                except BaseException as error:  # handed to the runner's thread
                    candidate.written.set_exception(error)

    def _write(self, candidate: Candidate) -> Parsed:
        """The model's answer, its code with the judge."""
        ask = candidate.ask
        began = time.monotonic()
        self.progress.writing = ask.technique or "one prompt"
        with self.watch.writing():
            parsed = self._parsed(ask, candidate.seed)
        self.progress.writing = ""
        candidate.generate_seconds = time.monotonic() - began
        if parsed.outcome is Outcome.ANSWERED:
            candidate.sent_at = time.monotonic()
            candidate.verdict = self._submit(parsed.code)
            candidate.verdict.add_done_callback(lambda _: setattr(candidate, "judged_at", time.monotonic()))
        return parsed

    def _parsed(self, ask: Ask, seed: int) -> Parsed:
        settings = self.settings
        sampling = Sampling(seed, settings.temperature, settings.top_p, settings.max_tokens, settings.generator_seconds)
        try:
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
