"""The model's tokenizer: sentencepiece BPE with byte fallback, and the marks that no text can forge.

Newlines with their indentation and the fixed sentences of ``search/prompts/`` are pieces of their own, so that the
general prompt costs about twenty tokens. The marks (end of text, unknown) are Unicode noncharacters; the chat
template removes those from every message, so a user's text can never hold one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from importlib.resources import files
from itertools import chain
from pathlib import Path

import sentencepiece

SPACE = "▁"  # how sentencepiece writes a space
UNKNOWN, END = "\ufdd0", "\ufdd1"
ANSWERS = ("suitable: yes", "suitable: no", "```cuda", "```")
# llama-cpp-python drops pieces of more than 32 bytes when it writes text, so 30 spaces are the longest here.
INDENTS = tuple("\n" + SPACE * k for k in range(0, 31, 2))
PROMPTS = ("rewrite", "standard", "cot", "fsr", "example", "feedback")
# Frequent words of CUDA. None begins where another one ends, so that the leftmost match (sentencepiece) and the
# longest match (llama.cpp) cut a text alike.
WORDS = (
    "#include <cuda_runtime.h>",
    'extern "C" void',
    "__global__ void",
    "__launch_bounds__",
    "__restrict__",
    "__shared__",
    "__syncthreads();",
    "blockIdx.",
    "threadIdx.",
    "blockDim.",
    "gridDim.",
    "reinterpret_cast<",
    "static_cast<",
    "__shfl_down_sync(",
    "__shfl_xor_sync(",
    "0xffffffff",
    "atomicAdd(",
    "cudaMemset",
    "__ldg(",
    "#pragma unroll",
    "__device__ __forceinline__",
    "std::",
    "sizeof(",
    "cudaDeviceSynchronize();",
)
# A name is cut alike wherever it stands, or a small network must learn each of its spellings before it can copy it: so
# no learnt piece holds a space, and the frequent signs carry those around them.
SIGNS = ("=", "+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "&&", "||", "?", ":")
SPACED = (
    *(f" {sign} " for sign in (*SIGNS, "&", "|", "^", "<<", ">>")),
    *("const float* ", "const int* ", "const double* ", "float* ", "double* "),
    *("const float ", "const int ", "const double "),
    *(", int ", ", float ", ", const float* ", ", const int* ", ", float* ", ", int* "),
    *(", ", "; ", " {", "for (int ", "if (", "return "),
)
TEMPLATE = (
    "{%- for message in messages -%}{{ message['content'] | replace('"
    + END
    + "', '') | replace('"
    + UNKNOWN
    + "', '') }}"
    "{{ '\\n' }}{%- if message['role'] == 'assistant' -%}{{ '" + END + "' }}{%- endif -%}{%- endfor -%}"
)
TOKENIZER = Path(__file__).resolve().parent / "model" / "tokenizer.model"


def rendered(prompt: str) -> str:
    """What the chat template makes of ``prompt`` as the only user message."""
    return prompt.replace(END, "").replace(UNKNOWN, "") + "\n"


def fixed_lines() -> list[str]:
    """The lines of the prompt files without a field, which become single pieces; longest first."""
    found: set[str] = set(ANSWERS)
    for name in PROMPTS:
        for line in files("search").joinpath(f"prompts/{name}.txt").read_text(encoding="utf-8").splitlines():
            if line.strip() and "${" not in line:
                found.add(line.strip())
    return sorted(found, key=lambda line: (-len(line), line))


def train(texts: Iterable[str], target: Path, size: int) -> None:
    """Learn ``size`` pieces from ``texts``; write ``target`` (a sentencepiece model file)."""
    pieces = [*fixed_lines(), *WORDS, *SPACED]
    cut = re.compile("|".join(re.escape(p) for p in pieces))
    words = (word for text in texts for word in cut.sub("\n", text).split())
    every = (chr(code) * 3 for code in range(33, 127))  # every printable character, so that none needs bytes
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=chain(words, every),  # and no files, whose paths would stand in the model
        model_writer=model,
        model_type="bpe",
        vocab_size=size,
        byte_fallback=True,
        split_digits=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        allow_whitespace_only_pieces=True,
        user_defined_symbols=[*(p.replace(" ", SPACE) for p in pieces), SPACE, *INDENTS],
        character_coverage=1.0,
        max_sentence_length=20000,
        input_sentence_size=300000,
        shuffle_input_sentence=True,
        unk_piece=UNKNOWN,
        eos_piece=END,
        unk_id=0,
        eos_id=1,
        bos_id=-1,
        pad_id=-1,
        num_threads=2,
        minloglevel=1,
    )
    target.write_bytes(model.getvalue())


class Tokenizer:
    """Encodes and decodes; ids fit in 16 bits."""

    def __init__(self, path: Path = TOKENIZER) -> None:
        self.model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        self.end: int = self.model.eos_id()
        self.size: int = self.model.get_piece_size()

    def encode(self, text: str) -> list[int]:
        return list(self.model.encode(text))

    def decode(self, ids: list[int]) -> str:
        return str(self.model.decode(ids))

    def words(self) -> list[str]:
        """Pieces that are made of letters: the stuff of invented names."""
        pieces = (self.model.id_to_piece(k).replace(SPACE, "") for k in range(self.size))
        return sorted({p for p in pieces if re.fullmatch(r"[A-Za-z][a-z0-9]{0,8}|[A-Z]{2,6}", p)})
