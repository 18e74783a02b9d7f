"""What a strategy stands on: the task, the knowledge graph without this task's own answers, the search's codes so
far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from regraph_db.records import Attempt, Example, Search, State
from regraph_db.store import GraphStore
from search.core import Expansion, Knowledge, knowledge
from search.settings import SearchSettings
from verify import Task


@dataclass(frozen=True)
class Standing:
    """The code at a state."""

    code: str
    attempt: str | None = None  #: who wrote it; ``None`` is the start code
    worth: float = 0.0  #: its reward; the start code's is 0
    guide: float = 0.0  #: log2 gain that its techniques had on other tasks


class Ground:
    """The store as a strategy sees it. Everything that came from the searched task, or from its function, is left
    out."""

    def __init__(
        self, store: GraphStore, search: Search, task: Task, settings: SearchSettings, *, gpu: str = ""
    ) -> None:
        self.store = store
        self.search = search
        self.task = task
        self.settings = settings
        self.gpu = gpu
        self._known: Knowledge | None = None
        self._descriptions: dict[str, str] | None = None
        # What was read once is not asked for again: the budget bounds both.
        self._standings: dict[str, Standing] = {}
        self._examples: dict[tuple[str, str, str], Example | None] = {}

    @property
    def knowledge(self) -> Knowledge:
        """Which technique may follow which, read once."""
        if self._known is None:
            found = self.store.transitions(without_task=self.task.name)
            self._known = knowledge(found, self.settings, self.search.level)
        return self._known

    def description(self, technique: str) -> str:
        """The technique's own line, for an edge without an example."""
        if self._descriptions is None:
            self._descriptions = {t.name: t.description for t, _, _ in self.store.techniques()}
        return self._descriptions.get(technique, "")

    def expand(self, expansion: Expansion) -> None:
        self.store.expand(self.search.id, expansion.state, expansion.states, expansion.edges)

    def standing(self, state: State | None) -> Standing:
        """The best verified code at a state, the start code where there is none."""
        if state is None or state.best_attempt is None:
            return Standing(self.search.start_code)
        if state.best_attempt not in self._standings:
            self._standings[state.best_attempt] = standing_of(self.store.attempt(state.best_attempt))
        return self._standings[state.best_attempt]

    def example(self, before: str, after: str, code: str) -> Example | None:
        """The example for a step: the nearest one to ``code``, or the first, as the settings say."""
        key = before, after, code if self.settings.example == "nearest" else ""
        if key not in self._examples:
            found = self.store.examples(
                before, after, like=key[2], limit=1, without_task=self.task.name, without_function=self.task.function
            )
            self._examples[key] = found[0] if found else None
        return self._examples[key]

    def nearest(self, code: str) -> Example | None:
        """The example of the whole graph that is most like ``code``."""
        found = self.store.nearest_examples(
            code, limit=1, without_task=self.task.name, without_function=self.task.function
        )
        return found[0] if found else None

    def attempts(self) -> Iterator[Attempt]:
        return self.store.attempts(self.search.id)


def standing_of(attempt: Attempt) -> Standing:
    """The code of a passed attempt. Where no speed is known its reward is 1 + guide."""
    worth = attempt.reward if attempt.reward is not None else 0.0
    return Standing(attempt.code, attempt.id, worth, max(0.0, worth - 1.0) if attempt.speedup is None else 0.0)
