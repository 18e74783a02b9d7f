"""Neo4j Browser looked at with a real Chromium: log in, load our style, run every saved query over a filled graph."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cudaeval.shipped import read_trajectories, trajectory_file
from regraph_db.neo4j import Neo4jStore
from regraph_db.records import (
    Attempt,
    EdgeReturn,
    ExploredEdge,
    Level,
    Rollout,
    RolloutResult,
    Runner,
    Search,
    State,
    TaskReference,
    Verdict,
)
from regraph_db.settings import Settings

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.neo4j, pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")]

INSPECT = Path(__file__).parents[2] / "cypher" / "inspect"
SEARCH = "5ea7c4"
PARAMETERS = {"search": SEARCH, "task": "relu", "technique": "init", "from": "init", "to": "thread parallelization"}
#: What a person must be able to read in the answer of each saved query.
SHOWN = {
    "best_path": ["tiling", "N 2", "Q 9"],
    "search_tree": ["tiling", "unrolling", "N 2", "N 1"],
    "known_techniques": ["init"],
    "why_this_edge": ["tiling", "unrolling"],
    "disagreement": ["tiling", "sigma"],
    "techniques_by_gain": ["gain", "measured"],
    "what_failed": ["wrong_result", "off by one"],
    "examples_of_transition": ["kernel", "method"],
}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


def fill(store: Neo4jStore) -> None:
    """A few shipped trajectories and a small search with a best path, a failure and a disagreement."""
    for name in ("relu", "saxpy", "sigmoid", "gelu", "mse", "dot_product"):
        store.merge_trajectories(read_trajectories(trajectory_file(name)))
    root, tiling, unrolling = (State(id=name, technique=name) for name in ("init", "tiling", "unrolling"))
    search = Search(
        id=SEARCH, task=TaskReference(name="relu", hash="0"), level=Level.GPU, budget=9, start_code="void relu() {}"
    )
    store.open_search(search, root)
    edges = [
        ExploredEdge(source="init", target="tiling", prior=2.0),
        ExploredEdge(source="init", target="unrolling", prior=1.0),
    ]
    store.expand(SEARCH, "init", [tiling, unrolling], edges)
    store.join(Runner(id="runner", search=SEARCH, host="here", pid=1))
    for index, (target, value, verdict) in enumerate(
        [
            ("tiling", 12.3, Verdict(verdict="passed", level="gpu")),
            ("tiling", 5.7, Verdict(verdict="passed", level="gpu")),
            ("unrolling", -1.0, Verdict(verdict="wrong_result", reason="off by one at the edge", level="gpu")),
        ]
    ):
        rollout = f"rollout-{index}"
        store.begin_rollout(Rollout(id=rollout, search=SEARCH, runner="runner", path=(("init", target),), calls=1))
        attempt = Attempt(
            id=f"attempt-{index}", search=SEARCH, rollout=rollout, source="init", target=target, technique=target,
            code="// code", verdict=verdict, reward=value, speedup=value if value > 0 else None,
        )  # fmt: skip
        gone = EdgeReturn(source="init", target=target, value=value)
        store.finish_rollout(
            RolloutResult(rollout=rollout, search=SEARCH, returns=(gone,), attempts=(attempt,), calls=1)
        )
    store.finish_search(SEARCH, best_attempt="attempt-0", summary={})


def style() -> dict[str, dict[str, str]]:
    """``style.grass`` as Browser keeps it after the file was dropped onto it."""
    text = re.sub(r"/\*.*?\*/", "", (INSPECT / "style.grass").read_text(encoding="utf-8"), flags=re.DOTALL)
    rules = re.findall(r"([\w.]+)\s*\{((?:[^{}]|\{[^{}]*\})*)\}", text)
    return {
        selector: {
            key.strip(): value.strip().strip('"')
            for key, value in (line.split(":", 1) for line in body.split(";") if ":" in line)
        }
        for selector, body in rules
    }


@pytest.fixture(scope="module")
def page(neo4j_server: Any) -> Iterator[Any]:
    if neo4j_server.environment is None:
        pytest.skip("the running server's Browser address is not known")
    neo4j_server.clear()
    with Neo4jStore.open(neo4j_server.uri, Settings(neo4j_password=neo4j_server.password), create=True) as store:
        fill(store)
    http = neo4j_server.environment["NEO4J_SERVER_HTTP_PORT"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        opened = browser.new_page(viewport={"width": 1400, "height": 900})
        opened.add_init_script(f"localStorage.setItem('neo4j.grass', {json.dumps(json.dumps(style()))})")
        opened.goto(f"http://127.0.0.1:{http}/browser/?connectURL=bolt://neo4j@{neo4j_server.uri.partition('://')[2]}")
        opened.fill("input[data-testid=password]", neo4j_server.password, timeout=60_000)
        opened.click("button[data-testid=connect]")
        opened.wait_for_selector("input[data-testid=password]", state="detached", timeout=30_000)
        yield opened
        browser.close()


def run(page: Any, text: str) -> None:
    page.click("[data-testid=activeEditor]")
    page.keyboard.insert_text(text)
    page.keyboard.press("Control+Enter")


def test_every_saved_query_is_looked_at() -> None:
    assert {path.stem for path in INSPECT.glob("*.cypher")} == SHOWN.keys()


@pytest.mark.parametrize("query", SHOWN)
def test_a_saved_query_shows_readable_names(page: Any, query: str, tmp_path: Path) -> None:
    run(page, ":clear")
    run(page, ":params " + json.dumps(PARAMETERS))
    frame = page.locator("[data-testid=frame]").first
    playwright.expect(frame).to_contain_text(PARAMETERS["to"], timeout=20_000)
    run(page, (INSPECT / f"{query}.cypher").read_text(encoding="utf-8"))
    for word in SHOWN[query]:
        playwright.expect(frame).to_contain_text(word, timeout=20_000)
    folder = Path(os.environ.get("REGRAPH_TEST_SCREENSHOTS", str(tmp_path)))
    page.screenshot(path=str(folder / f"{query}.png"))
    assert (folder / f"{query}.png").stat().st_size > 10_000
