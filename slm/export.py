"""Write the network as GGUF: f16 or q8_0, with the tokenizer, the chat template and honest metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slm.tokenizer import SPACE, TEMPLATE, Tokenizer

BLOCK = 32  # weights that share one scale in Q8_0
NAME = "regraph demonstration model"
DESCRIPTION = (
    "A tiny model that shows how regraph works: it rewrites small kernels in the style of its synthetic corpus. "
    "It is no general code model; use a larger one for real work."
)


def q8_0(weights: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Rows of Q8_0 blocks (a float16 scale and 32 int8 values each) of a matrix whose width is a multiple of 32."""
    rows = weights.shape[0]
    blocks = weights.reshape(rows, -1, BLOCK)
    scale = (np.abs(blocks).max(-1, keepdims=True) / 127).astype(np.float32)
    inverse = np.where(scale > 0, 1 / np.maximum(scale, 1e-30), 0)
    values = np.round(blocks * inverse).clip(-127, 127).astype(np.int8)
    packed = np.empty((rows, blocks.shape[1], 2 + BLOCK), np.uint8)
    packed[:, :, :2] = scale.astype(np.float16).view(np.uint8).reshape(rows, -1, 2)
    packed[:, :, 2:] = values.view(np.uint8)
    return packed.reshape(rows, -1)


def _vocabulary(writer: Any, tokenizer: Tokenizer) -> None:
    import gguf

    model = tokenizer.model
    tokens, scores, kinds = [], [], []
    for k in range(tokenizer.size):
        piece, kind = model.id_to_piece(k), gguf.TokenType.NORMAL
        if model.is_unknown(k):
            kind = gguf.TokenType.UNKNOWN
        elif model.is_control(k):
            kind = gguf.TokenType.CONTROL
        elif model.is_byte(k):
            kind = gguf.TokenType.BYTE
        elif model.get_score(k) == 0.0 and ("\n" in piece or k < FIXED_LIMIT) and not model.is_byte(k):
            kind = gguf.TokenType.USER_DEFINED
            piece = piece.replace(SPACE, " ")
        tokens.append(piece.encode("utf-8"))
        scores.append(model.get_score(k))
        kinds.append(kind)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_eos_token_id(tokenizer.end)
    writer.add_unk_token_id(model.unk_id())
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)


def read(path: Path, tokenizer: Tokenizer) -> tuple[dict[str, NDArray[np.float32]], dict[str, int]]:
    """The weights of a GGUF that ``write`` made, and its ``Shape.as_dict()``; ValueError for another tokenizer's."""
    import gguf

    reader = gguf.GGUFReader(str(path))
    pieces = [piece.replace(" ", SPACE) for piece in reader.fields["tokenizer.ggml.tokens"].contents()]
    if pieces != [tokenizer.model.id_to_piece(k) for k in range(tokenizer.size)]:
        raise ValueError(f"{path}: its pieces are not those of the tokenizer beside the model; train from scratch")

    def number(key: str) -> int:
        return int(reader.fields[f"llama.{key}"].contents())

    shape = {
        "vocabulary": number("vocab_size"),
        "width": number("embedding_length"),
        "layers": number("block_count"),
        "heads": number("attention.head_count"),
        "hidden": number("feed_forward_length"),
        "context": number("context_length"),
    }
    found = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float32) for t in reader.tensors}
    return found, shape


FIXED_LIMIT = 2 + 128  # user-defined pieces stand directly after the two marks


def write(
    target: Path,
    tensors: dict[str, NDArray[np.float32]],
    shape: dict[str, int],
    tokenizer: Tokenizer,
    *,
    quantised: bool,
    facts: dict[str, str],
) -> None:
    """Write ``target``; ``shape`` is ``Shape.as_dict()``; ``facts`` become metadata under ``regraph.``."""
    import gguf

    writer = gguf.GGUFWriter(str(target), "llama")
    writer.add_name(NAME)
    writer.add_description(DESCRIPTION)
    writer.add_license("Apache-2.0")
    writer.add_organization("regraph")
    writer.add_context_length(shape["context"])
    writer.add_embedding_length(shape["width"])
    writer.add_block_count(shape["layers"])
    writer.add_feed_forward_length(shape["hidden"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["heads"])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape["width"] // shape["heads"])
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(shape["vocabulary"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0 if quantised else gguf.LlamaFileType.MOSTLY_F16)
    for key, value in facts.items():
        writer.add_string(f"regraph.{key}", value)
    _vocabulary(writer, tokenizer)
    for name in sorted(tensors):
        weights = tensors[name]
        if weights.ndim == 1:
            writer.add_tensor(name, weights.astype(np.float32))
        elif quantised:
            writer.add_tensor(name, q8_0(weights), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(name, weights.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
