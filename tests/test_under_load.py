"""The whole product under load, as its users run it: three searches and an ingestion share one Neo4j; one of four
runners is killed, then the server is, and comes back.

Real are the commands, the store and the judge (functional level). The model is a stand-in behind OpenAI's protocol
that gives recorded kernels, right and wrong: the test then knows that every task has an answer to be found, sees
each call as it is made, and holds answers back until what has to happen has happened. Nothing here waits for a time;
``PATIENCE`` only ends a test that hangs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from servers import SCRIPT, Server

from regraph_db.opening import open_store
from regraph_db.records import SearchStatus
from regraph_db.settings import Settings
from regraph_db.store import GraphStore

ROOT = Path(__file__).parents[1]
TRAJECTORIES = ROOT / "cudaeval" / "trajectories"
TASKS = ("saxpy", "relu", "reduction")
BUDGET = 12
#: Answers a task gets before the server goes away; what is asked for beyond them waits.
BEFORE = 4
#: The key, and so the name, of the runner that is killed; the others' are their tasks.
VICTIM = "victim"
PATIENCE = 400.0

pytest.importorskip("langchain_openai")
#: A slow or busy machine takes many times the minute and a half of an idle one with two cores.
pytestmark = [pytest.mark.neo4j, pytest.mark.nvcc, pytest.mark.timeout(4 * PATIENCE)]


class Author(ThreadingHTTPServer):
    """Answers as OpenAI's server does: a kernel of the task, a refusal, and the kernel made wrong, in turn."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = {task: _answers(task) for task in TASKS}
        self.asked: Counter[str] = Counter()  #: by task, and by the key that a process was given
        self.told: Counter[str] = Counter()  #: answers by task, those to the victim left out
        self.changed = threading.Condition()
        self.released = threading.Event()
        self.over = threading.Event()

    def answer(self, key: str) -> str:
        task = TASKS[0] if key == VICTIM else key  # not by the prompt, which shows another task's example
        with self.changed:
            self.asked[task] += 1
            self.asked[key] += 1
            turn = self.told[task]
            self.told[task] += key != VICTIM
            self.changed.notify_all()
        if key == VICTIM:
            if self.asked[key] > 1:
                self.over.wait(PATIENCE)  # it is killed while it waits for this answer
        elif turn >= BEFORE:
            self.released.wait(PATIENCE)
        return self.answers[task][turn % len(self.answers[task])]


class _Handler(BaseHTTPRequestHandler):
    server: Author

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        text = self.server.answer(self.headers["Authorization"].split()[-1])
        choices = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
        document = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}
        answer = json.dumps(document).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        except OSError:
            pass  # who asked is dead

    def log_message(self, *_: object) -> None:
        pass


def _answers(task: str) -> list[str]:
    line = (TRAJECTORIES / f"{task}.jsonl").read_text(encoding="utf-8").splitlines()[0]
    steps = [step["code"] for step in json.loads(line)["steps"]]
    codes = [steps[0], "", steps[0].replace("blockIdx.x", "0", 1)]
    return [f"suitable: yes\n```cuda\n{code}\n```\n" if code else "suitable: no" for code in codes]


def until(true: Callable[[], bool], what: str) -> None:
    """Look again and again; a store that is asked is asked twice a second."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.5)


@pytest.fixture
def author() -> Iterator[Author]:
    server = Author()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class Stage:
    """The processes of the test: their surroundings, and their ends."""

    def __init__(self, server: Server, author: Author, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.server = server
        self.environment = os.environ | {
            "REGRAPH_STORE": server.uri,
            "REGRAPH_NEO4J_PASSWORD": server.password,
            "REGRAPH_CACHE": str(folder / "cache"),
            "REGRAPH_SEARCH__LEASE": "5",
            "REGRAPH_SEARCH__STEP_CAP": "3",  # calls that a rollout reserves: two runners find work in a small budget
            "REGRAPH_SEARCH__GENERATOR_SECONDS": str(3 * PATIENCE),  # answers are held back for as long as it takes
            "REGRAPH_STORE_TIMEOUT": str(PATIENCE),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{author.server_address[1]}/v1",
        }

    def start(self, name: str, *words: str) -> subprocess.Popen[bytes]:
        """``regraph WORDS`` with its words in NAME.log."""
        log = self.stack.enter_context((self.folder / f"{name}.log").open("w"))
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "regraph"), *words],
            env=self.environment | {"OPENAI_API_KEY": name},
            cwd=self.folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def done(self, name: str, process: subprocess.Popen[bytes]) -> None:
        code = process.wait(timeout=PATIENCE)
        assert code == 0, f"{name} ended with {code}: {(self.folder / f'{name}.log').read_text()}"

    def kill_server(self) -> None:
        assert self.server.environment is not None
        pid = int((Path(self.server.environment["NEO4J_SERVER_HOME"]) / "server.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the server")

    def start_server(self) -> None:
        subprocess.run([SCRIPT, "start"], env=self.server.environment, check=True, timeout=PATIENCE)


@pytest.fixture
def stage(neo4j_server: Server, author: Author, tmp_path: Path) -> Iterator[Stage]:
    if neo4j_server.environment is None:
        pytest.skip("the server is not this session's to kill")
    neo4j_server.clear()
    with ExitStack() as stack:
        yield Stage(neo4j_server, author, tmp_path, stack)


def trajectories(store: GraphStore) -> int:
    return store.counts().trajectories


def test_searches_and_an_ingestion_outlive_a_runner_and_the_server(stage: Stage, author: Author) -> None:
    files = sorted(TRAJECTORIES.glob("*.jsonl"))
    known, fresh = files[::2], files[1::2]
    stage.done("first", stage.start("first", "ingest", "add", *map(str, known)))
    settings = Settings(neo4j_password=stage.server.password, store_timeout=PATIENCE)
    store = stage.stack.enter_context(open_store(settings, url=stage.server.uri))
    before = trajectories(store)

    run = ("search", "run", "--level", "functional", "--budget", str(BUDGET), "--model", "langchain:openai/recorded")
    searches = {task: stage.start(task, *run, task) for task in TASKS}
    until(lambda: len(store.searches()) == len(TASKS), "three searches")
    ids = {search.task.name: search.id for search in store.searches()}
    join = ("search", "run", "--join", ids[TASKS[0]], "--model", "langchain:openai/recorded")
    victim = stage.start(VICTIM, *join)
    late = stage.folder / fresh[6].name
    os.mkfifo(late)  # the ingestion stops here until the test gives it its content
    ingest = stage.start(
        "ingest", "ingest", "add", "--verify", "none", *map(str, fresh[:6]), str(late), *map(str, fresh[7:])
    )

    with author.changed:
        assert author.changed.wait_for(lambda: author.asked[VICTIM] > 1, PATIENCE), "the fourth runner never worked"
    victim.kill()
    assert victim.wait() == -signal.SIGKILL
    with author.changed:
        waiting = author.changed.wait_for(lambda: all(author.told[task] > BEFORE for task in TASKS), PATIENCE)
    assert waiting, f"not every search got under way: {author.told}"
    until(lambda: trajectories(store) == before + 6, "an ingestion that is under way")
    assert all(store.search(ids[task]).calls < BUDGET for task in TASKS)

    stage.kill_server()
    author.released.set()  # runners and ingestion go on, and find no store
    late.write_bytes(fresh[6].read_bytes())
    stage.start_server()

    for name, process in {**searches, "ingest": ingest}.items():
        stage.done(name, process)
    stage.done("check", stage.start("check", "db", "check"))
    assert store.check() == []
    assert trajectories(store) == before + len(fresh)
    for task, search in ids.items():
        record = store.search(search)
        assert (record.status, record.calls, record.reserved) == (SearchStatus.FINISHED, BUDGET, 0), task
        attempts = list(store.attempts(search))
        assert len({attempt.id for attempt in attempts}) == len(attempts) >= BUDGET
        assert all(edge.in_flight == 0 for edge in store.snapshot(search).edges)
        best = store.attempt(str(record.best_attempt))
        assert best.verdict is not None
        assert best.verdict.passed
        assert "__global__" in best.code
    assert len(store.runners(ids[TASKS[0]])) == 2
