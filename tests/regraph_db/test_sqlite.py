"""Faults of a SQLite store: each a clear error with its exit code, nothing damaged."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from regraph_db.errors import InputError, RegraphError, SchemaMismatch, StoreUnreachable, StoreUnusable
from regraph_db.opening import open_store
from regraph_db.records import Counts, Step, Technique, Trajectory
from regraph_db.settings import Settings
from regraph_db.sqlite import SqliteStore

QUICK = Settings(store_timeout=0.3)
ONE = Trajectory(task="saxpy", steps=(Step(method="tiling", code="x"),))


def opened(path: Path, *, create: bool = True) -> SqliteStore:
    return SqliteStore.open(f"sqlite:///{path}", QUICK, create=create)


def test_a_relative_url_is_a_file_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store(Settings(), create=True) as store:
        assert store.url == "sqlite:///regraph.db"
    assert (tmp_path / "regraph.db").exists()


@pytest.mark.parametrize("url", ["sqlite://regraph.db", "sqlite:///", "sqlite:///:memory:", "sqlite:///a\x00b"])
def test_a_url_without_a_file_is_refused(url: str) -> None:
    with pytest.raises(InputError):
        open_store(Settings(), url=url, create=True)


@pytest.mark.parametrize("name", ["a b?c#d%20.db", "ż 漢.db"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    with opened(tmp_path / name) as store:
        store.merge_trajectories([ONE])
    assert {path.name for path in tmp_path.iterdir()} == {name}


def test_a_missing_graph_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="db init"):
        opened(tmp_path / "none.db", create=False)
    with pytest.raises(StoreUnusable, match="folder is not there"):
        opened(tmp_path / "no folder" / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_has_to_be_migrated(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(SchemaMismatch, match="db init"):
        opened(tmp_path / "empty.db", create=False)
    with opened(tmp_path / "empty.db") as store:
        assert (store.schema_version(), store.migrate(), store.counts()) == (1, [], Counts())


def test_another_programs_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    before = path.read_bytes()
    for create in (False, True):
        with pytest.raises(StoreUnusable, match="another program"):
            opened(path, create=create)
    assert path.read_bytes() == before


def test_a_newer_graph_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    opened(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'tomorrow', '')")
        connection.commit()
    for create in (False, True):
        with pytest.raises(SchemaMismatch, match=r"newer regraph.*99"):
            opened(path, create=create)


@pytest.mark.parametrize("content", [b"This is a text.\n" * 100, b"SQLite format 3\x00" + b"\xff" * 8192])
def test_a_corrupt_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "corrupt.db"
    path.write_bytes(content)
    with pytest.raises(StoreUnusable) as caught:
        opened(path, create=False)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_a_page_damaged_later_is_named_and_the_rest_still_reads(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with opened(path) as store:
        store.merge_trajectories([ONE.model_copy(update={"author": str(i), "source": "x" * 3000}) for i in range(50)])
    with path.open("r+b") as stream:
        stream.seek(path.stat().st_size // 2)
        stream.write(b"\xff" * 4096 * 8)
    with opened(path, create=False) as store, pytest.raises(StoreUnusable, match="damaged"):
        list(store.trajectories())


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable):
        opened(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; see the test with another user")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreUnusable, match="permission"):
        opened(tmp_path / "graph.db")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_without_permission_is_told(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    opened(path).close()
    path.chmod(0o444)
    for folder in (tmp_path, *list(tmp_path.parents)[:3]):
        folder.chmod(0o755)
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            with opened(path, create=False) as store:
                store.put_techniques([Technique(name="x")])
        except StoreUnusable as error:
            status = 0 if "write permission" in str(error) or "may write" in str(error) else 2
        finally:
            os._exit(status)
    _, ended = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended) == 0


def test_a_locked_file_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "graph.db"
    with opened(path) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnreachable, match="locked") as caught:
            store.merge_trajectories([ONE])
        assert caught.value.exit_code == 3
        assert store.counts().trajectories == 0
        other.execute("ROLLBACK")
        assert store.merge_trajectories([ONE]).merged == 1


def test_a_full_disk_loses_nothing_acknowledged(tmp_path: Path) -> None:
    with opened(tmp_path / "graph.db") as store:
        store.merge_trajectories([ONE])
        (pages,) = store._raw().execute("PRAGMA page_count").fetchone()
        store._raw().execute(f"PRAGMA max_page_count = {pages + 20}")
        large = ONE.model_copy(update={"source": "x" * 1_000_000})
        with pytest.raises(StoreUnusable, match="full"):
            store.merge_trajectories([large])
        assert [t.id for t in store.trajectories()] == [ONE.id]
        assert store.check() == []


def test_a_file_size_limit_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """A real write that the system refuses, in a process of its own: RLIMIT_FSIZE is what a full disk is to SQLite."""
    script = """
import resource, signal, sys
from regraph_db.errors import StoreUnusable
from regraph_db.records import Step, Trajectory
from regraph_db.settings import Settings
from regraph_db.opening import open_store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = open_store(Settings(), url=sys.argv[1], create=True)
store.merge_trajectories([Trajectory(task="kept", steps=(Step(method="tiling", code="x"),))])
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    store.merge_trajectories([Trajectory(source="x" * 2_000_000, steps=(Step(method="tiling", code="x"),))])
except StoreUnusable as error:
    sys.exit(7 if error.exit_code == 3 else 8)
"""
    url = f"sqlite:///{tmp_path}/graph.db"
    assert subprocess.run([sys.executable, "-c", script, url], check=False).returncode == 7
    with open_store(Settings(), url=url) as store:
        assert [t.task for t in store.trajectories()] == ["kept"]
        assert store.check() == []


def test_threads_share_one_store(tmp_path: Path) -> None:
    with SqliteStore.open(f"sqlite:///{tmp_path}/graph.db", Settings(), create=True) as store:

        def merge(number: int) -> None:
            for each in range(10):
                store.merge_trajectories([ONE.model_copy(update={"author": f"{number}.{each}"})])

        threads = [threading.Thread(target=merge, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.counts().trajectories == store.counts().examples == 40


def test_a_forked_child_writes_on_a_connection_of_its_own(tmp_path: Path) -> None:
    with opened(tmp_path / "graph.db") as store:
        child = os.fork()
        if not child:
            status = 1
            try:
                store.merge_trajectories([ONE])
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        assert status == 0
        assert store.counts().trajectories == 1


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = opened(tmp_path / "graph.db")
    store.close()
    store.close()
    with pytest.raises(RegraphError, match="closed"):
        store.counts()
