"""Trajectories into a real store through the command line: checks, summary, exit codes, aliases, resuming after a
kill."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from ingest_samples import knowledge, line, step

from regraph_db.cli import regraph
from regraph_db.settings import load
from regraph_db.sqlite import SqliteStore

Write = Callable[..., Path]
GOOD = line(step("Shared-memory tiling", "x[0] = 1;"), step("loop unrolling by 4", "x[0] = 2;"))


def add(*words: str, store: str = "graph.db", verify: str = "none", expect: int = 0) -> Result:
    arguments = ["ingest", "add", *words, "--store", f"sqlite:///{store}", "--verify", verify]
    result = CliRunner().invoke(regraph, arguments)
    assert result.exit_code == expect, (result.output, result.exception)
    return result


def add_json(*words: str, **options: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(add(*words, "--json", **options).stdout)
    return document


def graph(store: str = "graph.db") -> dict[str, Any]:
    with SqliteStore.open(f"sqlite:///{store}", load()) as opened:
        assert opened.check() == []
        return knowledge(opened)


def test_a_file_goes_in_once(write: Write) -> None:
    path = str(write(GOOD, GOOD, line(step("tiling", "x[0] = 5;"))))
    first = add_json(path)
    assert (first["read"], first["merged"], first["duplicates"], first["rejected"], first["steps"]) == (3, 2, 1, 0, 3)
    assert first["techniques"] == {"new": 2, "known": 0} and first["transitions"] == {"new": 2, "known": 0}
    assert first["verdicts"] == {}
    before = graph()
    again = add_json(path)
    assert (again["merged"], again["duplicates"]) == (0, 3)
    assert graph() == before
    names = {technique["name"] for technique, _, _ in before["techniques"]}
    assert {"shared memory tiling", "loop unrolling"} <= names
    described = next(t for t, _, _ in before["techniques"] if t["name"] == "loop unrolling")
    assert described["shipped"] and described["description"]


def test_two_synonyms_in_one_trajectory_are_one_technique(write: Write) -> None:
    path = str(write(line(step("double buffering", "x[0] = 1;"), step("software pipelining", "x[0] = 2;"))))
    assert add_json(path)["techniques"] == {"new": 1, "known": 0}
    assert [(t["before"], t["after"]) for t in graph()["transitions"]] == [
        ("init", "software pipelining"),
        ("software pipelining", "software pipelining"),
    ]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"author": "a"}, "steps: missing"),
        (line(), "steps: empty"),
        ({**GOOD, "stpes": []}, "stpes: unknown field"),
        (line({**step("tiling", "x[0] = 1;"), "metod": "x"}), "metod: unknown field"),
        (line(step("  ", "x[0] = 1;")), "steps[0].method: empty"),
        (line(step("init", "x[0] = 1;")), "name of the graph's root"),
        (line({"method": "tiling", "code": " "}), "steps[0].code: empty"),
        (line({"method": 3, "code": "x"}), "steps[0].method: not a text"),
        (line({"method": "m" * 201, "code": "x"}), "steps[0].method: 201 characters"),
        (line(step("tiling", "x[0] = 1;"), step("unrolling", "x[0] = 1; /* same */")), "the same as before"),
        (line(step("tiling", "x[0] = 1;"), step("unrolling", "x[0] = 2;", "g")), "no function keeps its name"),
        (line(step("tiling", "x[0] = 1;"), function="other"), "the function `other` is gone"),
        (line(step("tiling", "x[0] = 1; /* \x00 */")), "NUL"),
        ('{"steps": [{"method": "\\ud800", "code": "x"}]}', "surrogate"),
        (line(*(step("tiling", f"x[0] = {i};") for i in range(101))), "101 of them"),
        ("not json", "not JSON"),
        ([1, 2], "steps[0]: not an object"),
    ],
)
def test_a_bad_line_is_set_aside_with_the_reason_and_the_rest_goes_on(write: Write, bad: Any, reason: str) -> None:
    path = write(GOOD, bad, line(step("tiling", "x[0] = 7;")))
    document = add_json(str(path), expect=1)
    assert (document["read"], document["merged"], document["rejected"]) == (3, 2, 1)
    (aside,) = [json.loads(each) for each in (path.parent / "t.rejected.jsonl").read_text().splitlines()]
    assert reason in aside["reason"] and aside["where"].endswith("t.jsonl:2")
    assert document["rejected_files"] == [str(path.parent / "t.rejected.jsonl")]


def test_a_mended_file_takes_its_rejections_away(write: Write) -> None:
    path = write("not json", GOOD)
    add(str(path), expect=1)
    add(str(write(GOOD)))
    assert not (path.parent / "t.rejected.jsonl").exists()


def test_a_dry_run_says_what_would_happen_and_writes_nothing(write: Write) -> None:
    path = write(GOOD, GOOD, "not json")
    would = add_json(str(path), "--dry-run", expect=1)
    assert not Path("graph.db").exists() and not (path.parent / "t.rejected.jsonl").exists()
    did = add_json(str(path), expect=1)
    same = ("read", "merged", "duplicates", "rejected", "steps", "techniques", "transitions", "relabelled")
    assert {key: would[key] for key in same} == {key: did[key] for key in same}


def test_standard_input() -> None:
    result = subprocess.run(
        [str(Path(sys.executable).with_name("regraph")), "ingest", "add", "-", "--verify", "none", "--json"],
        input=json.dumps(GOOD) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["merged"] == 1


def test_an_answer_with_a_task_given_beside_it(write: Write, tmp_path: Path) -> None:
    steps = [step("tiling", "x[0] = 1;")]
    (tmp_path / "answer.md").write_text("Here:\n```json\n" + json.dumps(steps, indent=1)[:-2] + ",\n]\n```\n")
    document = add_json("answer.md", "--task", "mine", "--author", "a model")
    assert document["merged"] == 1 and document["repairs"][0]["repairs"]
    assert json.loads(graph()["trajectories"][0])["task"] == "mine"


def test_nothing_to_add_is_a_usage_error() -> None:
    result = CliRunner().invoke(regraph, ["ingest", "add"])
    assert result.exit_code == 2 and "FILE" in result.output


KILLED = """
import os, signal, sys
from regraph_db.sqlite import SqliteStore
merge = SqliteStore.merge_trajectories
allowed = int(sys.argv.pop(1))
count = 0
def counting(self, *arguments, **named):
    global count
    if count == allowed:
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1
    return merge(self, *arguments, **named)
SqliteStore.merge_trajectories = counting
from regraph_db.cli import main
main()
"""


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_run_killed_between_batches_and_resumed_is_as_one_run(
    write: Write, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    monkeypatch.setenv("REGRAPH_INGEST__BATCH", "4")
    path = str(
        write(*(line(step("tiling", f"x[0] = {i};"), step(f"odd name {i % 3}", f"x[1] = {i};")) for i in range(20)))
    )
    add(path, store="whole.db")
    words = ["ingest", "add", path, "--verify", "none", "--store", "sqlite:///graph.db"]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(batches), *words], check=False, timeout=60, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL
    resumed = add_json(path, "--resume")
    assert (resumed["merged"], resumed["duplicates"]) == (20 - 4 * batches, 4 * batches)
    assert graph() == graph("whole.db")


def test_a_run_killed_at_any_moment_and_resumed_is_as_one_run(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGRAPH_INGEST__BATCH", "5")
    path = str(write(*(line(step("tiling", f"x[0] = {i};"), step("unrolling", f"x[1] = {i};")) for i in range(300))))
    add(path, store="whole.db")
    command = [
        str(Path(sys.executable).with_name("regraph")),
        "ingest",
        "add",
        path,
        "--verify",
        "none",
        "--store",
        "sqlite:///graph.db",
        "--resume",
    ]
    for patience in (0.9, 1.3, 1.7):
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(patience)
        running.kill()
        running.wait(timeout=30)
    add(path, "--resume")
    assert graph() == graph("whole.db")


JUDGING = """
import os, signal, sys
from concurrent.futures import Future
from pathlib import Path
import verify
from regraph_db.records import Level, Verdict, VerdictKind
allowed = int(sys.argv.pop(1))
class Judge:
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def submit(self, task, source, level=None):
        asked = Path("asked.txt").read_text().splitlines() if Path("asked.txt").exists() else []
        if len(asked) == allowed:
            os.kill(os.getpid(), signal.SIGKILL)
        with Path("asked.txt").open("a") as file:
            file.write(repr(source) + "\\n")
        future = Future()
        kind = VerdictKind.TIMEOUT if "stuck" in source else VerdictKind.PASSED
        future.set_result(Verdict(verdict=kind, level=Level.COMPILE))
        return future
verify.Judge = Judge
from regraph_db.cli import main
main()
"""


@pytest.mark.parametrize("judged", [1, 20])
def test_a_run_killed_while_judging_and_resumed_is_as_one_run_and_judges_nothing_twice(
    write: Write, monkeypatch: pytest.MonkeyPatch, judged: int
) -> None:
    monkeypatch.setenv("REGRAPH_INGEST__BATCH", "4")
    monkeypatch.setenv("REGRAPH_INGEST__IN_FLIGHT", "1")
    path = str(
        write(
            *(
                line(step("tiling", f"x[0] = {i};"), step("unrolling", f"/* {'stuck' * (i % 3)} */ x[1] = {i};"))
                for i in range(12)
            )
        )
    )

    def run(store: str, allowed: int, *words: str) -> int:
        command = [sys.executable, "-c", JUDGING, str(allowed), "ingest", "add", path, "--verify", "compile"]
        command += ["--store", f"sqlite:///{store}", *words]
        return subprocess.run(command, check=False, capture_output=True).returncode

    assert run("whole.db", 1000) == 0
    Path("asked.txt").unlink()
    assert run("graph.db", judged) == -signal.SIGKILL
    assert run("graph.db", 1000, "--resume") == 0
    asked = Path("asked.txt").read_text().splitlines()
    # Only the trajectory under way is judged again: at most its two steps.
    assert len(set(asked)) == 24 and len(asked) <= 26
    assert graph() == graph("whole.db")


def test_on_a_terminal_a_bar_shows_the_rate_and_the_time_left(write: Write) -> None:
    path = str(write(*(line(step("tiling", f"x[0] = {i};")) for i in range(30))))
    words = ["ingest", "add", path, "--verify", "none", "--store", "sqlite:///g.db"]
    terminal, side = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    command = [sys.executable, "-c", "import regraph_db.cli; regraph_db.cli.main()", *words]
    with subprocess.Popen(command, stdin=side, stdout=side, stderr=side, env=environment) as running:
        os.close(side)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a pseudo-terminal
            while part := os.read(terminal, 65536):
                shown += part
    os.close(terminal)
    assert running.returncode == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"t\.jsonl .*30 trajectories, [\d,]+/s 0:00:\d\d 0:00:00 left", text), text
    assert "Merged 30 of 30" in text
