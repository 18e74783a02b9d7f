"""Fixtures of the demonstration model's tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from slm import MODEL
from slm.tokenizer import Tokenizer


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    pytest.importorskip("sentencepiece")
    return Tokenizer()


@pytest.fixture(scope="session")
def llama() -> Iterator[Any]:
    """The shipped model in llama.cpp, one thread."""
    llama_cpp = pytest.importorskip("llama_cpp")
    model = llama_cpp.Llama(str(MODEL), n_ctx=4096, n_threads=1, n_threads_batch=1, verbose=False)
    yield model
    model.close()
