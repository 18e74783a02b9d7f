"""A small decoder of the llama architecture, in llama.cpp's own tensor order (rotary pairs lie side by side)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention

EPSILON = 1e-5
ROPE_BASE = 10000.0


@dataclass(frozen=True)
class Shape:
    """The network's sizes; ``context`` is what the GGUF announces and rows are as long as."""

    vocabulary: int = 4096
    width: int = 256
    layers: int = 8
    heads: int = 4
    hidden: int = 704
    context: int = 4096

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Any) -> Tensor:
    """Attention of [batch, heads, tokens, width]; ``mask``: FlexAttention's block mask or a tensor of pairs."""
    if isinstance(mask, Tensor):
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    result: Tensor = flex_attention(query, key, value, block_mask=mask)
    return result


def rotary(length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines, [length, width / 2]."""
    frequency = ROPE_BASE ** (-torch.arange(0, width, 2, device=device).float() / width)
    angle = torch.outer(torch.arange(length, device=device).float(), frequency)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2).to(x.dtype)


def _linear(inputs: int, outputs: int, gain: float = 1.0) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(layer.weight, std=gain * inputs**-0.5)
    return layer


class Block(nn.Module):  # type: ignore[misc]  # torch is not among the typed dependencies
    """Attention and a gated feed-forward part, each after an RMS norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width, gain = shape.width, (2 * shape.layers) ** -0.5
        self.heads = shape.heads
        self.attention_norm = nn.RMSNorm(width, eps=EPSILON)
        self.feed_norm = nn.RMSNorm(width, eps=EPSILON)
        self.query, self.key, self.value = _linear(width, width), _linear(width, width), _linear(width, width)
        self.out = _linear(width, width, gain)
        self.gate, self.up = _linear(width, shape.hidden), _linear(width, shape.hidden)
        self.down = _linear(shape.hidden, width, gain)

    def heads_of(self, x: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, tokens, _ = x.shape
        normed = self.attention_norm(x)

        def split(layer: nn.Module) -> Tensor:
            result: Tensor = layer(normed)
            return result.view(batch, tokens, self.heads, -1).transpose(1, 2)

        return rotate(split(self.query), cosine, sine), rotate(split(self.key), cosine, sine), split(self.value)

    def mix(self, x: Tensor, attended: Tensor) -> Tensor:
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        normed = self.feed_norm(x)
        result: Tensor = x + self.down(functional.silu(self.gate(normed)) * self.up(normed))
        return result


class Network(nn.Module):  # type: ignore[misc]
    """Tokens in, scores of the next token out; the embedding is also the output layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=EPSILON)

    def scores(self, ids: Tensor, mask: Any) -> Tensor:
        """ids [batch, tokens] -> scores [batch, tokens, vocabulary]."""
        cosine, sine = rotary(ids.shape[1], self.shape.width // self.shape.heads, ids.device)
        x = self.embedding(ids)
        for block in self.blocks:
            assert isinstance(block, Block)
            x = block.mix(x, attend(*block.heads_of(x, cosine, sine), mask))
        return functional.linear(self.norm(x), self.embedding.weight)

    def forward(self, ids: Tensor, target: Tensor, weight: Tensor, mask: Any) -> tuple[Tensor, Tensor]:
        """The weighted loss, and the mean loss over answers (where ``weight`` is 1)."""
        scores = self.scores(ids, mask)
        loss = functional.cross_entropy(scores.flatten(0, 1).float(), target.flatten(), reduction="none")
        flat = weight.flatten()
        answer = (flat == 1).float()
        return (loss * flat).sum() / flat.sum().clamp(min=1), (loss.detach() * answer).sum() / answer.sum().clamp(min=1)

    def tensors(self) -> dict[str, Tensor]:
        """Weights under their GGUF names."""
        found: dict[str, Tensor] = {"token_embd.weight": self.embedding.weight, "output_norm.weight": self.norm.weight}
        for k, block in enumerate(self.blocks):
            assert isinstance(block, Block)
            parts = {
                "attn_norm": block.attention_norm,
                "ffn_norm": block.feed_norm,
                "attn_q": block.query,
                "attn_k": block.key,
                "attn_v": block.value,
                "attn_output": block.out,
                "ffn_gate": block.gate,
                "ffn_up": block.up,
                "ffn_down": block.down,
            }
            found |= {f"blk.{k}.{name}.weight": layer.weight for name, layer in parts.items()}
        return found

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def load(self, weights: dict[str, NDArray[np.float32]]) -> None:
        """Take every weight from ``weights``, under its GGUF name."""
        own = self.tensors()
        if own.keys() != weights.keys():
            raise ValueError(f"weights are missing or too many: {sorted(own.keys() ^ weights.keys())}")
        for name, tensor in own.items():
            tensor.copy_(torch.from_numpy(weights[name].copy()))

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def continue_greedily(self, prompts: list[list[int]], limit: int, end: int) -> list[list[int]]:
        """The most likely continuation of each prompt, up to ``end`` (left out) or ``limit`` tokens."""
        device = self.embedding.weight.device
        batch, longest = len(prompts), max(map(len, prompts))
        total = longest + limit
        ids = torch.zeros(batch, longest, dtype=torch.long, device=device)
        real = torch.zeros(batch, total, dtype=torch.bool, device=device)
        real[:, longest:] = True
        for k, prompt in enumerate(prompts):
            ids[k, longest - len(prompt) :] = torch.tensor(prompt, device=device)
            real[k, longest - len(prompt) : longest] = True
        width = self.shape.width // self.shape.heads
        cosine, sine = rotary(total, width, device)
        keys = [torch.zeros(batch, self.shape.heads, total, width, device=device) for _ in self.blocks]
        values = [torch.zeros_like(k) for k in keys]

        def last(tokens: Tensor, start: int, stop: int, mask: Tensor) -> Tensor:
            x = self.embedding(tokens)
            for k, block in enumerate(self.blocks):
                assert isinstance(block, Block)
                query, key, value = block.heads_of(x, cosine[start:stop], sine[start:stop])
                keys[k][:, :, start:stop], values[k][:, :, start:stop] = key, value
                seen = functional.scaled_dot_product_attention(
                    query, keys[k][:, :, :stop], values[k][:, :, :stop], attn_mask=mask
                )
                x = block.mix(x, seen)
            return functional.linear(self.norm(x[:, -1]), self.embedding.weight)

        causal = torch.ones(longest, longest, dtype=torch.bool, device=device).tril()
        mask = (causal[None, None] & real[:, None, None, :longest]) | torch.eye(
            longest, dtype=torch.bool, device=device
        )
        scores = last(ids, 0, longest, mask)
        done = torch.zeros(batch, dtype=torch.bool, device=device)
        chosen: list[Tensor] = []
        for step in range(limit):
            token = torch.where(done, end, scores.argmax(-1))
            chosen.append(token)
            done |= token == end
            if step % 16 == 15 and bool(done.all()):
                break
            at = longest + step
            if at + 1 >= total:
                break
            scores = last(token[:, None], at, at + 1, real[:, None, None, : at + 1])
        rows = torch.stack(chosen, 1).tolist()
        return [row[: row.index(end)] if end in row else row for row in rows]
