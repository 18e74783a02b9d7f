"""``GraphStore``: the one contract of every store (:func:`regraph_db.opening.open_store` opens one).

The knowledge half of the graph is a pure function of two sets: the trajectories, and the aliases. Techniques,
transitions and their statistics follow from them, in whatever order they were written. The search half is sums on
edges, changed only by increments that carry an id.

Every method may be called from several threads and processes at once. Every write is one transaction: it happens
whole or not at all, it is durable when the method returns, and repeating it (the same ids) changes nothing. What is
returned are frozen records that the caller owns. Text is kept byte for byte; a NUL byte is refused with
:class:`InputError` naming the field.

Errors of every method: :class:`StoreUnreachable` after ``settings.store_timeout`` seconds of retrying,
:class:`StoreUnusable`, :class:`SchemaMismatch`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from regraph_db.derive import Trust
from regraph_db.records import (
    Alias,
    Attempt,
    Counts,
    Example,
    ExploredEdge,
    MergeReport,
    Problem,
    Rollout,
    RolloutResult,
    Runner,
    Search,
    SearchSnapshot,
    State,
    Technique,
    Trajectory,
    Transition,
)


class GraphStore(AbstractContextManager["GraphStore"], ABC):
    """The reasoning graph and the searches that walk it."""

    #: The URL it was opened by, without credentials.
    url: str

    # -- life ------------------------------------------------------------------------------------------------

    @abstractmethod
    def migrate(self) -> list[str]:
        """Bring the schema up to this program's; the names of the migrations that ran. Idempotent."""

    @abstractmethod
    def schema_version(self) -> int:
        """The number of the last migration that ran here; 0 for a store without a schema."""

    @abstractmethod
    def close(self) -> None:
        """Give back connections and files. Safe to call twice."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- knowledge: writing ----------------------------------------------------------------------------------

    @abstractmethod
    def put_techniques(self, techniques: Sequence[Technique]) -> None:
        """Add or update techniques by name. A description that is empty does not overwrite one that is not."""

    @abstractmethod
    def put_aliases(self, aliases: Sequence[Alias], *, replace: bool = False) -> None:
        """Record relabel decisions. An alias that is already decided stays as it is unless ``replace``; the graph
        follows at once: every step whose method it names moves to its technique, with counts, sums and transitions.

        Raises :class:`InputError` when a chain of aliases would close into a loop, or the alias or technique is the
        root.
        """

    @abstractmethod
    def revoke_alias(self, alias: str) -> Alias | None:
        """Take one decision back; the graph is then as if it had never been made. ``None`` when there was none."""

    @abstractmethod
    def merge_trajectories(self, trajectories: Sequence[Trajectory], aliases: Sequence[Alias] = ()) -> MergeReport:
        """Merge a batch, and the aliases decided for it (as :meth:`put_aliases`), in one transaction, each trajectory
        exactly once by its id. One that is known already replaces what stands there when its verdicts reach further
        (:func:`regraph_db.derive.trust`). The technique of a step is ``resolve(normalise(method))`` over the aliases,
        else the normalised method itself. Order, batching and the number of writers do not change the resulting
        graph."""

    # -- knowledge: reading ----------------------------------------------------------------------------------

    @abstractmethod
    def techniques(self) -> list[tuple[Technique, int, int]]:
        """Every technique with its number of examples (steps that apply it) and of trajectories, by name."""

    @abstractmethod
    def aliases(self, *, review: bool | None = None) -> list[Alias]:
        """Every alias by name; with ``review`` only those whose flag is that."""

    @abstractmethod
    def transitions(self, before: str | None = None, *, without_task: str | None = None) -> list[Transition]:
        """The transitions out of technique ``before`` (all of them for ``None``), by name. With ``without_task`` the
        statistics leave out everything that came from that task, and transitions left with nothing are not listed."""

    @abstractmethod
    def examples(
        self,
        before: str,
        after: str,
        *,
        like: str = "",
        limit: int = 1,
        without_task: str | None = None,
        without_function: str | None = None,
    ) -> list[Example]:
        """At most ``limit`` examples of a transition whose ``before`` code is most like ``like`` (cosine of
        :func:`regraph_db.vectors.vector`), ties by id; by id alone when ``like`` is empty. Steps whose verdict is
        known and not ``passed`` are never examples."""

    @abstractmethod
    def nearest_examples(
        self, like: str, *, limit: int = 1, without_task: str | None = None, without_function: str | None = None
    ) -> list[Example]:
        """As :meth:`examples`, over all transitions (the ``rag`` baseline)."""

    @abstractmethod
    def trajectories(self, *, task: str | None = None) -> Iterator[Trajectory]:
        """Every trajectory as it was ingested, by id, in constant memory."""

    @abstractmethod
    def known_trajectories(self, ids: Sequence[str]) -> dict[str, Trust]:
        """Those of these ids that the graph holds already, each with how far it was verified."""

    @abstractmethod
    def counts(self) -> Counts: ...

    # -- search ----------------------------------------------------------------------------------------------

    def expect_search(self) -> None:
        """A search is about to begin: get ready for it in the background, where that saves time. Never raises."""

    @abstractmethod
    def open_search(self, search: Search, root: State) -> Search:
        """Create the search with its root state, or return the stored one if the id is there already."""

    @abstractmethod
    def expand(self, search: str, state: str, states: Sequence[State], edges: Sequence[ExploredEdge]) -> None:
        """Unfold a state: add states and edges that are not there (their sums start at nothing) and mark it
        expanded."""

    @abstractmethod
    def snapshot(self, search: str) -> SearchSnapshot:
        """Everything that selection reads, in one round trip. Raises :class:`NotFound`."""

    @abstractmethod
    def join(self, runner: Runner) -> None:
        """Register a runner; its heartbeat starts now."""

    @abstractmethod
    def heartbeat(self, runner: str) -> None:
        """The runner lives: its lease starts again."""

    @abstractmethod
    def begin_rollout(self, rollout: Rollout) -> int:
        """Count the rollout as in flight on each edge of its path and reserve calls of the budget: at most those
        asked for and those left. The number granted; 0 means that the budget is spent (or wholly reserved) and
        nothing was begun."""

    @abstractmethod
    def finish_rollout(self, result: RolloutResult) -> bool:
        """Add a rollout's returns, states, edges and attempts, release what it held, in one atomic step; exactly once
        by its id. ``False`` when it had finished before, or its lease had ended and it was taken back: nothing is
        added then except, for the latter, its attempts (work is never lost)."""

    @abstractmethod
    def reclaim(self) -> int:
        """Take back the rollouts of runners whose lease has ended; how many."""

    @abstractmethod
    def finish_search(self, search: str, *, best_attempt: str | None, summary: dict[str, Any]) -> None:
        """Mark it finished with its answer."""

    @abstractmethod
    def extend_search(self, search: str, budget: int) -> None:
        """Set a larger budget and open it again (``search resume --budget``)."""

    @abstractmethod
    def searches(self) -> list[Search]:
        """Newest first."""

    @abstractmethod
    def search(self, search: str) -> Search:
        """Raises :class:`NotFound`; a unique prefix of an id is enough."""

    @abstractmethod
    def attempts(self, search: str) -> Iterator[Attempt]:
        """In the order they were written, in constant memory."""

    @abstractmethod
    def attempt(self, attempt: str) -> Attempt: ...

    @abstractmethod
    def runners(self, search: str) -> list[Runner]: ...

    @abstractmethod
    def delete_search(self, search: str) -> None:
        """Remove a search with its states, edges, attempts and runners; what it rolled up stays."""

    @abstractmethod
    def roll_up(self, search: str) -> int:
        """Add its edges' visits and value sums to the transitions between their techniques, under the search's task;
        measured and modelled ones apart, ``functional`` ones not at all. Idempotent; how many transitions it
        touched."""

    # -- care ------------------------------------------------------------------------------------------------

    @abstractmethod
    def check(self) -> list[Problem]:
        """Every broken invariant, by name."""

    @abstractmethod
    def repair(self) -> list[Problem]:
        """Derive again what can be derived (counts, sums, transitions, leases); the problems that were mended."""

    @abstractmethod
    def dump(self) -> Iterator[dict[str, Any]]:
        """Everything, as portable JSON objects ``{"kind": …, …}``, in an order that :meth:`load` accepts, in constant
        memory."""

    @abstractmethod
    def load(self, objects: Iterable[dict[str, Any]]) -> int:
        """Write what :meth:`dump` gave, idempotently; how many objects."""
