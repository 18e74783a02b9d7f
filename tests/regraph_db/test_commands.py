"""``regraph db`` and ``regraph technique`` as a person calls them: output, JSON shapes, exit codes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from regraph_db.opening import open_store
from regraph_db.records import Alias, State, Step, TaskReference, Technique, Trajectory
from regraph_db.records import Search as SearchRecord
from regraph_db.settings import Settings
from regraph_db.store import GraphStore

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``regraph …`` in a folder of the test's own."""

    def one(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("REGRAPH_")}
        command = [sys.executable, "-c", "from regraph_db.cli import main; main()", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return one


def steps(*methods: str) -> tuple[Step, ...]:
    return tuple(Step(method=method, code=f"code of {method}") for method in methods)


def fill(store: GraphStore, *, trajectories: int = 2) -> None:
    store.put_techniques([Technique(name="tensor cores", description="matrix units", shipped=True)])
    store.merge_trajectories(
        [Trajectory(task="saxpy", author=str(i), steps=steps("tile it", "unrolling")) for i in range(trajectories)],
        [Alias(alias="tile it", technique="tiling", author="model:small", score=0.5, review=True)],
    )
    search = SearchRecord(id="s1", task=TaskReference(name="saxpy", hash="h"), level="gpu", budget=9)
    store.open_search(search, State(id="root", technique="init"))


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    with open_store(Settings(), url=f"sqlite:///{tmp_path}/regraph.db", create=True) as store:
        fill(store)
    return tmp_path


def document(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_init_makes_a_graph_once(run: Run, tmp_path: Path) -> None:
    for _ in range(2):
        assert document(run("db", "init", "--json")) == {"store": "sqlite:///regraph.db", "schema": 1}
    assert "schema 1, ready" in run("db", "init").stdout
    assert (tmp_path / "regraph.db").exists()


def test_status_counts(run: Run, filled: Path) -> None:
    assert document(run("db", "status", "--json")) == {
        "store": "sqlite:///regraph.db",
        "schema": 1,
        "techniques": 3,
        "aliases": 1,
        "trajectories": 2,
        "steps": 4,
        "transitions": 2,
        "examples": 4,
        "searches": 1,
        "attempts": 0,
    }
    assert "trajectories  2" in run("db", "status").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("db", "status"), 3, "db init"),
        (("db", "status", "--store", "mongo://x"), 2, "unknown store scheme"),
        (("db", "status", "--store", "sqlite:///no/such/folder/x.db"), 3, "db init"),
        (("db", "init", "--store", "sqlite:///no/such/folder/x.db"), 3, "folder is not there"),
        (("db", "import", "missing.jsonl"), 2, "missing.jsonl"),
        (("db", "nonsense"), 2, "nonsense"),
    ],
)
def test_an_error_is_one_paragraph_with_its_exit_code(
    run: Run, arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert words in run(*arguments, code=code).stderr


def _corrupt(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 8192)


def _newer(path: Path) -> None:
    open_store(Settings(), url=f"sqlite:///{path}", create=True).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'tomorrow', '')")
        connection.commit()


def _of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")


@pytest.mark.parametrize(
    ("damage", "words"),
    [(_corrupt, "SQLite"), (_newer, "newer regraph"), (_of_another_program, "another program"), (Path.mkdir, "SQLite")],
    ids=["corrupt", "newer", "another program's", "a folder"],
)
def test_an_unusable_file_is_told_and_left_as_it_was(
    run: Run, tmp_path: Path, damage: Callable[[Path], None], words: str
) -> None:
    path = tmp_path / "regraph.db"
    damage(path)
    before = path.read_bytes() if path.is_file() else None
    for command in ("status", "init", "check"):
        assert words in run("db", command, code=3).stderr
    assert before is None or path.read_bytes() == before


@pytest.mark.neo4j
def test_a_servers_refusal_and_silence_are_told(run: Run, neo4j_url: str) -> None:
    error = run("db", "status", "--store", neo4j_url, code=3).stderr
    assert "refuses the credentials" in error
    assert "REGRAPH_NEO4J_PASSWORD" in error
    assert "does not answer" in run("db", "status", "--store", "bolt://127.0.0.1:1", code=3).stderr


def test_export_and_import_carry_everything(run: Run, filled: Path) -> None:
    run("db", "export", "graph.jsonl")
    first = run("db", "export", "-").stdout
    assert first == (filled / "graph.jsonl").read_text(encoding="utf-8")
    done = document(run("db", "import", "graph.jsonl", "--store", "sqlite:///other.db", "--json"))
    assert (done["missing"], done["counts"]["trajectories"], done["to"]) == ({}, 2, "sqlite:///other.db")
    run("db", "import", "graph.jsonl", "--store", "sqlite:///other.db")
    assert run("db", "export", "-", "--store", "sqlite:///other.db").stdout == first


def test_a_cut_import_names_its_line_and_goes_on_later(run: Run, filled: Path) -> None:
    run("db", "export", "graph.jsonl")
    whole = (filled / "graph.jsonl").read_text(encoding="utf-8")
    (filled / "cut.jsonl").write_text(whole[: len(whole) * 2 // 3], encoding="utf-8")
    assert "cut.jsonl, line" in run("db", "import", "cut.jsonl", "--store", "sqlite:///other.db", code=2).stderr
    run("db", "import", "graph.jsonl", "--store", "sqlite:///other.db")
    assert run("db", "export", "-", "--store", "sqlite:///other.db").stdout == whole


def test_copy_ends_in_a_count_check(run: Run, filled: Path) -> None:
    done = document(run("db", "copy", "sqlite:///regraph.db", "sqlite:///copy.db", "--json"))
    assert (done["missing"], done["counts"]["examples"]) == ({}, 4)
    assert "2 trajectories" in run("db", "copy", "sqlite:///regraph.db", "sqlite:///copy.db").stdout


def test_a_copy_killed_half_way_goes_on(run: Run, tmp_path: Path) -> None:
    with open_store(Settings(), url=f"sqlite:///{tmp_path}/regraph.db", create=True) as store:
        fill(store, trajectories=2000)
    command = [
        sys.executable,
        "-c",
        "from regraph_db.cli import main; main()",
        "db",
        "copy",
        "sqlite:///regraph.db",
        "sqlite:///copy.db",
    ]
    copying = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    url = f"sqlite:///{tmp_path}/copy.db"
    held = 0
    while copying.poll() is None and not held:
        time.sleep(0.01)
        if (tmp_path / "copy.db-wal").exists():
            try:
                with open_store(Settings(), url=url) as target:
                    held = target.counts().trajectories
            except Exception:
                # Not migrated yet.
                continue
    copying.send_signal(signal.SIGKILL)
    copying.wait()
    with open_store(Settings(), url=url) as target:
        assert target.counts().trajectories % 200 == 0
        assert target.check() == []
    assert document(run("db", "copy", "sqlite:///regraph.db", "sqlite:///copy.db", "--json"))["missing"] == {}
    assert run("db", "export", "-").stdout == run("db", "export", "-", "--store", "sqlite:///copy.db").stdout


def test_check_says_what_is_broken_and_repair_mends_it(run: Run, filled: Path) -> None:
    assert "Nothing is broken" in run("db", "check").stdout
    with open_store(Settings(), url=f"sqlite:///{filled}/regraph.db") as store, store._writing() as connection:  # type: ignore[attr-defined]
        connection.execute("UPDATE transitions SET examples = 7")
    assert "broken transition_counts: init → tiling" in run("db", "check", code=1).stdout
    problems = document(run("db", "check", "--json", code=1))["problems"]
    assert {p["invariant"] for p in problems} == {"transition_counts"}
    assert "mended transition_counts" in run("db", "check", "--repair").stdout
    assert document(run("db", "check", "--json")) == {"problems": [], "mended": []}


def test_techniques_are_listed_with_their_aliases(run: Run, filled: Path) -> None:
    assert document(run("technique", "list", "--json"))[1] == {
        "name": "tiling",
        "examples": 2,
        "trajectories": 2,
        "mean_gain": None,
        "aliases": ["tile it"],
    }
    assert "tensor cores" in run("technique", "list").stdout


def test_an_empty_list_says_what_fills_it(run: Run) -> None:
    run("db", "init")
    for command in ("list", "review"):
        assert "regraph ingest add" in run("technique", command).stdout
        assert run("technique", command, "--json").stdout.strip() == "[]"


def test_a_technique_is_shown_by_any_of_its_names(run: Run, filled: Path) -> None:
    shown = document(run("technique", "show", "Tile-It", "--json"))
    assert (shown["name"], shown["examples"]) == ("tiling", 2)
    assert shown["after"] == [{"before": "tiling", "after": "unrolling", "examples": 2, "mean_gain": None}]
    assert "init" in run("technique", "show", "tiling").stdout
    assert "Did you mean `tiling`" in run("technique", "show", "tilling", code=2).stderr


def test_a_path_is_the_way_that_examples_went(run: Run, filled: Path) -> None:
    found = document(run("technique", "path", "unrolling", "--json"))
    assert [edge["after"] for edge in found["path"]] == ["tiling", "unrolling"]
    assert "no way" in run("technique", "path", "tensor cores", code=1).stderr


def test_decisions_are_reviewed_made_and_taken_back(run: Run, filled: Path) -> None:
    assert [a["alias"] for a in document(run("technique", "review", "--json"))] == ["tile it"]
    assert document(run("technique", "review", "--accept", "tile it", "--json")) == []
    assert "--all" in run("technique", "review").stdout
    assert [a["review"] for a in document(run("technique", "review", "--all", "--json"))] == [False]
    assert "tile it no longer names tiling" in run("technique", "unalias", "Tile it").stdout
    assert {t["name"] for t in document(run("technique", "list", "--json"))} == {"tensor cores", "tile it", "unrolling"}
    assert "nothing was decided" in run("technique", "unalias", "tile it", code=2).stderr
    assert "knows no technique" in run("technique", "alias", "tile it", "blocking", code=2).stderr
    made = document(run("technique", "alias", "tile it", "blocking", "--new", "--json"))
    assert made["author"].startswith("person:")
    assert {t["name"] for t in document(run("technique", "list", "--json"))} == {
        "tensor cores",
        "blocking",
        "unrolling",
    }
    assert "loop" in run("technique", "alias", "blocking", "tile it", "--new", code=2).stderr
