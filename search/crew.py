"""Several runners on this machine: processes that share nothing but the store."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from typing import Any

from regraph_db.errors import RegraphError
from search.settings import SearchSettings

log = logging.getLogger(__name__)

#: Seconds that a runner gets to give its rollouts back when the search is interrupted.
FAREWELL = 20.0


@dataclass(frozen=True)
class Post:
    """What a runner's process needs to know; it opens everything itself."""

    store: str
    search: str
    task: str  #: name or folder
    model: str
    verify: dict[str, Any]  #: flags of the judge's settings
    threads: int  #: of the model


@contextlib.contextmanager
def hired(post: Post, streams: Sequence[str]) -> Iterator[list[SpawnProcess]]:
    """Start one runner for each stream; on leaving wait for them, or interrupt them when the block was interrupted.

    A runner that dies is no error: its unfinished rollouts come back when its lease ends.
    """
    context = multiprocessing.get_context("spawn")
    crew = [context.Process(target=labour, args=(post, stream), name=f"runner {stream}") for stream in streams]
    for process in crew:
        process.start()
    try:
        yield crew
    except BaseException:
        _send_home(crew)
        raise
    for process in crew:
        process.join()
        if process.exitcode:
            log.warning("%s ended with code %s; what it had begun is taken back", process.name, process.exitcode)


def _send_home(crew: Sequence[SpawnProcess]) -> None:
    for process in crew:
        if process.pid is not None and process.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)
    for process in crew:
        process.join(FAREWELL)
        if process.is_alive():
            process.kill()
            process.join()


def labour(post: Post, stream: str) -> None:
    """One runner from its start to the end of the budget: the body of a process."""
    from regraph_db.opening import open_store
    from regraph_db.settings import load, section
    from search.generators import open_generator
    from search.run import work
    from verify.judge import Judge
    from verify.settings import VerifySettings
    from verify.task import load_task

    try:
        settings = section("search", SearchSettings, {"threads": post.threads})
        with (
            open_store(load(), url=post.store) as store,
            Judge(section("verify", VerifySettings, post.verify)) as judge,
            contextlib.closing(open_generator(post.model, settings)) as generator,
        ):
            work(store, store.search(post.search), load_task(post.task), generator, judge, stream=stream)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except RegraphError as error:
        log.error("runner %s: %s", stream, error)
        raise SystemExit(error.exit_code) from None
