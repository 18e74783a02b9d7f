"""Queries and keys, in half of the heads so far apart that every score is near -110, the `exp` of which is 0."""

import numpy as np


def attention(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return q and k, normal; where a head is cold, q is shifted up and k down, which a right softmax does not mind."""
    heads, length, dim = sizes["heads"], sizes["length"], sizes["dim"]
    q = rng.standard_normal((heads, length, dim), dtype=np.float32)
    k = rng.standard_normal((heads, length, dim), dtype=np.float32)
    cold = rng.random(heads) < 0.5
    shift = np.float32(np.sqrt(110 / np.sqrt(dim)))
    q[cold] += shift
    k[cold] -= shift
    return {"q": q.ravel(), "k": k.ravel()}
