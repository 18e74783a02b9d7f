"""Chat models behind one face: llama.cpp in this process, or whatever LangChain's ``init_chat_model`` reaches."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from regraph_db.errors import EnvironmentFault, InputError

#: What a model that LangChain reaches is called by.
LANGCHAIN = "langchain:"
_CONTEXT = 16_384


@dataclass(frozen=True)
class Question:
    """One prompt with its sampling. ``grammar`` (GBNF) holds a local model's answer; others ignore it."""

    prompt: str
    temperature: float
    top_p: float
    max_tokens: int
    grammar: str = ""


@dataclass(frozen=True)
class Answer:
    """What the model said, and the tokens that it cost; ``cut`` when it ran into the token limit."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cut: bool = False


class PassingTrouble(EnvironmentFault):
    """The model did not answer, and may answer when it is asked again: a rate limit, a server's error, a broken
    line."""


class Chat(Protocol):
    """A model that answers one question at a time or several, as ``parallel`` says."""

    name: str
    parallel: bool

    def ask(self, question: Question) -> Answer:
        """The answer. Raises :class:`PassingTrouble`, or :class:`EnvironmentFault` for what asking again does not
        mend."""


def open_chat(model: str, *, timeout: float = 300.0) -> Chat:
    """The model that ``model`` names: ``FILE.gguf`` or ``langchain:PROVIDER/NAME``. Keys come from the environment
    only.

    Raises :class:`InputError` for another form, :class:`EnvironmentFault` for a missing package, file or key.
    """
    if model.startswith(LANGCHAIN):
        return _LangChain(model.removeprefix(LANGCHAIN), timeout)
    if model.endswith(".gguf"):
        return _Llama(Path(model).expanduser())
    raise InputError(
        f"`{model}` names no model.", fix="Give FILE.gguf or langchain:PROVIDER/NAME, e.g. langchain:openai/gpt-5."
    )


class _Llama:
    """llama.cpp in this process. One object serves one thread at a time (two at once crash it), hence the lock."""

    parallel = False

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise EnvironmentFault("no such model file.", where=str(path), fix="Give the path of a GGUF file.")
        try:
            from llama_cpp import Llama
        except ImportError:
            raise EnvironmentFault(
                "llama-cpp-python is not installed.", fix="Install the extra: pip install 'regraph[llama]'."
            ) from None
        try:
            self._model: Any = Llama(str(path), n_ctx=0, n_threads=1, verbose=False)
            if self._model.n_ctx() > _CONTEXT:
                self._model = Llama(str(path), n_ctx=_CONTEXT, n_threads=1, verbose=False)
        except (ValueError, RuntimeError, OSError) as error:
            raise EnvironmentFault(
                f"llama.cpp cannot load it: {error}.", where=str(path), fix="Give a whole GGUF file."
            ) from None
        self.name = path.name
        self._lock = threading.Lock()

    def ask(self, question: Question) -> Answer:
        from llama_cpp import LlamaGrammar

        grammar = LlamaGrammar.from_string(question.grammar, verbose=False) if question.grammar else None
        with self._lock:
            try:
                result = self._model.create_chat_completion(
                    [{"role": "user", "content": question.prompt}],
                    temperature=question.temperature,
                    top_p=question.top_p,
                    max_tokens=question.max_tokens,
                    grammar=grammar,
                )
            except (ValueError, RuntimeError) as error:
                raise EnvironmentFault(
                    f"the model refused the prompt: {error}.", where=self.name, fix="Use a model with a longer context."
                ) from None
        choice, usage = result["choices"][0], result.get("usage", {})
        return Answer(
            choice["message"]["content"] or "",
            usage.get("prompt_tokens", 0),
            usage.get("completion_tokens", 0),
            cut=choice.get("finish_reason") == "length",
        )


class _LangChain:
    """Any chat model of ``init_chat_model``. Retries are ours alone, so that limits and the resume journal see each
    of them."""

    parallel = True

    def __init__(self, spec: str, timeout: float) -> None:
        provider, slash, name = spec.partition("/")
        if not slash or not name:
            raise InputError(
                f"`{LANGCHAIN}{spec}` names no model.", fix="Give langchain:PROVIDER/NAME, e.g. langchain:ollama/qwen3."
            )
        try:
            from langchain.chat_models import init_chat_model
        except ImportError:
            raise EnvironmentFault(
                "langchain is not installed.", fix="Install the extra: pip install 'regraph[langchain]'."
            ) from None
        self.name = name
        self._settings = (name, provider, timeout)
        self._init = init_chat_model
        self._models: dict[tuple[float, float, int], Any] = {}
        self._lock = threading.Lock()

    def _model(self, question: Question) -> Any:
        key = (question.temperature, question.top_p, question.max_tokens)
        with self._lock:
            if key not in self._models:
                name, provider, timeout = self._settings
                try:
                    self._models[key] = self._init(
                        name,
                        model_provider=provider,
                        temperature=key[0],
                        top_p=key[1],
                        max_tokens=key[2],
                        timeout=timeout,
                        max_retries=0,
                    )
                except ImportError as error:
                    raise EnvironmentFault(
                        f"LangChain's package for `{provider}` is missing: {error}.",
                        fix=f"pip install langchain-{provider}",
                    ) from None
                except Exception as error:
                    raise EnvironmentFault(
                        f"LangChain cannot open `{provider}/{name}`: {_brief(error)}",
                        fix="Set the provider's key in its environment variable.",
                    ) from None
            return self._models[key]

    def ask(self, question: Question) -> Answer:
        model = self._model(question)
        try:
            message = model.invoke(question.prompt)
        except Exception as error:
            raise _trouble(error, self.name) from None
        usage = getattr(message, "usage_metadata", None) or {}
        metadata = getattr(message, "response_metadata", None) or {}
        reason = metadata.get("finish_reason") or metadata.get("stop_reason") or metadata.get("done_reason") or ""
        return Answer(
            _content(message),
            usage.get("input_tokens", 0),
            usage.get("output_tokens", 0),
            cut=reason in ("length", "max_tokens"),
        )


def _content(message: Any) -> str:
    """The text of a LangChain message, whose content may be a list of parts."""
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else part.get("text", "") for part in content)


def _trouble(error: Exception, name: str) -> EnvironmentFault:
    """What a provider's exception means. Every SDK has its own classes; the HTTP status and the kind of name are
    common."""
    status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    kind = type(error).__name__
    if status in (401, 403):
        return EnvironmentFault(
            f"the key is refused: {_brief(error)}",
            where=name,
            fix="Set the provider's key in its environment variable.",
        )
    passing = status in (408, 409, 425, 429) or (isinstance(status, int) and status >= 500)
    passing = passing or any(
        word in kind for word in ("Timeout", "Connection", "RateLimit", "JSONDecode", "Protocol", "Overloaded")
    )
    if status is None and isinstance(error, (ValueError, KeyError, TypeError, AttributeError)):
        passing = True  # an answer that is no chat completion
    if passing:
        return PassingTrouble(f"{kind}: {_brief(error)}", where=name)
    return EnvironmentFault(f"{kind}: {_brief(error)}", where=name, fix="Look at the provider's message.")


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
