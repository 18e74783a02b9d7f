"""Head flags of segments of very different lengths."""

import numpy as np


def heads(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return head: 1 where a segment starts; a density from every other element to one in five thousand."""
    density = rng.choice([0.5, 0.1, 0.01, 0.0002])
    return {"head": (rng.random(sizes["n"]) < density).astype(np.uint8)}
