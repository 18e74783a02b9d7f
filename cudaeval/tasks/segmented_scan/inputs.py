"""Head flags of segments of very different lengths."""

import numpy as np


def heads(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return head: 1 where a segment starts; dense and sparse stretches, and a half of the array without any."""
    n = sizes["n"]
    ends = np.sort(rng.integers(0, n + 1, 3))
    density = np.repeat(rng.permutation([0.5, 0.1, 0.01, 0.0002]), np.diff(ends, prepend=0, append=n))
    first = rng.integers(0, n // 2 + 1)
    density[first : first + n // 2] = 0
    return {"head": (rng.random(n) < density).astype(np.uint8)}
