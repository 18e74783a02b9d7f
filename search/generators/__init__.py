"""Whatever writes code: a GGUF file hosted by llama.cpp in this process, or any chat model that LangChain reaches."""

from __future__ import annotations

from regraph_db.errors import InputError
from search.generators.interface import Completion, Generator, Sampling

__all__ = ["Completion", "Generator", "Sampling", "open_generator"]

LANGCHAIN = "langchain:"


def open_generator(name: str, *, threads: int | None = None) -> Generator:
    """The generator that ``--model`` names: ``FILE.gguf`` or ``langchain:PROVIDER/NAME``.

    Raises :class:`InputError` for a name of neither kind, :class:`EnvironmentFault` for a file or package that is missing.
    """
    if name.startswith(LANGCHAIN):
        from search.generators.langchain import LangChainGenerator

        return LangChainGenerator(name.removeprefix(LANGCHAIN))
    if name.endswith(".gguf"):
        from search.generators.llama_cpp import LlamaCppGenerator

        return LlamaCppGenerator(name, threads=threads)
    raise InputError(f"`{name}` names no model.", where="--model", fix="Use FILE.gguf or langchain:PROVIDER/NAME.")
