"""The table of meanings from a sentence model's weights, here a tiny model of random ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ingest.relabel.distilling import DIMENSIONS, Encoder, distil

_INNER = 8


def _model(folder: Path, vocabulary: list[str], width: int) -> None:
    """Six layers of random weights as safetensors, and the vocabulary."""
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(vocabulary), width),
        "embeddings.position_embeddings.weight": (4, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for layer in range(6):
        at = f"encoder.layer.{layer}"
        linear = {
            "attention.self.query": (width, width),
            "attention.self.key": (width, width),
            "attention.self.value": (width, width),
            "attention.output.dense": (width, width),
            "intermediate.dense": (_INNER, width),
            "output.dense": (width, _INNER),
        }
        for name, shape in linear.items():
            shapes |= {f"{at}.{name}.weight": shape, f"{at}.{name}.bias": shape[:1]}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{at}.{name}.weight": (width,), f"{at}.{name}.bias": (width,)}
    header, content = {}, b""
    for name, shape in shapes.items():
        values = rng.normal(size=shape).astype(np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(content), len(content) + len(values)]}
        content += values
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + content)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")


def test_what_is_kept_tells_pieces_apart_as_the_model_does(tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(20)] + ["##ing"]
    _model(tmp_path, ["[CLS]", "[SEP]", "é", *words], width=DIMENSIONS)
    table = distil(tmp_path)
    assert table["pieces"].tobytes().decode().split("\n") == words  # no marks, no letters beyond a to z
    assert table["vectors"].shape == (21, DIMENSIONS) and table["vectors"].dtype == np.int8
    outputs = Encoder(tmp_path / "model.safetensors")(np.array([[0, i, 1] for i in range(3, 24)]))
    centred = outputs - outputs.mean(0)  # as many dimensions as the model has: the components are a rotation
    kept = table["vectors"].astype(np.float64)
    assert _cosines(kept) == pytest.approx(_cosines(centred), abs=0.03)


def _cosines(rows: NDArray[np.floating]) -> NDArray[np.floating]:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit @ unit.T
