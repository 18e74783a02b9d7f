"""The model's formula: counts of a launch and a GPU's profile in, time by term out. Nothing else in here.

``t = launch + (sum of term^p)^(1/p)``: the terms overlap on a GPU, but never quite, so the time lies between the
largest term and their sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from verify.model.launches import Launch
from verify.model.profiles import Profile

SECTOR = 32  #: bytes
ISSUED_A_CLOCK = 4  #: instructions a multiprocessor issues in one clock
INTEGER_A_CLOCK = 2  #: of them integer ones
SPECIAL_CLOCKS = 2  #: of a special-function instruction, a warp
#: Loads of one place under way at once that waits are counted for (replay.cpp).
_IN_FLIGHT = (1, 4, 16)
_CONSTANT_LOAD = 0.2  #: of another load


@dataclass(frozen=True)
class Occupancy:
    """How many blocks of a kernel fit on a multiprocessor, and what limits them."""

    blocks: int
    warps: int
    limit: str  #: blocks, warps, registers, shared memory or grid


@dataclass(frozen=True)
class Terms:
    """Modelled microseconds of one launch, by what takes them."""

    issue: float  #: issuing instructions
    double: float  #: float64 arithmetic
    units: float  #: turns of the load/store units, bank conflicts among them
    l2: float  #: traffic between L1 and L2
    dram: float  #: traffic with the memory
    atomics: float  #: updates of the most contended line, or of all
    blocks: float  #: starting blocks
    latency: float  #: waiting, where too few warps are there to hide it
    launch: float  #: the launch itself, added to the rest
    power: float

    def named(self) -> dict[str, float]:
        """The terms that are joined, without the launch."""
        names = ("issue", "double", "units", "l2", "dram", "atomics", "blocks", "latency")
        return {name: getattr(self, name) for name in names}

    @property
    def microseconds(self) -> float:
        """The modelled time."""
        return self.launch + float(sum(term**self.power for term in self.named().values()) ** (1.0 / self.power))

    @property
    def binds(self) -> str:
        """The largest term's name."""
        terms = {**self.named(), "launch": self.launch}
        return max(terms, key=lambda name: terms[name])


def occupancy(launch: Launch, profile: Profile) -> Occupancy:
    """Resident blocks a multiprocessor."""
    gpu = profile.hardware
    warps = launch.warps
    registers = max(16, -(-launch.resources.registers // 8) * 8) * 32 * warps
    shared = launch.resources.shared + launch.dynamic_shared + gpu.shared_reserved
    bounds = {
        "blocks": gpu.blocks,
        "warps": gpu.warps // warps,
        "registers": 65536 // registers,
        "shared memory": gpu.shared // shared,
        "grid": max(1, math.ceil(launch.blocks / gpu.multiprocessors)),
    }
    limit = min(bounds, key=lambda name: bounds[name])
    resident = {name: bound for name, bound in bounds.items() if name != "grid"}
    blocks = max(1, min(resident.values()))
    return Occupancy(blocks, blocks * warps, limit)


def memset_terms(nbytes: float, profile: Profile) -> Terms:
    """A memset is a launch and its traffic."""
    c = profile.constants
    return Terms(
        0,
        0,
        0,
        nbytes / c.l2_write / 1e3,
        0 if nbytes < c.l2_share else nbytes / c.dram / 1e3,
        0,
        0,
        0,
        c.memset,
        c.power,
    )


def _waits(launch: Launch) -> tuple[float, float, float]:
    """Waits for batches of loads from L1, L2 and memory, between those counted for 1, 4 and 16 loads in flight."""
    depth = min(max(math.log(launch.in_flight, 4), 0.0), 2.0)
    lower = min(int(depth), 1)
    share = depth - lower

    def between(level: str) -> float:
        few, many = (launch.count[f"{level}{loads}"] for loads in _IN_FLIGHT[lower : lower + 2])
        return few * (1 - share) + many * share

    return between("near"), between("middle"), between("far")


def terms(launch: Launch, profile: Profile) -> Terms:
    """Time by term of one launch."""
    gpu, c, n = profile.hardware, profile.constants, launch.count
    resident = occupancy(launch, profile).blocks
    share = launch.blocks / gpu.multiprocessors
    busiest = math.ceil(share) if share < 4 * resident else share
    fraction = busiest / launch.blocks  # of the work that the busiest multiprocessor has

    def microseconds(clocks: float) -> float:
        return clocks / gpu.clock / 1e3

    # An array that the host keeps on its stack may live in a GPU's registers: ptxas says whether it does.
    local = launch.mix.local if launch.resources.local else 0.0
    memory = local + n["loads"] + n["stores"] + n["shared"] + n["atomics"] + n["constants"] * _CONSTANT_LOAD
    integer = launch.mix.words + launch.mix.integer * c.integer + launch.mix.branches * 0.5
    instructions = launch.mix.single + launch.mix.double + integer + memory + n["meetings"] * 2 + n["barriers"]
    issue = max(instructions / ISSUED_A_CLOCK, integer / INTEGER_A_CLOCK, launch.mix.special * SPECIAL_CLOCKS) * c.issue
    warm = n["footprint"] < c.l2_share
    again = 0.0 if warm else max(0.0, SECTOR * (n["l2_read_misses"] + n["l2_write_misses"]) - n["block_footprints"])
    far = c.middle_wait if warm else c.far_wait
    near, middle, distant = _waits(launch)
    waits = (
        near * c.near_wait
        + middle * c.middle_wait
        + distant * far
        + n["shared_waits"] * c.shared_wait
        + local * c.near_wait
    )
    chain = (waits + n["barriers"] * c.barrier + n["meetings"] * c.meeting + instructions * c.step) / (
        launch.blocks * launch.warps
    )
    return Terms(
        issue=microseconds(fraction * issue),
        double=microseconds(fraction * launch.mix.double / gpu.double_rate),
        units=microseconds(fraction * (n["passes"] + n["waves"] + n["meetings"] + local) * c.unit),
        l2=SECTOR * (n["l1_misses"] / c.l2_read + n["write_sectors"] / c.l2_write) / 1e3,
        dram=0.0 if warm else (n["footprint"] + again) / c.dram / 1e3,
        atomics=max(n["hottest_line"] * c.hot_update, n["atomic_updates"] * c.spread_update) / 1e3,
        blocks=launch.blocks * c.block / 1e3,
        latency=microseconds(chain) * max(1.0, launch.blocks / (gpu.multiprocessors * resident)),
        launch=c.launch,
        power=c.power,
    )
