"""Any chat model that LangChain reaches: ``langchain:PROVIDER/NAME``, e.g. ``langchain:ollama/qwen2.5-coder``.

Keys come from the environment, as each provider's package reads them; none is taken as an argument or written anywhere.
"""

from __future__ import annotations

from typing import Any

from regraph_db.errors import EnvironmentFault, InputError
from search.generators.interface import Completion, Generator, Sampling


class LangChainGenerator(Generator):
    """A chat model behind ``langchain.chat_models.init_chat_model``."""

    def __init__(self, name: str) -> None:
        provider, _, model = name.partition("/")
        if not model:
            raise InputError(f"`{name}` lacks the provider.", where="--model", fix="Write langchain:PROVIDER/NAME.")
        try:
            from langchain.chat_models import init_chat_model
        except ImportError:
            raise EnvironmentFault("LangChain is not installed.", fix="pip install 'regraph[langchain]'") from None
        try:
            self._make = lambda **options: init_chat_model(model, model_provider=provider, **options)
            self._make(temperature=0.0)
        except ImportError as error:
            raise EnvironmentFault(f"{error}", where=f"langchain:{name}") from None
        except ValueError as error:
            raise InputError(f"{error}", where=f"langchain:{name}") from None
        self.name = name

    def complete(self, prompt: str, sampling: Sampling) -> Completion:
        model = self._make(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            timeout=sampling.seconds,
        )
        message: Any = model.invoke(prompt)
        text = message.content if isinstance(message.content, str) else str(message.text)
        reason = message.response_metadata.get("finish_reason") or message.response_metadata.get("done_reason")
        return Completion(text, truncated=reason == "length")
