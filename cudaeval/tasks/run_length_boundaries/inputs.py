"""Byte strings made of runs."""

import numpy as np


def runs(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return text: runs of geometric length, mean 3, over a small alphabet; sometimes one long run."""
    n = sizes["n"]
    change = rng.random(n) < rng.choice([1 / 3, 1 / 3, 0.9, 0.002])
    step = np.where(change, rng.integers(1, 5, n), 0)
    return {"text": (np.cumsum(step) % 5 + 97).astype(np.uint8)}
