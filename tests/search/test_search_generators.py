"""Real generators: the demonstration model in llama.cpp, and LangChain's own fake chat model."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from search_doubles import FakeJudge, Faulty, trajectories

from regraph_db.errors import EnvironmentFault
from regraph_db.opening import open_store
from regraph_db.settings import load
from search import prompt, run_search
from search.answer import Outcome, parse
from search.generators import Answer, Generator, GeneratorFault, Prompt, Sampling, open_generator
from search.generators.generator import CODE_GRAMMAR, example_forms
from search.generators.langchain import LangChainGenerator
from search.patience import answer
from search.settings import SearchSettings
from slm import MODEL
from verify import Task, load_task

CODE = load_task("saxpy").reference


@pytest.fixture(scope="module")
def model() -> Iterator[Generator]:
    opened = open_generator(str(MODEL), SearchSettings(threads=1, context=1024))
    yield opened
    opened.close()


def rewriting(before: str = "", after: str = "") -> Prompt:
    return Prompt(
        [
            (left_out, prompt.rewrite("loop unrolling", "by four", CODE, before=one, after=other))
            for left_out, one, other in example_forms(before, after)
        ]
    )


@pytest.mark.model
class TestLlamaCpp:
    def test_the_grammar_holds_and_the_seed_decides(self, model: Generator) -> None:
        asked = Prompt([("", prompt.standard(CODE))], CODE_GRAMMAR)
        first = model.generate(asked, Sampling(7, max_tokens=400))
        assert first.text.startswith("suitable: yes\n```")
        assert parse(first.text, cut=first.cut).outcome in (Outcome.ANSWERED, Outcome.TRUNCATED)
        model.generate(rewriting(), Sampling(1, max_tokens=8))
        assert model.generate(asked, Sampling(7, max_tokens=400)).text == first.text

    def test_a_limit_of_tokens_or_seconds_cuts(self, model: Generator) -> None:
        asked = Prompt([("", prompt.standard(CODE))], CODE_GRAMMAR)
        short = model.generate(asked, Sampling(1, max_tokens=12))
        assert (short.cut, short.tokens) == (True, 12)
        assert parse(short.text, cut=True).outcome is Outcome.TRUNCATED
        assert model.generate(asked, Sampling(1, max_tokens=400, seconds=1e-6)).cut

    def test_examples_are_shortened_then_dropped_and_it_is_said(self, model: Generator) -> None:
        line = "    total[index] += weights[index] * inputs[index];\n"
        commented = "// a comment of many words that helps nobody at all here\n" * 60
        assert model.generate(rewriting(line, line), Sampling(1, max_tokens=4)).left_out == ""
        shortened = model.generate(rewriting(commented + line, commented + line), Sampling(1, max_tokens=4))
        assert shortened.left_out == "example shortened"
        dropped = model.generate(rewriting(line * 400, line * 400), Sampling(1, max_tokens=4))
        assert dropped.left_out == "example dropped"

    def test_code_that_does_not_fit_at_all_is_a_fault(self, model: Generator) -> None:
        with pytest.raises(GeneratorFault, match="the context has 1024"):
            model.generate(Prompt([("", prompt.standard(CODE * 60))]), Sampling(1))

    def test_threads_take_turns(self, model: Generator) -> None:
        answers: list[Answer] = []

        def ask() -> None:
            answers.append(model.generate(rewriting(), Sampling(3, max_tokens=20)))

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({one.text for one in answers}) == 1


@pytest.mark.model
class TestModelFiles:
    @pytest.mark.parametrize("share", [0.0001, 0.02, 0.5, 0.99, 0.9999])
    def test_a_truncated_model_is_named_wherever_it_ends(self, share: float, tmp_path: Path) -> None:
        whole = MODEL.read_bytes()
        path = tmp_path / "cut.gguf"
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(EnvironmentFault, match=r"truncated|cannot load|not a GGUF") as caught:
            open_generator(str(path), SearchSettings(threads=1, context=256)).close()
        assert caught.value.where == str(path)
        assert caught.value.exit_code == 3

    def test_a_model_of_noise_is_named(self, tmp_path: Path) -> None:
        path = tmp_path / "noise.gguf"
        path.write_bytes(MODEL.read_bytes()[:64] + bytes(range(256)) * 4096)
        with pytest.raises(EnvironmentFault) as caught:
            open_generator(str(path), SearchSettings(threads=1))
        assert caught.value.where == str(path)


@pytest.mark.model
def test_a_search_says_which_prompts_did_not_fit(model: Generator, task: Task, tmp_path: Path) -> None:
    """The context is that of the module's model, 1,024 tokens; every example is longer."""
    long = "    total[index] += weights[index] * inputs[index];\n" * 400
    with open_store(load(), url=f"sqlite:///{tmp_path}/graph.db", create=True) as store:
        for one in trajectories():
            steps = tuple(step.model_copy(update={"code": long + step.code}) for step in one.steps)
            store.merge_trajectories([one.model_copy(update={"source": long, "steps": steps})])
        settings = SearchSettings(budget=3, max_tokens=24)
        found = run_search(task, generator=model, judge=FakeJudge(), store=store, settings=settings)
    assert found.calls == 3
    assert "example dropped in 3 prompts, which did not fit the context" in found.notes


@pytest.mark.model
def test_the_same_seed_and_model_write_the_same_candidates_on_the_same_path(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Each time from a freshly loaded model and an empty search, as one runner of a user has it; on a function that the
    model is unsure of, and hot, because it answers simple ones alike whatever the seed."""
    seen = []
    task = load_task("hamming_distance")
    settings = SearchSettings(budget=4, max_tokens=400, threads=1, context=2048, temperature=1.5, top_p=1.0)
    for seed in (1, 1, 2):
        generator = open_generator(str(MODEL), settings)
        url = f"sqlite:///{tmp_path_factory.mktemp('graph')}/graph.db"
        with open_store(load(), url=url, create=True) as store:
            store.merge_trajectories(trajectories())
            found = run_search(task, generator=generator, judge=FakeJudge(), store=store, settings=settings, seed=seed)
        generator.close()
        seen.append([(a.source, a.target, a.outcome, a.code) for a in found.attempts])
    assert any(code for *_, code in seen[0])
    assert seen[0] == seen[1]
    assert seen[0] != seen[2]


def chat(*messages: object) -> LangChainGenerator:
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel

    return LangChainGenerator(GenericFakeChatModel(messages=iter(messages)), "langchain:fake/model")


def test_langchain_answers_and_cuts() -> None:
    from langchain_core.messages import AIMessage

    cut = AIMessage(content="suitable: yes\n```", response_metadata={"finish_reason": "length"})
    parts = AIMessage(content=[{"type": "text", "text": "suitable: "}, {"type": "text", "text": "no"}])
    model = chat(cut, parts)
    assert model.generate(rewriting(), Sampling(1)) == Answer("suitable: yes\n```", cut=True)
    assert model.generate(rewriting(), Sampling(1)).text == "suitable: no"
    with pytest.raises(GeneratorFault):
        model.generate(rewriting(), Sampling(1))


def test_langchain_drops_the_example_when_the_provider_says_that_it_is_too_long() -> None:
    class Short:
        def invoke(self, text: str, **_: object) -> object:
            from langchain_core.messages import AIMessage

            if "## Example before" in text:
                raise ValueError("this model's maximum context length is 512 tokens")
            return AIMessage(content="suitable: no")

    found = LangChainGenerator(Short(), "short").generate(rewriting("int a;", "int b;"), Sampling(1))
    assert (found.text, found.left_out) == ("suitable: no", "example dropped")


def test_an_unknown_provider_is_an_environment_fault() -> None:
    with pytest.raises(EnvironmentFault, match="langchain:nowhere/x"):
        open_generator("langchain:nowhere/x", SearchSettings())


def test_a_generator_that_raises_is_tried_again_with_a_limit() -> None:
    generator = Faulty("raises")
    with pytest.raises(GeneratorFault, match="out of order"):
        answer(generator, rewriting(), Sampling(1), retries=2, backoff=0.0)
    assert generator.calls == 3


def test_a_generator_that_hangs_is_left_behind_once() -> None:
    generator = Faulty("hangs")
    with pytest.raises(GeneratorFault, match="no answer within"):
        answer(generator, rewriting(), Sampling(1, seconds=0.01), retries=2, backoff=0.0)
    assert generator.calls == 1
