"""From a verdict to what a search learns: its speedup, its reward, and whether it is a gain."""

from __future__ import annotations

from regraph_db.records import Attempt, Level, Verdict, VerdictKind
from search.answer import Outcome
from search.core import FAILED, reward
from search.progress import better
from search.settings import SearchSettings


def speedup_of(verdict: Verdict | None, level: Level, baseline_seconds: float | None = None) -> float | None:
    """The speedup in the search's own kind of speed: measured at level ``gpu``, modelled at ``modelled``, else none.

    ``baseline_seconds`` are the *modelled* seconds of the user's own kernel, where that is the baseline: the judge's
    modelled speedup is over the sequential reference.
    """
    if verdict is None or not verdict.passed:
        return None
    if level is Level.GPU:
        return verdict.speedup.median if verdict.speedup is not None and verdict.speedup.median > 0 else None
    if level is not Level.MODELLED:
        return None
    if baseline_seconds is not None:
        return baseline_seconds / verdict.modelled_seconds if verdict.modelled_seconds else None
    return verdict.modelled_speedup


def reward_of(
    outcome: Outcome, verdict: Verdict | None, speedup: float | None, settings: SearchSettings, guide: float
) -> float | None:
    """The reward of an attempt; ``None`` where nothing was learnt about the candidate."""
    if outcome in (Outcome.NO_CODE, Outcome.TRUNCATED):
        return FAILED
    if verdict is None or verdict.verdict in (VerdictKind.HARNESS_ERROR, VerdictKind.UNSUPPORTED):
        return None
    return reward(speedup, settings, guide=guide) if verdict.passed else FAILED


def gains(attempt: Attempt, former: Attempt | None, share: float) -> bool:
    """Whether a new best is better by more than ``share``; the first correct candidate always is."""
    if former is None or attempt.speedup is None or former.speedup is None:
        return better(attempt, former)
    return attempt.speedup > former.speedup * (1 + share)
