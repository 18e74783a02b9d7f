"""Bodies in a unit ball with a total mass of about one."""

import numpy as np


def bodies(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return body: n rows of x, y, z, mass."""
    n = sizes["n"]
    body = np.empty((n, 4), np.float32)
    body[:, :3] = rng.normal(0.0, 0.6, (n, 3))
    body[:, 3] = rng.uniform(0.5, 1.5, n) / n
    return {"body": body.ravel()}
