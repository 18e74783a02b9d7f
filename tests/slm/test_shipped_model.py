"""The shipped model: what its file says, and that it answers in the product's form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search.answer import Outcome, parse
from slm import MODEL
from slm.corpus.trials import trials
from slm.export import BLOCK, q8_0, read, write
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
    refused = 0
    for sample in trials("refuse", 8, "shipped", tokenizer.words()):
        refused += parse(answer(llama, sample.prompt)).outcome is Outcome.UNSUITABLE
    assert refused >= 7


@pytest.mark.parametrize("name", ["seen", "families"])
def test_it_rewrites_fresh_programs(llama: Any, tokenizer: Tokenizer, name: str) -> None:
    """Greedy answers to fresh programs, of families that it was trained on and of others, are mostly the generator's
    own code to the letter, idiom and all (the card has their share of right ones, which is larger)."""
    equal = 0
    for sample in trials(name, 8, "shipped", tokenizer.words()):
        parsed = parse(answer(llama, sample.prompt), given=sample.before)
        assert parsed.outcome in (Outcome.ANSWERED, Outcome.UNSUITABLE)
        equal += parsed.code.strip() == sample.after.strip()
    assert equal >= 6


def test_a_file_is_read_back(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """What a training goes on from is what an earlier one wrote."""
    pytest.importorskip("gguf")
    rng = np.random.default_rng(5)
    shape = {"vocabulary": tokenizer.size, "width": 32, "layers": 1, "heads": 2, "hidden": 64, "context": 128}
    weights = {
        "token_embd.weight": rng.standard_normal((tokenizer.size, 32)).astype(np.float32),
        "output_norm.weight": rng.standard_normal(32).astype(np.float32),
    }
    for quantised, error in ((False, 2e-3), (True, 0.05)):
        path = tmp_path / f"{quantised}.gguf"
        write(path, weights, shape, tokenizer, quantised=quantised, facts={})
        found, written = read(path, tokenizer)
        assert written == shape
        assert found.keys() == weights.keys()
        for name, values in weights.items():
            assert np.abs(found[name] - values).max() < error


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
