"""What the levels that run a candidate take and give: calls in, raw outputs or a fault out. Nobody here compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regraph_db.records import VerdictKind

Argument = NDArray[np.generic] | int | float


@dataclass(frozen=True)
class Call:
    """One call of the candidate: the named sizes and the arguments in the signature's order.

    Array arguments (of their parameter's dtype; bfloat16 travels as uint16 bits) hold the inputs, or poison for
    outputs.
    """

    sizes: Mapping[str, int]
    arguments: Sequence[Argument]


@dataclass(frozen=True)
class Execution:
    """What happened. ``fault`` is ``None`` when every call ended; the outputs are then still to be compared."""

    fault: VerdictKind | None = None
    reason: str = ""  #: one line with the kernel's name and the candidate's own line number where it is known
    log: str = ""
    outputs: list[list[NDArray[np.generic]]] = field(
        default_factory=list
    )  #: per call every array argument afterwards, inputs too, in the signature's order
    seconds: list[float] = field(default_factory=list)  #: per call, wall-clock
