"""Runners that start while their candidate is still being compiled. Each serves one candidate and then ends."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from regraph_db.errors import InternalFault, RegraphError
from verify.private import PrivateFolder
from verify.sandbox import Limits
from verify.session import CandidateFault, Session

#: Seconds that a started runner may wait for its candidate; its own deadline must leave room for them.
OLDEST = 120.0
_START_SECONDS = 60.0


@dataclass(frozen=True)
class Kind:
    """What runners of one kind have in common."""

    limits: Limits
    parent: Path | None  #: where their private folders are made; ``None``: the system's temporary folder


@dataclass
class Warm:
    """A runner whose CUDA context stands, with the folder that it may write."""

    session: Session
    folder: Path
    sizes: dict[str, str]  #: what it said of the device, see :meth:`Session.hello`
    born: float
    _holder: PrivateFolder

    def __enter__(self) -> Warm:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the runner and remove its folder."""
        self.session.__exit__(None, None, None)
        self._holder.remove()

    @property
    def usable(self) -> bool:
        return self.session.alive and time.monotonic() - self.born < OLDEST


class WarmRunners:
    """Starts runners ahead of need: as many of a kind as its candidates that are expected, at most ``most`` in all.

    A runner is never used twice, so nothing that a candidate does to its process reaches the next one. ``start`` makes
    a session in a folder, ``sharing`` holds the GPU together with others, so that no timing is disturbed.
    """

    def __init__(
        self,
        start: Callable[[Path, Limits], Session],
        sharing: Callable[[], AbstractContextManager[None]],
        most: int,
    ) -> None:
        self._start = start
        self._sharing = sharing
        self._most = most
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="warm")
        self._lock = threading.Lock()
        self._idle: deque[tuple[Kind, Future[Warm]]] = deque()
        self._expected: Counter[Kind] = Counter()
        self._closed = False

    @contextmanager
    def expecting(self, kind: Kind, count: int = 1) -> Iterator[Ticket]:
        """Within, ``count`` runners of ``kind`` will be wanted; starting begins now."""
        ticket = Ticket(self, kind, count)
        self._expect(kind, count)
        try:
            yield ticket
        finally:
            self._expect(kind, -ticket.left)

    def close(self) -> None:
        """End every runner that nobody took."""
        with self._lock:
            self._closed = True
        self._trim()
        self._threads.shutdown(wait=True)

    def _expect(self, kind: Kind, count: int) -> None:
        with self._lock:
            self._expected[kind] += count
            if count > 0 and not self._closed:
                ready = sum(of == kind for of, _ in self._idle)
                room = self._most - len(self._idle)
                for _ in range(min(self._expected[kind] - ready, room)):
                    self._idle.append((kind, self._threads.submit(self._begin, kind)))
        self._trim()

    def take(self, kind: Kind) -> Warm:
        """A runner for one of the candidates that are expected. Raises :class:`InternalFault` when none starts."""
        waiting = self._pop(kind)
        self._expect(kind, -1)
        while waiting is not None:
            warm = waiting.result()
            if warm.usable:
                return warm
            warm.close()
            waiting = self._pop(kind)
        return self._begin(kind)

    def _pop(self, kind: Kind) -> Future[Warm] | None:
        with self._lock:
            found = next((entry for entry in self._idle if entry[0] == kind), None)
            if found is None:
                return None
            self._idle.remove(found)
            return found[1]

    def _trim(self) -> None:
        """End what no candidate of its kind waits for; the youngest of those is left, where there is room, and serves
        the next candidate."""
        surplus = []
        with self._lock:
            wanted = Counter() if self._closed else +self._expected
            for entry in list(self._idle):
                wanted[entry[0]] -= 1
                if wanted[entry[0]] < 0:
                    self._idle.remove(entry)
                    surplus.append(entry)
            if surplus and not self._closed and len(self._idle) < self._most:
                self._idle.append(surplus.pop())
        for _, future in surplus:
            future.add_done_callback(_end)

    def _begin(self, kind: Kind) -> Warm:
        holder = PrivateFolder(kind.parent)
        folder = holder.path
        try:
            with self._sharing():
                session = self._start(folder, kind.limits)
                try:
                    return Warm(session, folder, session.hello(_START_SECONDS), time.monotonic(), holder)
                except CandidateFault as fault:  # no candidate is there yet
                    session.__exit__(None, None, None)
                    raise InternalFault(f"the runner does not start: {fault.reason}. {fault.log}"[:800]) from None
                except BaseException:
                    session.__exit__(None, None, None)
                    raise
        except BaseException:
            holder.remove()
            raise


@dataclass
class Ticket:
    """The right to ``left`` runners of one kind."""

    runners: WarmRunners
    kind: Kind
    left: int
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self) -> Warm:
        """A runner that stands, used by nobody before. Raises :class:`InternalFault` when none can be started."""
        with self._lock:
            self.left -= 1
        return self.runners.take(self.kind)


def _end(future: Future[Warm]) -> None:
    with suppress(RegraphError):
        future.result().close()
