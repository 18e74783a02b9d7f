"""The strategies, one interface, one budget unit: a generator call."""

from __future__ import annotations

from regraph_db.errors import InputError
from search.strategies.fsr import FeatureSearch
from search.strategies.ground import Ground
from search.strategies.mcgs import GraphSearch, RandomWalk
from search.strategies.samples import ChainOfThought, OneShot, Retrieval
from search.strategies.strategy import Ask, Plan, Strategy

STRATEGIES: dict[str, type[Strategy]] = {
    strategy.name: strategy for strategy in (GraphSearch, RandomWalk, Retrieval, OneShot, ChainOfThought, FeatureSearch)
}

__all__ = ["STRATEGIES", "Ask", "Ground", "Plan", "Strategy", "strategy_named"]


def strategy_named(name: str) -> type[Strategy]:
    """Raises :class:`InputError` for an unknown name."""
    if name not in STRATEGIES:
        raise InputError(f"unknown strategy `{name}`.", fix=f"Choose one of {', '.join(STRATEGIES)}.")
    return STRATEGIES[name]
