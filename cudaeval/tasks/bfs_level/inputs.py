"""Graphs with skewed degrees in the middle of a breadth-first search."""

import numpy as np


def graph(rng: np.random.Generator, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Return row_start, neighbour, level (a third at the current level, half unvisited) and current."""
    vertices, edges = sizes["vertices"], sizes["edges"]
    weight = rng.exponential(1.0, vertices) ** 2 + 1e-9
    ends = np.rint(np.cumsum(weight) / weight.sum() * edges).astype(np.int64)
    ends[-1] = edges
    row_start = np.concatenate([[0], np.minimum(ends, edges)]).astype(np.int32)
    neighbour = rng.integers(0, vertices, edges, dtype=np.int32)
    current = int(rng.integers(2, 6))
    draw = rng.random(vertices)
    visited = rng.integers(0, current, vertices)
    level = np.where(draw < 0.5, -1, np.where(draw < 0.8, current, visited)).astype(np.int32)
    if vertices > 2 and edges > 2:
        # The last vertex alone leads to the first one: code that forgets it is found out.
        row_start[-2] = min(int(row_start[-2]), edges - 1)
        np.minimum(row_start[:-1], row_start[-2], out=row_start[:-1])
        neighbour[neighbour == 0] = 1
        neighbour[-1] = 0
        level[0], level[-1] = -1, current
    return {"row_start": row_start, "neighbour": neighbour, "level": level, "current": np.array(current, np.int32)}
