"""Rows as classifiers give them: some flat, some with one value that stands far above the others."""

import numpy as np


def rows(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return x (rows x width), normal; in every other row one value is 100 larger, which overflows `exp` unshifted."""
    count, width = sizes["rows"], sizes["width"]
    x = rng.standard_normal((count, width), dtype=np.float32)
    peaked = np.arange(0, count, 2)
    place = rng.integers(0, width, len(peaked))
    place[0] = width - 1
    x[peaked, place] += 100
    return {"x": x}
