"""Random CSR matrices with skewed row lengths, some rows empty."""

import numpy as np


def csr(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return row_start, column (near the diagonal or anywhere, half and half) and value."""
    rows, columns, nnz = sizes["rows"], sizes["columns"], sizes["nnz"]
    weight = rng.exponential(1.0, rows) ** 1.5
    weight[rng.random(rows) < 0.05] = 0.0
    weight[rng.integers(rows)] += 1e-6
    edges = np.rint(np.cumsum(weight) / weight.sum() * nnz).astype(np.int64)
    edges[-1] = nnz
    row_start = np.concatenate([[0], np.minimum(edges, nnz)]).astype(np.int32)
    row = np.repeat(np.arange(rows, dtype=np.int64), np.diff(row_start))
    near = (row * columns // rows + rng.integers(-64, 65, nnz)) % columns
    anywhere = rng.integers(0, columns, nnz)
    column = np.where(rng.random(nnz) < 0.5, near, anywhere).astype(np.int32)
    return {"row_start": row_start, "column": column, "value": rng.uniform(-1, 1, nnz).astype(np.float32)}
