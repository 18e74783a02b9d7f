"""Kernels out: Monte Carlo Graph Search over the reasoning graph, its baselines, generators and runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from search.outcome import SearchOutcome, best_so_far
    from search.run import run_search

__all__ = ["SearchOutcome", "best_so_far", "run_search"]


def __getattr__(name: str) -> Any:
    """The library face, imported when it is asked for: commands and prompts must stay light."""
    if name == "run_search":
        from search.run import run_search

        return run_search
    if name in ("SearchOutcome", "best_so_far"):
        from search import outcome

        return getattr(outcome, name)
    raise AttributeError(name)
