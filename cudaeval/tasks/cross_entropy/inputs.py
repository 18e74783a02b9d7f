"""Logits and labels as classifiers give them: some rows unsure, some sure of the right class."""

import numpy as np


def batch(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return logits (rows x classes), normal, and labels; in every other row one logit is 100 larger.

    That overflows `exp` unless the largest logit is taken off first.
    """
    rows, classes = sizes["rows"], sizes["classes"]
    logits = rng.standard_normal((rows, classes), dtype=np.float32)
    labels = rng.integers(0, classes, rows, dtype=np.int32)
    labels[0] = classes - 1
    sure = np.arange(0, rows, 2)
    logits[sure, labels[sure]] += 100  # the loss of such a row is almost 0, so that the mean still shows the others
    return {"logits": logits, "labels": labels}
