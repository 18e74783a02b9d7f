"""What a person sees of a search: the panel and the lines while it runs, the tree and its legend afterwards."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from search_doubles import FakeJudge, Scripted

from regraph_db.records import Level
from regraph_db.store import GraphStore
from search import run_search
from search.display import _table, watching
from search.drawing import legend
from search.progress import Progress
from search.report import summary_lines
from verify import Task


def drawn(progress: Progress, level: Level, seconds: float) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(_table("saxpy (mcgs)", progress, level, seconds))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_panel_says_from_the_start_what_is_waited_for() -> None:
    text = drawn(Progress(16, doing="the model writes: tiling"), Level.GPU, 75.0)
    assert "no correct kernel yet" in text
    assert "0 of 16, 1:15" in text
    assert "the model writes: tiling" in text
    assert "path" not in text


def test_the_panel_of_a_search_under_way(store: GraphStore, task: Task) -> None:
    seen: list[str] = []
    run_search(
        task, generator=Scripted(), judge=FakeJudge(), store=store, budget=20, seed=1,
        progress=lambda progress: seen.append(drawn(progress, Level.GPU, 60.0)),
    )  # fmt: skip
    assert "0 of 20" in seen[0]
    assert "20 of 20, 20.0 a minute, 1:00" in seen[-1]
    assert "passed" in seen[-1]
    assert "wrong_result" in seen[-1]


def test_lines_tell_each_new_best_and_every_tenth_call(
    store: GraphStore, task: Task, capsys: pytest.CaptureFixture[str]
) -> None:
    with watching("saxpy", Level.GPU) as watcher:
        run_search(task, generator=Scripted(), judge=FakeJudge(), store=store, budget=20, seed=1, progress=watcher)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "new best" in line]
    assert [line for line in lines if line.startswith(("call 10 of 20", "call 20 of 20", "call 20: new best"))]
    assert not [line for line in lines if line.startswith("call 0")]


@pytest.mark.parametrize(
    ("level", "said"),
    [
        (Level.GPU, "reward for the measured speedup"),
        (Level.MODELLED, "reward for the modelled speedup"),
        (Level.FUNCTIONAL, "which is no speed"),
    ],
)
def test_every_level_says_once_what_its_figures_are(level: Level, said: str, store: GraphStore, task: Task) -> None:
    outcome = run_search(task, generator=Scripted(), judge=FakeJudge(level=level), store=store, budget=20)
    summary = " ".join(summary_lines(outcome))
    assert summary.count("not measured") == (level is not Level.GPU)
    assert said in " ".join(legend(level))
