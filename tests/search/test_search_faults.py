"""What goes wrong around a search: the store goes away, the disk is full, the clock is set back."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from search_doubles import FakeJudge, Scripted, trajectories

from regraph_db.errors import StoreUnreachable
from regraph_db.neo4j import Neo4jStore
from regraph_db.opening import open_store
from regraph_db.records import Level, Rollout, Runner, Search
from regraph_db.settings import Settings
from regraph_db.store import GraphStore
from search.progress import Progress
from search.run import open_search, work
from search.settings import SearchSettings
from verify import Task

HERE = Path(__file__).parent
BUDGET = 20


class Line:
    """A line to a server that can be cut: while it is, every call is taken and hung up at once."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._guard = threading.Condition()
        self._cut = False
        self._refused = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        with self._guard:
            self._cut, self._refused = True, 0
            while self._open:
                hang_up(self._open.pop())

    def mend(self) -> None:
        with self._guard:
            self._cut = False

    def wait_for_calls(self, number: int) -> None:
        """Until so many calls were refused since the cut."""
        with self._guard:
            assert self._guard.wait_for(lambda: self._refused >= number, 300), "nobody called"

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                with self._guard:
                    if self._cut:
                        hang_up(near)
                        self._refused += 1
                        self._guard.notify_all()
                        continue
                    far = socket.create_connection(self._server)
                    self._open += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=_carry, args=ends, daemon=True).start()


def hang_up(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def line(neo4j_server: Any) -> Iterator[Line]:
    address = urlsplit(neo4j_server.uri)
    opened = Line(str(address.hostname), int(address.port or 7687))
    yield opened
    opened.close()


def over(line: Line, server: Any, seconds: float) -> GraphStore:
    """The server's store at the other end of the line, given up after so many seconds."""
    settings = Settings(neo4j_password=server.password, store_timeout=seconds)
    store = open_store(settings, url=f"bolt://127.0.0.1:{line.port}", create=True)
    store.merge_trajectories(trajectories())
    return store


def opened(store: GraphStore, task: Task, **values: object) -> Search:
    settings = SearchSettings.model_validate({"budget": BUDGET, "lease": 4.0, **values})
    return open_search(store, task, strategy="mcgs", model="scripted", level=Level.GPU, settings=settings, seed=3)


def assert_whole(store: GraphStore, search: str) -> None:
    """The budget is spent, once; nothing is left in flight; nothing is broken."""
    record = store.search(search)
    assert (record.calls, record.reserved) == (BUDGET, 0)
    assert len({attempt.id for attempt in store.attempts(search)}) >= BUDGET
    assert all(edge.in_flight == 0 for edge in store.snapshot(search).edges)
    assert store.check() == []


@pytest.mark.neo4j
@pytest.mark.slow
def test_a_store_that_comes_back_is_waited_for(line: Line, neo4j_server: Any, task: Task) -> None:
    with over(line, neo4j_server, 300) as store:
        record = opened(store, task)

        def cut(progress: Progress) -> None:
            if progress.own_calls == 8:
                line.cut()
                threading.Thread(target=lambda: (line.wait_for_calls(3), line.mend())).start()

        work(store, record, task, Scripted(), FakeJudge(), watcher=cut)
        assert_whole(store, record.id)


@pytest.mark.neo4j
def test_a_store_that_stays_away_ends_the_runner_and_the_search_goes_on_later(
    line: Line, neo4j_server: Any, task: Task
) -> None:
    with over(line, neo4j_server, 1.0) as store:
        record = opened(store, task)

        def cut(progress: Progress) -> None:
            if progress.own_calls == 8:
                line.cut()

        with pytest.raises(StoreUnreachable, match="does not answer"):
            work(store, record, task, Scripted(), FakeJudge(), watcher=cut)
        line.mend()
        halted = store.search(record.id)
        assert 0 < halted.calls <= 8
        work(store, halted, task, Scripted(), FakeJudge(), stream="again")
        assert_whole(store, record.id)


def test_a_full_disk_ends_the_runner_and_the_search_goes_on_later(
    store: GraphStore, store_url: str, task: Task
) -> None:
    record = opened(store, task)
    argv = [sys.executable, str(HERE / "search_worker.py"), "full", store_url, record.id]
    ended = subprocess.run(argv, cwd=HERE, capture_output=True, text=True, check=False, timeout=200)
    assert ended.returncode == 3, ended.stderr
    assert "Free some space" in ended.stderr or "disk" in ended.stderr
    assert 0 < store.search(record.id).calls < BUDGET
    work(store, store.search(record.id), task, Scripted(), FakeJudge(), stream="again")
    assert_whole(store, record.id)


def abandoned(store: GraphStore, search: Search) -> None:
    """A runner that holds a rollout of ten calls, and is heard of no more."""
    store.join(Runner(id=f"dead {search.id}", search=search.id, lease=1.0))
    assert store.begin_rollout(
        Rollout(id=f"lost {search.id}", search=search.id, runner=f"dead {search.id}", path=(), calls=10)
    )


def test_a_clock_set_back_keeps_no_dead_runner_alive(
    store: GraphStore, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's leases go by this machine's clock."""
    clock = [1_000_000.0]
    monkeypatch.setattr("regraph_db.sqlite.search.time", SimpleNamespace(time=lambda: clock[0]))
    record = opened(store, task)
    abandoned(store, record)
    assert store.reclaim() == 0
    clock[0] -= 3600
    assert store.reclaim() == 1
    assert store.search(record.id).reserved == 0


@pytest.mark.neo4j
def test_a_servers_clock_set_back_keeps_no_dead_runner_alive(neo4j_server: Any, task: Task) -> None:
    """Neo4j's leases go by the server's clock; what it would have written an hour ahead is written by hand."""
    with open_store(Settings(neo4j_password=neo4j_server.password), url=neo4j_server.uri, create=True) as store:
        assert isinstance(store, Neo4jStore)
        record = opened(store, task)
        abandoned(store, record)
        with store._open_driver().session() as session:
            ahead = "MATCH (r:Runner {id: $id}) SET r.heartbeat_at = r.heartbeat_at + 3600 * 1000000"
            session.run(ahead, id=f"dead {record.id}").consume()
        store.reclaim()
        assert store.search(record.id).reserved == 0
        store.delete_search(record.id)
