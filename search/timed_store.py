"""A store whose calls are counted in a stopwatch."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from regraph_db.store import GraphStore
from search.seconds import Stopwatch


class _Timed:
    """Passes every call on, counted as ``store``."""

    def __init__(self, store: GraphStore, watch: Stopwatch) -> None:
        self._store = store
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return self._counted(found) if callable(found) else found

    def _counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*args: Any, **named: Any) -> Any:
            with self._watch.measuring("store"):
                return method(*args, **named)

        return call


def timed(store: GraphStore, watch: Stopwatch) -> GraphStore:
    """``store`` with its calls counted; closing it is left to the owner of ``store``."""
    return cast(GraphStore, _Timed(store, watch))
