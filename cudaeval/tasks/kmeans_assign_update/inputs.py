"""Points around centroids on the axes, placed so that no point is nearly as close to two of them."""

import numpy as np


def clusters(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return point (n x d) and centroid (k x d); points lie within 1 of their own centroid, centroids 4 or more apart.

    One centroid is the origin, so that whoever forgets an axis takes the ones on it for that.
    """
    n, d, k = sizes["n"], sizes["d"], sizes["k"]
    centroid = np.zeros((k, d), np.float32)
    others = np.arange(k - 1)
    centroid[1 + others, rng.permutation(d)[others % d]] = 4.0 * (1 + others // d)
    centroid = centroid[rng.permutation(k)]
    owner = rng.integers(0, k, n)
    radius = 1.0 / np.sqrt(d)
    point = centroid[owner] + rng.uniform(-radius, radius, (n, d)).astype(np.float32)
    return {"point": point.astype(np.float32).ravel(), "centroid": centroid.ravel()}
