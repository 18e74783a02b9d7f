"""The teacher over real HTTP: a server that answers as OpenAI's does, and one that answers badly in every recorded
way."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from ingest_samples import line, step

from ingest.chat import Answer, PassingTrouble, Question, open_chat
from ingest.reading import Draft, Rejection
from ingest.settings import IngestSettings
from ingest.teacher import Limits, Teacher, teacher_prompt
from regraph_db.cli import regraph
from regraph_db.errors import EnvironmentFault, InputError
from regraph_db.names import normalise
from regraph_db.settings import load
from regraph_db.sqlite import SqliteStore
from verify import load_task

pytest.importorskip("langchain_openai")

STEP = {
    "think": "t",
    "method": "one thread per element",
    "detail": "d",
    "code": 'extern "C" void saxpy(float a, const float* x, float* y, int n) { }',
}
GOOD = "Here you are:\n```json\n" + json.dumps([STEP], indent=1) + "\n```"


def completion(text: str, reason: str = "stop") -> bytes:
    """The body of a chat completion."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": choices, "usage": usage}
    ).encode()


class Recorded(ThreadingHTTPServer):
    """Gives the recorded answers in order, the last one for ever, and keeps what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, bytes]] = [(200, completion(GOOD))]
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: Recorded

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.asked.append(body)
            self.server.keys.append(self.headers.get("Authorization", ""))
            status, answer = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        if status == 0:  # a line that breaks in the middle
            self.connection.close()
            return
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    with Recorded() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        monkeypatch.setenv("OPENAI_API_BASE", f"http://127.0.0.1:{running.server_port}/v1")
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{running.server_port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "a key of the environment")
        monkeypatch.setenv("REGRAPH_INGEST__BACKOFF", "0")
        for proxy in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.delenv(proxy, raising=False)
        yield running
        running.shutdown()
        thread.join(timeout=10)


def teach(*words: str, expect: int = 0) -> Result:
    arguments = [
        "ingest",
        "teach",
        *words,
        "--teacher",
        "langchain:openai/m",
        "--verify",
        "none",
        "--store",
        "sqlite:///g.db",
        "--json",
    ]
    result = CliRunner().invoke(regraph, arguments)
    assert result.exit_code == expect, (result.output, result.exception)
    return result


def test_what_the_teacher_answers_is_in_the_graph(server: Recorded) -> None:
    document = json.loads(teach("saxpy").stdout)
    assert (document["merged"], document["rejected"]) == (1, 0)
    assert document["teacher"] == {"questions": 1, "tokens_in": 100, "tokens_out": 50, "retries": 0, "cost": 0.0}
    (asked,) = server.asked
    assert (asked["temperature"], asked["top_p"]) == (0.7, 0.9)
    assert 8192 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))
    assert server.keys == ["Bearer a key of the environment"]
    with SqliteStore.open("sqlite:///g.db", load()) as store:
        (kept,) = store.trajectories()
    assert (kept.task, kept.author, kept.steps[0].method) == ("saxpy", "m", "one thread per element")


@pytest.mark.parametrize(
    "bad",
    [
        (429, b'{"error": {"message": "slow down"}}'),
        (500, b"oops"),
        (0, b""),
        (200, b"{garbage"),
        (200, completion("")),
    ],
)
def test_trouble_that_passes_is_asked_again(server: Recorded, bad: tuple[int, bytes]) -> None:
    server.answers = [bad, bad, (200, completion(GOOD))]
    document = json.loads(teach("saxpy").stdout)
    assert document["merged"] == 1 and document["teacher"]["retries"] == 2


def test_trouble_that_stays_is_a_rejection_that_says_so(server: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGRAPH_INGEST__RETRIES", "2")
    server.answers = [(500, b"oops")]
    document = json.loads(teach("saxpy", expect=1).stdout)
    assert (document["rejected"], len(server.asked)) == (1, 3)
    assert "no answer after 3 tries" in Path("teacher.rejected.jsonl").read_text()


def test_a_refused_key_ends_the_run_with_the_environments_exit_code(server: Recorded) -> None:
    server.answers = [(401, b'{"error": {"message": "bad key"}}')]
    result = CliRunner().invoke(
        regraph,
        [
            "ingest",
            "teach",
            "saxpy",
            "--teacher",
            "langchain:openai/m",
            "--verify",
            "none",
            "--store",
            "sqlite:///g.db",
        ],
    )
    assert isinstance(result.exception, EnvironmentFault) and "the key is refused" in str(result.exception)
    assert len(server.asked) == 1


def test_an_answer_cut_at_the_token_limit_loses_its_last_step(server: Recorded) -> None:
    second = {**STEP, "method": "unrolling", "code": STEP["code"].replace("{ }", "{ y[0] = 1; }")}
    text = json.dumps([STEP, second], indent=1)
    server.answers = [(200, completion("```json\n" + text[: text.rindex("y[0]")], "length"))]
    document = json.loads(teach("saxpy").stdout)
    assert (document["merged"], document["steps"]) == (1, 1)
    assert any("cut at the token limit" in repair for repair in document["repairs"][0]["repairs"])


def test_garbage_for_an_answer_is_set_aside_whole(server: Recorded) -> None:
    server.answers = [(200, completion("I would rather not."))]
    assert json.loads(teach("saxpy", expect=1).stdout)["rejected"] == 1
    assert json.loads(Path("teacher.rejected.jsonl").read_text())["content"] == "I would rather not."


def test_nothing_is_asked_twice(server: Recorded) -> None:
    teach("saxpy", "--samples", "2", "--workers", "1")
    teach("saxpy", "--samples", "3", "--workers", "1")
    assert len(server.asked) == 3


def test_a_token_limit_stops_further_questions(server: Recorded) -> None:
    document = json.loads(
        teach("saxpy", "--samples", "4", "--workers", "1", "--max-total-tokens", "300", expect=1).stdout
    )
    assert document["teacher"]["questions"] == 2 and document["rejected"] == 2
    assert "the limit of 300 tokens is reached" in Path("teacher.rejected.jsonl").read_text()


def test_a_cost_limit_needs_prices_and_stops_further_questions(server: Recorded) -> None:
    teach("saxpy", "--max-cost", "1", expect=2)
    words = ("--samples", "4", "--workers", "1", "--max-cost", "0.0002", "--price-in", "1", "--price-out", "1")
    document = json.loads(teach("saxpy", *words, expect=1).stdout)
    assert document["teacher"]["questions"] == 2 and document["teacher"]["cost"] == pytest.approx(0.0003)


def test_the_prompt_holds_what_a_step_must_keep() -> None:
    task = load_task("saxpy")
    prompt = teacher_prompt(task)
    assert (
        task.signature in prompt
        and task.reference.strip() in prompt
        and "${" not in prompt
        and "device pointers" in prompt
    )


class _Flaky:
    """A model in this process that fails as told."""

    name = "flaky"
    parallel = True

    def __init__(self, answers: list[Answer | Exception]) -> None:
        self.answers = answers

    def ask(self, question: Question) -> Answer:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_wait_doubles_with_each_further_try(tmp_path: Path) -> None:
    waits: list[float] = []
    trouble: list[Answer | Exception] = [PassingTrouble("busy") for _ in range(4)]
    settings = IngestSettings(backoff=20.0, retries=4)
    teacher = Teacher(_Flaky([*trouble, Answer(GOOD)]), settings, tmp_path, limits=Limits(), sleep=waits.append)
    (draft,) = teacher.teach([load_task("saxpy")], 1)
    assert isinstance(draft, Draft) and waits == [20.0, 40.0, 60.0, 60.0]


def test_one_question_without_an_answer_stops_no_other(tmp_path: Path) -> None:
    settings = IngestSettings(backoff=0.0, retries=0, workers=1)
    teacher = Teacher(_Flaky([PassingTrouble("busy"), Answer(GOOD)]), settings, tmp_path)
    found = list(teacher.teach([load_task("saxpy")], 2))
    assert sorted(type(each).__name__ for each in found) == ["Draft", "Rejection"]
    assert any(isinstance(each, Rejection) and "no answer after 1 tries" in each.reason for each in found)


@pytest.mark.parametrize("spec", ["gpt-5", "langchain:openai", "langchain:"])
def test_a_model_that_is_none_is_refused(spec: str) -> None:
    with pytest.raises(InputError, match="names no model"):
        open_chat(spec)


def test_a_missing_model_file_is_named() -> None:
    with pytest.raises(EnvironmentFault, match="no such model file"):
        open_chat("none.gguf")


@pytest.fixture
def doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name that is not in the table is doubtful, with three candidates."""
    for name, value in (("ACCEPT", "1"), ("DOUBT", "0"), ("CANDIDATES", "3")):
        monkeypatch.setenv(f"REGRAPH_INGEST__{name}", value)


def relabelled(path: Path, model: str) -> dict[str, Any]:
    words = ["ingest", "add", str(path), "--verify", "none", "--relabel", "model", "--model", model]
    result = CliRunner().invoke(regraph, [*words, "--store", "sqlite:///g.db", "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.mark.usefixtures("doubts")
def test_a_relabelling_model_over_http(server: Recorded, write: Callable[..., Path]) -> None:
    server.answers = [(200, completion("2"))]  # the one in the middle, whatever the order
    found = relabelled(write(line(step("elementwise CUDA kernel of sorts", "x[0] = 1;"))), "langchain:openai/m")
    prompts = [asked["messages"][0]["content"] for asked in server.asked]
    listed = [[row.split(". ", 1)[1] for row in prompt.splitlines() if row[:1].isdigit()] for prompt in prompts]
    assert len(listed[0]) == 3 and listed == [listed[0], listed[0][::-1]]
    with SqliteStore.open("sqlite:///g.db", load()) as store:
        (alias,) = store.aliases()
    assert alias.author == "model:m" and listed[0][1].startswith(alias.technique)
    assert not alias.review and found["review"] == []


@pytest.mark.usefixtures("doubts")
def test_a_relabelling_model_that_picks_a_place_and_not_a_meaning_is_not_believed(
    server: Recorded, write: Callable[..., Path]
) -> None:
    server.answers = [(200, completion("1"))]
    found = relabelled(write(line(step("elementwise CUDA kernel of sorts", "x[0] = 1;"))), "langchain:openai/m")
    assert found["review"] == [normalise("elementwise CUDA kernel of sorts")]


@pytest.fixture(scope="module")
def llama_server() -> Iterator[str]:
    """The base URL of llama.cpp's own OpenAI-compatible server with the demonstration model."""
    model = Path(__file__).parents[2] / "slm" / "model" / "regraph-demo-q8_0.gguf"
    if (
        not model.is_file()
        or importlib.util.find_spec("uvicorn") is None
        or importlib.util.find_spec("llama_cpp") is None
    ):
        pytest.skip("needs the demonstration model and llama-cpp-python[server]")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(model), "--port", str(port), "--n_threads", "1"]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if running.poll() is not None:
                pytest.skip("llama_cpp.server does not start here")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        running.terminate()
        running.wait(timeout=30)


@pytest.mark.model
def test_llama_cpps_own_server_answers_and_its_answer_is_kept_whatever_it_is(
    llama_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", llama_server)
    monkeypatch.setenv("OPENAI_BASE_URL", llama_server)
    monkeypatch.setenv("OPENAI_API_KEY", "none is needed")
    monkeypatch.setenv("REGRAPH_INGEST__MAX_TOKENS", "40")
    monkeypatch.setenv("REGRAPH_INGEST__RETRIES", "0")
    document = json.loads(teach("saxpy", expect=1).stdout)  # a model of 8 MB writes no trajectory in 40 tokens
    assert document["teacher"]["questions"] == 1 and document["teacher"]["tokens_in"] > 50
    assert (document["merged"], document["rejected"]) == (0, 1)
    aside = json.loads(Path("teacher.rejected.jsonl").read_text())
    assert "no JSON list of steps" in aside["reason"] and isinstance(aside["content"], str)


@pytest.mark.model
@pytest.mark.usefixtures("doubts")
def test_a_local_models_choice_is_held_by_the_grammar(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Path(__file__).parents[2] / "slm" / "model" / "regraph-demo-q8_0.gguf"
    if not model.is_file() or importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("needs the demonstration model and llama-cpp-python")
    chat, answers = open_chat(str(model)), []
    ask = chat.ask

    def asked(question: Question) -> Answer:
        answers.append(ask(question).text)
        return Answer(answers[-1])

    monkeypatch.setattr(chat, "ask", asked)
    monkeypatch.setattr("ingest.chat.open_chat", lambda *_, **__: chat)
    names = ("deeper k tile with padding", "elementwise kernel of sorts", "lanes that add up together")
    path = write(line(*(step(name, f"x[0] = {i};") for i, name in enumerate(names))))
    found = relabelled(path, str(model))
    assert len(answers) == 2 * len(names) and set(answers) <= {"1", "2", "3", "new"}
    with SqliteStore.open("sqlite:///g.db", load()) as store:
        aliases = store.aliases()
    assert {alias.author for alias in aliases} <= {"new", f"model:{model.name}"}
    assert [alias.alias for alias in aliases if alias.review] == sorted(found["review"])
