"""A panel whose top square is diagonally dominant, so that no pivoting is needed."""

import numpy as np


def panel(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return a: rows x columns, uniform in [-1, 1], with a dominant diagonal."""
    rows, columns = sizes["rows"], sizes["columns"]
    a = rng.uniform(-1, 1, (rows, columns)).astype(np.float32)
    diagonal = np.arange(columns)
    a[diagonal, diagonal] = (columns + rng.uniform(0, 1, columns)) * rng.choice([-1.0, 1.0], columns)
    return {"a": a.ravel()}
