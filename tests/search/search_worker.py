"""A runner as a process of its own, for tests that kill it: ``search_worker.py STORE SEARCH STREAM``."""

from __future__ import annotations

import sys

from search_doubles import FakeJudge, Scripted

from regraph_db.settings import load
from regraph_db.store import open_store
from search.run import work
from verify import load_task


def main() -> None:
    url, search, stream = sys.argv[1:]
    with open_store(load(), url=url) as store:
        work(store, store.search(search), load_task("saxpy"), Scripted(seconds=0.02), FakeJudge(), stream=stream)


if __name__ == "__main__":
    main()
