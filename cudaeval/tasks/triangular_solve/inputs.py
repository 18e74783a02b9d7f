"""A well-conditioned lower triangle; the strict upper part holds values that must not be used."""

import numpy as np


def triangle(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return lower, n x n: diagonal of magnitude 1 to 2, off-diagonal elements of order 1 / sqrt(n)."""
    n = sizes["n"]
    matrix = rng.uniform(-1, 1, (n, n)) / np.sqrt(n)
    matrix[np.triu_indices(n, 1)] = 1e6
    diagonal = rng.uniform(1, 2, n) * rng.choice([-1.0, 1.0], n)
    matrix[np.arange(n), np.arange(n)] = diagonal
    return {"lower": matrix.astype(np.float32).ravel()}
