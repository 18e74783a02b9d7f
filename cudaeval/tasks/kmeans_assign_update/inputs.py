"""Points around integer centroids, placed so that no point is nearly as close to two of them."""

import numpy as np


def clusters(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return point (n x d) and centroid (k x d); centroids lie on a grid of spacing 4, points within 1 of their own."""
    n, d, k = sizes["n"], sizes["d"], sizes["k"]
    code = np.arange(k)
    centroid = np.zeros((k, d), np.float32)
    for column in range(d):
        centroid[:, column] = 4.0 * (code % 4)
        code = code // 4
    if d < 4:
        centroid[:, 0] = 4.0 * np.arange(k)
    centroid = centroid[rng.permutation(k)]
    owner = rng.integers(0, k, n)
    radius = 1.0 / np.sqrt(d)
    point = centroid[owner] + rng.uniform(-radius, radius, (n, d)).astype(np.float32)
    return {"point": point.astype(np.float32).ravel(), "centroid": centroid.ravel()}
