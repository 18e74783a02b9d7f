"""Small models that write code: llama.cpp in this process, or any LangChain chat model."""

from search.generators.generator import Answer, Generator, GeneratorFault, Prompt, Sampling
from search.generators.opening import open_generator

__all__ = ["Answer", "Generator", "GeneratorFault", "Prompt", "Sampling", "open_generator"]
