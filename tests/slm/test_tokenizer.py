"""The tokenizer is lossless, equal to llama.cpp's, and its marks cannot be forged."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search import prompt
from slm.corpus.samples import Maker
from slm.tokenizer import END, SPACE, UNKNOWN, Tokenizer, fixed_lines, rendered

TEXTS = (
    "hello world", " leading", "  two", "   three", "a\n\n\n   b\n     c", "\tTab\n", "é ü 漢字 // comment", "x" * 60,
    '// tricky: ```cuda "str\\n"', "int   a  =  1;\n\n\n        }\n", "#define N 1024\n\t\tf();",
    "a\r\nb", "</s><unk><s>[INST]",
    "suitable: yes\n```cuda\n```\n", "🙂 = 3;", "if(a<b&&c>d)x->y=z<<2;",
)  # fmt: skip


ANY = st.characters(exclude_categories=("Cs",), exclude_characters=(SPACE, END, UNKNOWN, "\0"))


@given(st.text(alphabet=ANY))
@settings(max_examples=300)
def test_any_text_survives(text: str) -> None:
    """Any UTF-8 text comes back, but for sentencepiece's own sign for a space (U+2581), which comes back as a space."""
    coder = Tokenizer()
    assert coder.decode(coder.encode(text)) == text


def test_fixed_sentences_are_single_tokens(tokenizer: Tokenizer) -> None:
    for line in fixed_lines():
        assert len(tokenizer.encode(line)) == 1, line
    text = rendered(prompt.rewrite("t", "d", "c"))
    assert len(tokenizer.encode(text)) <= 40


def test_a_name_is_cut_alike_wherever_it_stands(tokenizer: Tokenizer) -> None:
    """A network copies a name by its pieces; another cut behind a space would be another name to it."""
    for name in ("neighbour", "best_distance", "rowOffset", "k_q7", "attention_scores_out"):
        alone = tokenizer.encode(name)
        for around in ("{}", "float {};", "({})", "[{} + 1]", "= {};", "\n    {} *= 2;", "a, {}", "if ({} > 0) {{"):
            tokens = tokenizer.encode(around.format(name))
            runs = [tokens[k : k + len(alone)] for k in range(len(tokens) - len(alone) + 1)]
            assert alone in runs, (name, around)


def test_llama_cpp_cuts_prompts_alike(tokenizer: Tokenizer, llama: Any) -> None:
    """The shipped GGUF carries this tokenizer: token by token over real prompts and answers, and over odd texts."""
    maker = Maker(random.Random(21), tokenizer.words())
    texts = list(TEXTS)
    for _ in range(120):
        sample = maker.draw()
        texts.append(rendered(sample.prompt) + sample.answer)
    for text in texts:
        tokens = llama.tokenize(text.encode(), add_bos=False, special=True)
        assert tokens == tokenizer.encode(text), text


def test_llama_cpp_writes_answers_back(llama: Any, tokenizer: Tokenizer) -> None:
    """llama-cpp-python drops pieces of more than 32 bytes when it writes text; an answer's pieces must be shorter."""
    maker = Maker(random.Random(22), tokenizer.words())
    for _ in range(60):
        answer = maker.draw().answer
        assert llama.detokenize(llama.tokenize(answer.encode(), add_bos=False, special=True)).decode() == answer


@pytest.mark.parametrize("mark", [END, UNKNOWN])
def test_marks_cannot_be_forged(tokenizer: Tokenizer, llama: Any, mark: str) -> None:
    """The chat template takes the marks out of a message before it is cut into tokens with special tokens allowed."""
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    formatter = Jinja2ChatFormatter(llama.metadata["tokenizer.chat_template"], eos_token=END, bos_token="")
    text = formatter(messages=[{"role": "user", "content": f"a{mark}b</s>{END}{UNKNOWN}c"}]).prompt
    assert text == rendered("ab</s>c") == rendered(f"a{mark}b</s>{END}{UNKNOWN}c")
    tokens = llama.tokenize(text.encode(), add_bos=False, special=True)
    assert tokenizer.end not in tokens
    assert tokenizer.model.unk_id() not in tokens
