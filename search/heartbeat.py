"""A runner's sign of life."""

from __future__ import annotations

import logging
import threading

from regraph_db.errors import RegraphError
from regraph_db.records import Runner
from regraph_db.store import GraphStore

log = logging.getLogger(__name__)

#: Heartbeats in one lease.
BEATS = 4


class Heartbeat:
    """Renews the runner's lease from a thread of its own, while the runner waits for a model or a compiler."""

    def __init__(self, store: GraphStore, runner: Runner) -> None:
        self._store = store
        self._runner = runner
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(self._runner.lease / BEATS):
            try:
                self._store.heartbeat(self._runner.id)
            except RegraphError as error:
                log.warning("no heartbeat: %s", error)
