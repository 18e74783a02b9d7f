"""What a GPU cannot do faster: the least time of one call, and when a measured time is beyond belief."""

from __future__ import annotations

from verify.gpu import Peaks
from verify.task import Task


def bound_seconds(task: Task, sizes: dict[str, int], peaks: Peaks) -> float:
    """The least seconds of one call: bytes over peak bandwidth, flops over peak rate, or the launch floor."""
    moved = task.bytes_at(sizes) / peaks.bytes_per_second
    computed = task.flops_at(sizes) / peaks.flops_per_second if not any(p.dtype.half for p in task.parameters) else 0.0
    return max(moved, computed, peaks.floor_seconds)


def above_the_bound(task: Task, seconds: float, peaks: Peaks, sizes: dict[str, int]) -> bool:
    """Whether a measured time is beyond belief: 15 % under what the traffic alone takes, where a cache cannot
    explain it."""
    moved = task.bytes_at(sizes) / peaks.bytes_per_second
    if task.abi == "host" or task.bytes_at(sizes) < 4 * peaks.l2:
        return seconds < 0.5 * peaks.floor_seconds
    return seconds < 0.85 * moved
