"""A linear model with noise, so that the coefficients are of order one."""

import numpy as np


def regression(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return x (samples x features, normal) and y = x * beta + noise."""
    samples, features = sizes["samples"], sizes["features"]
    x = rng.standard_normal((samples, features), dtype=np.float32)
    beta = rng.uniform(-2, 2, features).astype(np.float32)
    y = x @ beta + 0.5 * rng.standard_normal(samples, dtype=np.float32)
    return {"x": x.ravel(), "y": y.astype(np.float32)}
