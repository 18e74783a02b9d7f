"""Rows of tokens for the training: several texts one after another in each, written as shards by worker processes."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

OPEN_ROWS = 32  # rows that are filled side by side
AHEAD = 4  # shards that a worker may have written and the training not yet read


def packed(seed: int, length: int, tokenizer: Path, marred: float) -> Iterator[tuple[list[int], list[int]]]:
    """Full rows without end: token ids, and for each ``2 * text + answer`` (text from 1; answer 0 or 1)."""
    from slm.corpus.samples import Maker
    from slm.tokenizer import Tokenizer, rendered

    coder = Tokenizer(tokenizer)
    maker = Maker(random.Random(seed), coder.words(), marred=marred)
    bins: list[tuple[list[int], list[int]]] = []
    while True:
        sample = maker.draw()
        prompt = coder.encode(rendered(sample.prompt))
        answer = [*coder.encode(sample.answer), coder.end]
        size = len(prompt) + len(answer)
        if size > length:
            continue
        fits = [b for b in bins if len(b[0]) + size <= length]
        if fits:
            target = max(fits, key=lambda b: len(b[0]))
        else:
            if len(bins) >= OPEN_ROWS:
                full = max(bins, key=lambda b: len(b[0]))
                bins.remove(full)
                yield full
            target = ([], [])
            bins.append(target)
        text = target[1][-1] // 2 + 1 if target[1] else 1
        target[0].extend([*prompt, *answer])
        target[1].extend([2 * text] * len(prompt) + [2 * text + 1] * len(answer))


def _work(worker: int, seed: int, folder: str, tokenizer: str, length: int, rows: int, marred: float) -> None:
    os.nice(5)
    source = packed(seed * 1009 + worker, length, Path(tokenizer), marred)
    shard = 0
    while True:
        while (Path(folder) / f"{shard - AHEAD:05d}-{worker:03d}.npy").exists():
            time.sleep(0.1)  # the training is slower: leave it the processor
        array: NDArray[np.uint16] = np.zeros((2, rows, length), np.uint16)
        for k in range(rows):
            ids, marks = next(source)
            array[0, k, : len(ids)], array[1, k, : len(ids)] = ids, marks
        name = Path(folder) / f"{shard:05d}-{worker:03d}"
        np.save(name.with_suffix(".part.npy"), array)
        name.with_suffix(".part.npy").rename(name.with_suffix(".npy"))
        shard += 1


def start(
    workers: int, seed: int, folder: Path, tokenizer: Path, length: int, rows: int, marred: float
) -> list[BaseProcess]:
    """Start processes that write shards of ``rows`` rows into ``folder`` until they are terminated; ``marred`` is the
    share of general prompts with lines that can only be copied."""
    folder.mkdir(parents=True, exist_ok=True)
    context = get_context("spawn")
    made: list[BaseProcess] = []
    for worker in range(workers):
        process = context.Process(
            target=_work, args=(worker, seed, str(folder), str(tokenizer), length, rows, marred), daemon=True
        )
        process.start()
        made.append(process)
    return made


def corpus_hash() -> str:
    """SHA-256 over everything the corpus is made from: generator, prompts, techniques, tokenizer."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    parts = [*sorted((root / "slm" / "corpus").glob("*.py")), *sorted((root / "search" / "prompts").glob("*.txt"))]
    for path in [
        *parts,
        root / "search" / "prompt.py",
        root / "ingest" / "techniques.toml",
        root / "slm" / "model" / "tokenizer.model",
    ]:
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
