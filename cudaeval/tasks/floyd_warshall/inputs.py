"""Directed graphs with about eight edges a vertex."""

import numpy as np


def roads(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return distance: n x n, 0 on the diagonal, 1 to 1000 on edges, 10^9 elsewhere."""
    n = sizes["n"]
    edge = rng.random((n, n)) < min(1.0, 8.0 / n)
    distance = np.where(edge, rng.integers(1, 1001, (n, n)), 1_000_000_000)
    np.fill_diagonal(distance, 0)
    return {"distance": distance.astype(np.int32).ravel()}
