"""The shipped model: what its file says, and that it answers in the product's form."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search.answer import Outcome, parse
from slm import MODEL
from slm.corpus.samples import Maker
from slm.export import BLOCK, q8_0
from slm.tokenizer import TEMPLATE, Tokenizer

pytestmark = pytest.mark.model


def answer(llama: Any, text: str) -> str:
    result = llama.create_chat_completion(
        messages=[{"role": "user", "content": text}], temperature=0.0, max_tokens=1200
    )
    return str(result["choices"][0]["message"]["content"])


def test_the_file_says_what_it_is(llama: Any) -> None:
    assert MODEL.stat().st_size <= 10_000_000
    facts = llama.metadata
    assert "demonstration" in facts["general.name"]
    assert facts["general.license"] == "Apache-2.0"
    assert facts["tokenizer.chat_template"] == TEMPLATE
    assert facts["llama.context_length"] == "4096"
    assert len(facts["regraph.corpus_sha256"]) == 64
    assert "no general code model" in facts["general.description"]


def test_it_refuses_what_cannot_be_done(llama: Any, tokenizer: Tokenizer) -> None:
    maker = Maker(random.Random(31), tokenizer.words())
    refused = 0
    for _ in range(8):
        refused += parse(answer(llama, maker.refuse().prompt)).outcome is Outcome.UNSUITABLE
    assert refused >= 7


def test_it_rewrites_fresh_programs(llama: Any, tokenizer: Tokenizer) -> None:
    """Greedy answers to unseen programs equal the generator's own code in most cases, and are always readable."""
    maker = Maker(random.Random(32), tokenizer.words())
    equal = 0
    asked = 0
    while asked < 8:
        sample = maker.draw()
        if sample.form != "rewrite" or len(sample.prompt) > 5000:
            continue
        asked += 1
        parsed = parse(answer(llama, sample.prompt), given=sample.before)
        assert parsed.outcome in (Outcome.ANSWERED, Outcome.UNSUITABLE)
        equal += parsed.code.strip() == sample.after.strip()
    assert equal >= 5


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1e3))
@settings(max_examples=30)
def test_q8_0_is_close(seed: int, size: float) -> None:
    """A value comes back within half a step (its block's largest over 127) and the scale's float16 rounding."""
    weights = (np.random.default_rng(seed).standard_normal((3, 2 * BLOCK)) * size).astype(np.float32)
    packed = q8_0(weights).reshape(3, 2, 2 + BLOCK)
    scale = packed[:, :, :2].copy().view(np.float16).astype(np.float32)
    values = packed[:, :, 2:].view(np.int8).astype(np.float32) * scale
    limit = np.abs(weights.reshape(3, 2, BLOCK)).max(-1, keepdims=True) / 127
    assert (np.abs(values - weights.reshape(3, 2, BLOCK)) <= limit * 0.6 + 127 * limit * 2**-10 + 1e-6).all()
