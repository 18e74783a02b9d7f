"""llama.cpp in this process: the model's own chat template, a grammar, the prefix cache."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from regraph_db.errors import EnvironmentFault
from search.generators.generator import Answer, Generator, GeneratorFault, Prompt, Sampling
from search.generators.gguf import check_gguf, identity
from search.settings import SearchSettings

#: Tokens of context taken by default, however long the model was trained for: memory grows with them.
LARGEST_CONTEXT = 16384
#: Tokens that an answer needs at least; a prompt that leaves fewer does not fit.
LEAST_ANSWER = 64
#: A prompt may take this share of the context before its example is shortened.
PROMPT_SHARE = 0.7


class LlamaCpp(Generator):
    """One loaded GGUF. The object of llama.cpp crashes when two threads use it, so one lock guards it; the prefix
    that two prompts in a row share is not computed again."""

    def __init__(self, model: Any, name: str) -> None:
        self.name = name
        self._model = model
        self._lock = threading.Lock()
        self._closing = False
        self._grammars: dict[str, Any] = {}
        self._template = _template(model)
        self.context = int(model.n_ctx())

    @classmethod
    def open(cls, path: Path, settings: SearchSettings) -> LlamaCpp:
        """Load a model file. Raises :class:`EnvironmentFault` when it is missing, broken, or llama-cpp-python is."""
        trained = check_gguf(path)
        try:
            from llama_cpp import Llama
        except ImportError:
            raise EnvironmentFault("llama-cpp-python is not installed.", fix="pip install 'regraph[llama]'") from None
        context = settings.context or min(trained or 4096, LARGEST_CONTEXT)
        threads = settings.threads_each(1)
        options = {
            "n_threads": threads,
            "n_threads_batch": threads,  # left alone it is every core, which several runners on one machine fight over
            "n_gpu_layers": settings.gpu_layers,
            "verbose": False,
        }
        try:
            model = Llama(str(path), n_ctx=context, n_batch=min(512, context), **options)
        except (ValueError, RuntimeError, AssertionError, OSError) as error:
            raise EnvironmentFault(f"llama.cpp cannot load the model: {error}.", where=str(path)) from None
        return cls(model, identity(path))

    def generate(self, prompt: Prompt, sampling: Sampling) -> Answer:
        with self._lock:
            left_out, tokens = self._fitting(prompt, sampling)
            deadline = time.monotonic() + sampling.seconds
            late = False

            def stop(_tokens: Any, _scores: Any) -> bool:
                nonlocal late
                late = self._closing or time.monotonic() > deadline
                return late

            try:
                result = self._model.create_completion(
                    prompt=tokens,
                    max_tokens=min(sampling.max_tokens, self.context - len(tokens) - 1),
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    seed=sampling.seed & 0x7FFFFFFF,
                    grammar=self._grammar(prompt.grammar),
                    stopping_criteria=_criteria(stop),
                )
            except (ValueError, RuntimeError) as error:
                raise GeneratorFault(f"llama.cpp: {error}") from error
        choice = result["choices"][0]
        return Answer(
            text=choice["text"],
            cut=late or choice["finish_reason"] == "length",
            left_out=left_out,
            prompt_tokens=len(tokens),
            tokens=int(result["usage"]["completion_tokens"]),
        )

    def close(self) -> None:
        self._closing = True  # an answer that nobody waits for ends at its next token
        with self._lock:
            self._model.close()

    def _fitting(self, prompt: Prompt, sampling: Sampling) -> tuple[str, list[int]]:
        """The first form that leaves room for an answer, as tokens."""
        room = min(
            self.context - LEAST_ANSWER, max(int(self.context * PROMPT_SHARE), self.context - sampling.max_tokens)
        )
        tokens: list[int] = []
        for left_out, text in prompt.forms:
            tokens = self._tokens(text)
            if len(tokens) <= room:
                return left_out, tokens
        if len(tokens) <= self.context - LEAST_ANSWER:
            return left_out, tokens
        raise GeneratorFault(
            f"the prompt takes {len(tokens)} tokens even without an example; the context has {self.context}"
        )

    def _tokens(self, text: str) -> list[int]:
        rendered, add_bos = self._template(text)
        return list(self._model.tokenize(rendered.encode(), add_bos=add_bos, special=True))

    def _grammar(self, text: str) -> Any:
        if text and text not in self._grammars:
            from llama_cpp import LlamaGrammar

            self._grammars[text] = LlamaGrammar.from_string(text, verbose=False)
        return self._grammars.get(text)


def _criteria(stop: Any) -> Any:
    from llama_cpp import StoppingCriteriaList

    return StoppingCriteriaList([stop])


def _template(model: Any) -> Any:
    """``text -> (what the model reads, whether the tokenizer adds its begin mark)`` by the chat template of the
    file."""
    template = model.metadata.get("tokenizer.chat_template")
    if not template:
        return lambda text: (text + "\n", True)
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    begin, end = (_piece(model, token) for token in (model.token_bos(), model.token_eos()))
    formatter = Jinja2ChatFormatter(template=template, eos_token=end, bos_token=begin)

    def render(text: str) -> tuple[str, bool]:
        rendered = formatter(messages=[{"role": "user", "content": text}]).prompt
        return rendered, not (begin and rendered.startswith(begin))

    return render


def _piece(model: Any, token: int) -> str:
    return str(model._model.token_get_text(token)) if token != -1 else ""
