"""Runners as processes of their own, for tests that kill them.

``search_worker.py work STORE SEARCH STREAM`` is one runner. ``crash STORE SEARCH SEED`` forks pairs of runners and
kills them at random moments until most of the budget is spent; it prints how many it killed, and the best speedup seen.
``full STORE SEARCH`` is one runner whose files may not grow any more after some calls, which is what a full disk is; it
ends with the error's exit code.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from itertools import count
from pathlib import Path
from random import Random

from search_doubles import FakeJudge, Scripted

# Imported before any fork, so that a child is at its work at once.
import regraph_db.neo4j
import regraph_db.sqlite  # noqa: F401
from regraph_db.errors import RegraphError
from regraph_db.opening import open_store
from regraph_db.settings import load
from search.progress import Progress, Watcher
from search.run import work
from verify import load_task


def labour(url: str, search: str, stream: str, watcher: Watcher | None = None) -> None:
    """Work to the end of the budget."""
    with open_store(load(), url=url) as store:
        generator = Scripted(seconds=0.02)
        work(store, store.search(search), load_task("saxpy"), generator, FakeJudge(), stream=stream, watcher=watcher)


def crash(url: str, search: str, seed: str) -> None:
    rng = Random(int(seed))
    best, kills = 0.0, 0
    for number in count():
        with open_store(load(), url=url) as store:
            record = store.search(search)
            seen = max((a.speedup or 0.0 for a in store.attempts(search)), default=0.0)
        assert seen >= best, "the best kernel was lost"
        best = seen
        if record.calls >= 0.7 * record.budget:
            break
        pair = [_forked(url, search, f"{seed}.{number}.{k}") for k in range(2)]
        for child, pipe in pair:
            # Waiting for some calls, and not for a time alone, makes the test say as much on a slow machine.
            for _ in range(rng.randrange(1, 7)):
                os.read(pipe, 1)
            time.sleep(rng.uniform(0, 0.05))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(pipe)
            kills += 1
    sys.stdout.write(json.dumps({"kills": kills, "best": best}))


def _forked(url: str, search: str, stream: str) -> tuple[int, int]:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            labour(url, search, stream, lambda seen: seen.own_calls and os.write(writing, b".") and None)
        finally:
            os._exit(0)
    os.close(writing)
    return child, reading


def full(url: str, search: str) -> None:
    path = Path(url.removeprefix("sqlite:///"))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def fill(progress: Progress) -> None:
        if progress.own_calls == 12:
            largest = max(file.stat().st_size for file in path.parent.iterdir())
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    try:
        labour(url, search, "full", fill)
    except RegraphError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    {"work": labour, "crash": crash, "full": full}[sys.argv[1]](*sys.argv[2:])
