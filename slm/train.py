"""Train the network on shards as they appear. Time is the budget: the rate follows a cosine over it."""

from __future__ import annotations

import json
import math
import queue
import random
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from slm.network import Network, Shape


@dataclass(frozen=True)
class Plan:
    """How the training goes."""

    batch: int = 32  # rows a step
    rate: float = 6e-3
    warmup: int = 150  # steps
    prompt_weight: float = 0.05  # of a prompt's tokens in the loss; an answer's are 1
    seed: int = 1


class Feeder(threading.Thread):
    """Reads shards in the order in which they appear and removes them; without a new one repeats the last two."""

    def __init__(self, folder: Path, batch: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.folder, self.batch = folder, batch
        self.rng = random.Random(seed)
        self.queue: queue.Queue[Tensor] = queue.Queue(12)
        self.seen: list[Path] = []
        self.repeated = 0

    def run(self) -> None:
        known: set[Path] = set()
        while True:
            fresh = [p for p in sorted(self.folder.glob("*.npy")) if p not in known and ".part" not in p.name]
            if not fresh and len(self.seen) < 4:
                time.sleep(0.2)
                continue
            path = fresh[0] if fresh else self.rng.choice(self.seen[-2:])
            if fresh:
                known.add(path)
                self.seen.append(path)
            else:
                self.repeated += 1
            array = np.load(path)
            for old in self.seen[:-2]:
                old.unlink(missing_ok=True)
            order = np.random.default_rng(len(self.seen)).permutation(array.shape[1])
            for k in range(0, len(order) - self.batch + 1, self.batch):
                self.queue.put(torch.from_numpy(array[:, order[k : k + self.batch]].astype(np.int32)))


def targets(rows: Tensor, prompt_weight: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """[2, batch, tokens] -> ids, next ids, weights, text numbers (0 where a row is empty)."""
    ids, marks = rows[0].long(), rows[1]
    text = marks // 2
    following = functional.pad(ids[:, 1:], (0, 1))
    same = (text[:, 1:] == text[:, :-1]) & (text[:, 1:] > 0)
    answer = (marks[:, 1:] % 2).float()
    weight = (answer + (1 - answer) * prompt_weight) * same
    return ids, following, functional.pad(weight, (0, 1)), text


def mask_for(text: Tensor, make_mask: Any) -> Any:
    """Causal attention inside each text: a block mask of FlexAttention, or without ``make_mask`` the allowed pairs."""
    if make_mask is None:
        return (text[:, :, None] == text[:, None, :]).tril()[:, None]
    length = text.shape[1]

    def inside(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query >= key) & (text[batch, query] == text[batch, key])

    return make_mask(inside, text.shape[0], None, length, length, device="cuda")


class Trainer:
    """One network, its optimisers and its record."""

    def __init__(
        self, shape: Shape, plan: Plan, device: str, record: Path, start: dict[str, NDArray[np.float32]] | None = None
    ) -> None:
        """``start``: the weights to go on from, under their GGUF names; without, random ones."""
        torch.manual_seed(plan.seed)
        torch.set_float32_matmul_precision("high")
        self.plan, self.device, self.record = plan, device, record
        self.network = Network(shape).to(device)
        if start is not None:
            self.network.load(start)
        matrices = [p for n, p in self.network.named_parameters() if p.ndim == 2 and "embedding" not in n]
        rest = [p for n, p in self.network.named_parameters() if p.ndim < 2 or "embedding" in n]
        fused = device == "cuda"
        self.optimisers: list[torch.optim.Optimizer] = [
            torch.optim.Muon(matrices, lr=plan.rate, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(rest, lr=plan.rate, betas=(0.9, 0.95), weight_decay=0.0, fused=fused),
        ]
        self.make_mask: Any = None
        self.model: Any = self.network
        if device == "cuda":
            from torch.nn.attention.flex_attention import create_block_mask

            self.make_mask = torch.compile(create_block_mask, dynamic=False)
            self.model = torch.compile(self.network, dynamic=False)
        self.curve: list[dict[str, float]] = []

    def step(self, rows: Tensor, share: float, number: int) -> tuple[float | Tensor, Tensor]:
        """One update; ``share`` of the time is gone."""
        factor = min(1.0, (number + 1) / self.plan.warmup) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group["lr"] = self.plan.rate * factor
        rows = rows.pin_memory().to(self.device, non_blocking=True) if self.device == "cuda" else rows
        ids, following, weight, text = targets(rows, self.plan.prompt_weight)
        with torch.autocast(self.device, torch.bfloat16):
            loss, answer = self.model(ids, following, weight, mask_for(text, self.make_mask))
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for optimiser in self.optimisers:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        return norm, answer

    def run(self, feeder: Feeder, deadline: float, say: Any) -> dict[str, Any]:
        """Train until ``deadline`` (monotonic); the schedule starts after three steps, when all is compiled."""
        begin = time.monotonic()
        seconds = 0.0
        started: float | None = None
        number, tokens, compiled = 0, 0, 0.0
        while True:
            rows = feeder.queue.get()
            now = time.monotonic()
            share = 0.0 if started is None else (now - started) / seconds
            if share >= 1:
                break
            try:
                norm, answer = self.step(rows, share, number)
            except Exception as error:
                if number or self.make_mask is None:
                    raise
                say(f"FlexAttention failed, plain attention instead: {error}")
                self.make_mask, self.model = None, self.network
                self.network.zero_grad(set_to_none=True)
                norm, answer = self.step(rows[:, : max(1, rows.shape[1] // 4)], share, number)
            number += 1
            tokens += int(rows[0].numel())
            if number == 3:
                answer.item()
                started, compiled, tokens = time.monotonic(), time.monotonic() - begin, 0
                seconds = max(5.0, deadline - started)
            if number % 50 == 0 or number <= 3:
                elapsed = time.monotonic() - (started or time.monotonic())
                point = {
                    "step": number,
                    "seconds": round(elapsed, 1),
                    "answer_loss": round(answer.item(), 5),
                    "norm": round(float(norm), 3),
                    "tokens": tokens,
                    "shards": len(feeder.seen),
                    "repeated": feeder.repeated,
                }
                self.curve.append(point)
                self.record.write_text("\n".join(json.dumps(p) for p in self.curve) + "\n", encoding="utf-8")
                if number % 250 == 0 or number <= 3:
                    say(json.dumps(point))
        last = [p["answer_loss"] for p in self.curve[-5:]]
        return {
            "steps": number,
            "tokens": tokens,
            "seconds": round(seconds, 1),
            "compile_seconds": round(compiled, 1),
            "last_answer_loss": sum(last) / max(1, len(last)),
            "shards": len(feeder.seen),
            "repeated_shards": feeder.repeated,
            "parameters": sum(p.numel() for p in self.network.parameters()),
            "attention": "flex" if self.make_mask else "plain",
        }
