"""How sure a piece of evidence makes: a logistic regression over the tuning sets, each predicted from the others.

``python -m ingest.relabel.fitting`` writes ``confidence.toml`` and ``coefficients.npz`` anew, after a change to the
table, the words, the pairs or the index, and prints the threshold that follows; a test finds files, or a setting
``ingest.accept``, that are not what this gives.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ingest.relabel.known import FILE
from ingest.relabel.nearest import Evidence, Nearest
from ingest.relabel.pairs import Pair, calibration, learnt, tuned, tuning, unseen
from ingest.techniques import synonyms

#: How far the weights are held towards zero, per example.
_SHRINKAGE = 0.005
_STEPS = 30
#: The precision that the names of ``calibration.toml`` are to have from the threshold on: the aim, 0.97, and a little.
_CALIBRATED = 0.975


@cache
def left_out() -> tuple[tuple[tuple[Pair, ...], Nearest], ...]:
    """Each tuning set with an index that learnt from the others only, names that both hold left out of the others."""
    return tuple(_left_out())


def _left_out() -> Iterator[tuple[tuple[Pair, ...], Nearest]]:
    for index, test in enumerate(tuning()):
        others = [pair for other, pairs in enumerate(tuning()) if other != index for pair in pairs]
        yield test, Nearest(pairs=unseen(others, test))


def examples() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``(examples, numbers)`` and ``(examples,)``: evidence for the best candidate of each name that the table does not
    know, and whether it is right."""
    rows: list[tuple[float, ...]] = []
    right: list[bool] = []
    for test, nearest in left_out():
        unknown = [pair for pair in test if pair.phrase not in synonyms()]
        for pair, found in zip(unknown, nearest.evidence([pair.phrase for pair in unknown], 1), strict=True):
            best = found[0]
            if not pair.same and pair.technique not in ("", best.technique):
                continue  # nothing was said about this technique
            rows.append(best.numbers())
            right.append(pair.same and best.technique == pair.technique)
    return np.array(rows), np.array(right, np.float64)


def fit() -> dict[str, float]:
    """The weights by the evidence's names, and ``constant``."""
    rows, right = examples()
    mean, spread = rows.mean(0), rows.std(0) + 1e-6
    standard = np.column_stack([(rows - mean) / spread, np.ones(len(rows))])
    shrinkage = np.full(standard.shape[1], _SHRINKAGE * len(rows))
    weights = np.zeros(standard.shape[1])
    for _ in range(_STEPS):  # Newton's method; the constant is damped, and not held
        chance = 1.0 / (1.0 + np.exp(-standard @ weights))
        slope = standard.T @ (chance - right) + shrinkage * np.append(weights[:-1], 0.0)
        curvature = (standard.T * (chance * (1.0 - chance))) @ standard + np.diag(shrinkage)
        weights -= np.linalg.solve(curvature, slope)
    plain = weights[:-1] / spread
    names = [name for name in Evidence.__annotations__ if name != "technique"]
    constant = float(weights[-1] - plain @ mean)
    return {**dict(zip(names, plain.tolist(), strict=True)), "constant": constant}


def threshold() -> float:
    """``ingest.accept``: the smallest hundredth from which on the names of ``calibration.toml`` that the table does not
    know are accepted with the precision asked for, at every higher hundredth too, by an index of the tuning sets
    alone."""
    nearest = Nearest(pairs=tuned())
    unknown = [pair for pair in calibration() if pair.phrase not in synonyms()]
    judged = [
        (best.score, pair.same and best.technique == pair.technique)
        for pair, (best,) in zip(unknown, nearest.nearest([pair.phrase for pair in unknown], 1), strict=True)
    ]
    for hundredth in range(100, -1, -1):
        accepted = [right for score, right in judged if score >= hundredth / 100]
        if sum(accepted) < _CALIBRATED * len(accepted):
            return (hundredth + 1) / 100
    return 0.0


def document(weights: dict[str, float]) -> str:
    """``confidence.toml``."""
    lines = ["# Written by `python -m ingest.relabel.fitting`; what the names mean: class Evidence of nearest.py."]
    return "\n".join([*lines, *(f"{name} = {value:.4f}" for name, value in weights.items())]) + "\n"


def main() -> None:
    """Write ``confidence.toml`` and ``coefficients.npz``, and print the threshold that follows."""
    folder = Path(__file__).parent
    (folder / "confidence.toml").write_text(document(fit()), encoding="utf-8")
    index = Nearest(pairs=learnt())
    coefficients = index.coefficients().astype(np.float16)
    np.savez_compressed(folder / FILE, coefficients=coefficients, names=np.array(index.names_digest()))
    sys.stdout.write(f"{folder / 'confidence.toml'}\n{folder / FILE}\ningest.accept = {threshold()}\n")


if __name__ == "__main__":
    main()
