"""Asking the teacher: several questions at once, with retries, within limits, and resumable."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.chat import Answer, Chat, PassingTrouble, Question
from ingest.reading import Draft, Rejection
from ingest.reading.answers import read_answer
from ingest.settings import IngestSettings
from ingest.teacher.prompt import teacher_prompt
from regraph_db.errors import EnvironmentFault, InputError
from regraph_db.records import content_id

if TYPE_CHECKING:
    from verify import Task

_LONGEST_WAIT = 60.0


@dataclass(frozen=True)
class Limits:
    """What may be spent; ``None`` is no limit. Prices are a provider's, in its currency for a million tokens."""

    tokens: int | None = None
    cost: float | None = None
    price_in: float = 0.0
    price_out: float = 0.0


@dataclass
class Spent:
    """What was spent, in all threads together."""

    limits: Limits = field(default_factory=Limits)
    questions: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    retries: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def cost(self) -> float:
        """In the currency of the prices."""
        return (self.tokens_in * self.limits.price_in + self.tokens_out * self.limits.price_out) / 1e6

    @property
    def reached(self) -> str:
        """Which limit is reached; "" while none is."""
        if self.limits.tokens is not None and self.tokens_in + self.tokens_out >= self.limits.tokens:
            return f"the limit of {self.limits.tokens:,} tokens"
        if self.limits.cost is not None and self.cost >= self.limits.cost:
            return f"the limit of {self.limits.cost:g} for the cost"
        return ""

    def add(self, answer: Answer) -> None:
        """Count one answer."""
        with self._lock:
            self.questions += 1
            self.tokens_in += answer.tokens_in
            self.tokens_out += answer.tokens_out

    def add_retry(self) -> None:
        """Count one further try."""
        with self._lock:
            self.retries += 1


class Teacher:
    """Asks a chat model for trajectories of tasks.

    Every answer is kept in ``folder`` as soon as it is there, under a name made of task, model, sampling and number,
    so that
    a killed run asks nothing twice. A limit is looked at before each question: those on their way may exceed it.
    """

    def __init__(
        self,
        chat: Chat,
        settings: IngestSettings,
        folder: Path,
        *,
        limits: Limits | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._chat = chat
        self._settings = settings
        self._folder = folder
        self._sleep = sleep
        self.spent = Spent(limits or Limits())

    def teach(self, tasks: Sequence[Task], samples: int) -> Iterator[Draft | Rejection]:
        """``samples`` trajectories of each task, as they come. What could not be had is a rejection that says why.

        Raises :class:`EnvironmentFault` for what no further question would mend, such as a refused key.
        """
        questions = ((task, number) for number in range(samples) for task in tasks)
        workers = self._settings.workers if self._chat.parallel else 1
        with ThreadPoolExecutor(workers, thread_name_prefix="teacher") as pool:
            waiting: set[Future[Draft | Rejection]] = set()
            try:
                for task, number in questions:
                    waiting.add(pool.submit(self._trajectory, task, number))
                    if len(waiting) >= 2 * workers:
                        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                        yield from (future.result() for future in done)
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            finally:
                for future in waiting:
                    future.cancel()

    def _trajectory(self, task: Task, number: int) -> Draft | Rejection:
        where = f"{self._chat.name} on {task.name}, sample {number + 1}"
        try:
            text, cut = self._answer(task, number)
        except _Stopped as stop:
            return Rejection(where, str(stop))
        read = read_answer(text, where)
        if isinstance(read, Rejection):
            return Rejection(where, read.reason + (", and it was cut at the token limit" if cut else ""), text)
        fields = {**read.fields, "task": task.name, "author": self._chat.name}
        repairs = read.repairs
        steps = fields["steps"]
        if cut and len(steps) > 1:
            # The step that the limit cut is not what the teacher meant; the ones before it are whole.
            fields["steps"], repairs = steps[:-1], (*repairs, "cut at the token limit: its last step left out")
        return Draft(where, fields, repairs, strict=False)

    def _answer(self, task: Task, number: int) -> tuple[str, bool]:
        """The answer's text, and whether it was cut; from the folder when it was asked before."""
        settings = self._settings
        prompt = teacher_prompt(task)
        key = content_id(
            "teacher", self._chat.name, prompt, settings.temperature, settings.top_p, settings.max_tokens, number
        )
        file = self._folder / f"{key}.json"
        known = _read(file)
        if known is not None:
            return str(known["text"]), bool(known["cut"])
        if self.spent.reached:
            raise _Stopped(f"not asked: {self.spent.reached} is reached")
        question = Question(prompt, settings.temperature, settings.top_p, settings.max_tokens)
        answer = self._patiently(question)
        self.spent.add(answer)
        _write(
            file,
            {"model": self._chat.name, "task": task.name, "sample": number, "text": answer.text, "cut": answer.cut},
        )
        return answer.text, answer.cut

    def _patiently(self, question: Question) -> Answer:
        """The answer, asking again after trouble that may pass, each time after twice the wait."""
        delay = self._settings.backoff
        for left in range(self._settings.retries, -1, -1):
            try:
                answer = self._chat.ask(question)
                if answer.text.strip():
                    return answer
                trouble: EnvironmentFault = PassingTrouble("an empty answer.", where=self._chat.name)
            except PassingTrouble as error:
                trouble = error
            if not left:
                raise _Stopped(f"no answer after {self._settings.retries + 1} tries: {trouble}")
            self.spent.add_retry()
            self._sleep(min(delay, _LONGEST_WAIT))
            delay *= 2
        raise _Stopped("no answer")


class _Stopped(Exception):
    """This question stays without an answer; others go on."""


def _read(file: Path) -> Mapping[str, object] | None:
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and {"text", "cut"} <= document.keys() else None


def _write(file: Path, document: Mapping[str, object]) -> None:
    """Whole or not at all: a kill in between leaves no half file under the name."""
    part = file.with_suffix(".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(document), "utf-8")
        part.replace(file)
    except OSError as error:
        raise InputError(
            f"an answer cannot be kept: {error.strerror}.",
            where=str(file),
            fix="Set the setting `cache` to a folder that is yours.",
        ) from None
