"""Any chat model of LangChain, by its provider and name."""

from __future__ import annotations

from typing import Any

from regraph_db.errors import EnvironmentFault
from search.generators.generator import Answer, Generator, GeneratorFault, Prompt, Sampling
from search.settings import SearchSettings

_CUT = {"length", "max_tokens", "MAX_TOKENS"}
#: Words in an error that say that the prompt was too long.
_TOO_LONG = ("context length", "context_length", "maximum context", "too many tokens", "prompt is too long")


class LangChainGenerator(Generator):
    """A chat model behind LangChain. It may be called from several threads at once; seeds are passed where it takes
    them."""

    def __init__(self, model: Any, name: str) -> None:
        self.name = name
        self._model = model

    @classmethod
    def open(cls, provider: str, name: str, settings: SearchSettings) -> LangChainGenerator:
        """Through ``init_chat_model``. Raises :class:`EnvironmentFault` when a library or its credentials are
        missing."""
        try:
            from langchain.chat_models import init_chat_model
        except ImportError:
            raise EnvironmentFault("LangChain is not installed.", fix="pip install 'regraph[langchain]'") from None
        try:
            model = init_chat_model(
                name,
                model_provider=provider,
                temperature=settings.temperature,
                timeout=settings.generator_seconds,
                max_retries=0,
            )
        except Exception as error:  # every provider has its own
            raise EnvironmentFault(
                f"the model cannot be opened: {error}", where=f"langchain:{provider}/{name}"
            ) from None
        return cls(model, f"langchain:{provider}/{name}")

    def generate(self, prompt: Prompt, sampling: Sampling) -> Answer:
        last: Exception | None = None
        for left_out, text in prompt.forms:
            try:
                message = self._model.invoke(text, max_tokens=sampling.max_tokens)
            except Exception as error:  # every provider has its own
                last = error
                if any(word in str(error).lower() for word in _TOO_LONG):
                    continue
                raise GeneratorFault(f"{self.name}: {error}") from error
            return _answer(message, left_out)
        raise GeneratorFault(f"{self.name}: {last}") from last


def _answer(message: Any, left_out: str) -> Answer:
    content = message.content
    if not isinstance(content, str):  # a list of parts
        content = "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)
    about = message.response_metadata
    usage = message.usage_metadata or {}
    return Answer(
        text=content,
        cut=about.get("finish_reason", about.get("stop_reason")) in _CUT,
        left_out=left_out,
        prompt_tokens=int(usage.get("input_tokens", 0)),
        tokens=int(usage.get("output_tokens", 0)),
    )
