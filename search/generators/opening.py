"""From ``--model`` to a generator."""

from __future__ import annotations

from pathlib import Path

from regraph_db.errors import EnvironmentFault, InputError
from search.generators.generator import Generator
from search.settings import SearchSettings

LANGCHAIN = "langchain:"


def open_generator(model: str | None, settings: SearchSettings) -> Generator:
    """``FILE.gguf`` in this process, or ``langchain:PROVIDER/NAME``.

    Raises :class:`EnvironmentFault` when no model is named, the file is missing or broken, or its library is not there.
    """
    if not model:
        raise EnvironmentFault("no model is named.", fix="Give --model FILE.gguf or --model langchain:PROVIDER/NAME.")
    if model.startswith(LANGCHAIN):
        from search.generators.langchain import LangChainGenerator

        provider, slash, name = model.removeprefix(LANGCHAIN).partition("/")
        if not (provider and slash and name):
            raise InputError("a LangChain model is named langchain:PROVIDER/NAME.", where=model)
        return LangChainGenerator.open(provider, name, settings)
    from search.generators.llama_cpp import LlamaCpp

    return LlamaCpp.open(Path(model).expanduser(), settings)
