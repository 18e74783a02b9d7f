"""A generator with a deadline and a limited number of tries."""

from __future__ import annotations

import queue
import threading
import time

from search.generators import Answer, Generator, GeneratorFault, Prompt, Sampling

#: Seconds beyond an answer's own deadline before a generator counts as hanging, as a share of it and at least.
GRACE_SHARE, GRACE = 0.2, 2.0
#: Seconds before the second try; doubled for each further one.
BACKOFF = 0.5


def answer(
    generator: Generator, prompt: Prompt, sampling: Sampling, *, retries: int, backoff: float = BACKOFF
) -> Answer:
    """One answer, tried at most ``1 + retries`` times, each with its own seed.

    Raises :class:`GeneratorFault` when every try failed. A generator that hangs is left behind in its thread after the
    deadline; it is not tried again, for it still holds its lock.
    """
    for attempt in range(retries + 1):
        try:
            return _within_deadline(generator, prompt, sampling)
        except _Hangs:
            raise
        except GeneratorFault:
            if attempt == retries:
                raise
            time.sleep(backoff * 2**attempt)
    raise AssertionError


class _Hangs(GeneratorFault):
    pass


def _within_deadline(generator: Generator, prompt: Prompt, sampling: Sampling) -> Answer:
    results: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()

    def call() -> None:
        try:
            results.put(generator.generate(prompt, sampling))
        except BaseException as error:  # handed to the caller's thread
            results.put(error)

    threading.Thread(target=call, name="generator", daemon=True).start()
    try:
        result = results.get(timeout=sampling.seconds + max(GRACE, GRACE_SHARE * sampling.seconds))
    except queue.Empty:
        raise _Hangs(f"{generator.name} gave no answer within {sampling.seconds:g} seconds") from None
    if isinstance(result, GeneratorFault):
        raise result
    if isinstance(result, BaseException):
        raise GeneratorFault(f"{generator.name}: {type(result).__name__}: {result}") from result
    return result
