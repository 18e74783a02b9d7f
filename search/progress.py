"""What a runner tells whoever watches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from regraph_db.records import Attempt


@dataclass
class Progress:
    """The state of a search as one runner sees it; the same object is passed on every time."""

    budget: int
    calls: int = 0  #: of the whole search, as of the last look at the store
    own_calls: int = 0
    verdicts: Counter[str] = field(
        default_factory=Counter
    )  #: of this runner's attempts: verdicts, and outcomes without one
    best: Attempt | None = None  #: the best of this runner and of what it read from the store
    path: tuple[str, ...] = ()  #: techniques of the rollout that moved last
    best_path: tuple[str, ...] = ()  #: those that led to the best
    note: str = ""  #: something that a person should know, e.g. that an example did not fit
    writing: str = ""  #: the technique that the model writes just now
    doing: str = ""  #: what the runner waits for beside it

    def count(self, attempt: Attempt) -> None:
        """Take one finished attempt in."""
        self.own_calls += 1
        self.verdicts[said_of(attempt)] += 1
        if attempt.verdict is not None and attempt.verdict.passed and better(attempt, self.best):
            self.best = attempt


Watcher = Callable[[Progress], None]


def said_of(attempt: Attempt) -> str:
    """The verdict's name, or the outcome's where nothing was judged."""
    return str(attempt.verdict.verdict) if attempt.verdict is not None else str(attempt.outcome)


def better(one: Attempt, other: Attempt | None) -> bool:
    """Whether a passed attempt beats another: by speedup where it is known, else by reward; the earlier of equals
    stays."""
    return other is None or worth(one) > worth(other)


def worth(attempt: Attempt) -> tuple[float, float]:
    """What orders passed attempts: any speedup before none."""
    return (attempt.speedup or 0.0, attempt.reward if attempt.reward is not None else 0.0)
