"""Counts of a candidate's launches at its task's timed size, from sampled blocks of an instrumented build."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from regraph_db.errors import InternalFault, RegraphError
from regraph_db.records import VerdictKind, content_id
from regraph_db.settings import load, section
from verify import frames
from verify.cache import Cache
from verify.cpu.build import Kit, kit, source_lines
from verify.cpu.execute import SPARE, fault_of, prepare, read_report, run_driver, write_setup
from verify.cpu.symbols import Layout
from verify.execution import Execution
from verify.inputs import make_call
from verify.model.instructions import Mix, read_mixes
from verify.model.profiles import Hardware
from verify.model.resources import Resources, kernel_resources, of_kernel
from verify.sandbox import Limits
from verify.settings import VerifySettings
from verify.task import Task

SAMPLED_BLOCKS = 16
#: Largest relative spread of the work of sampled blocks, as standard error of its mean, that a time is given for.
STEADY = 0.25
_SEED = 20261121


class NoModel(RegraphError):
    """The kernel lies outside the model; the message says why."""

    exit_code = 1


@dataclass(frozen=True)
class Launch:
    """One launch of one kernel, scaled from its sampled blocks to all of them."""

    kernel: str
    blocks: int
    threads: int  #: a block
    sampled: int
    dynamic_shared: int  #: bytes
    spread: float  #: of the work of a block, standard deviation over mean
    count: dict[str, float]  #: see replay.h
    mix: Mix
    resources: Resources
    sites: tuple[dict[str, object], ...]  #: the most expensive accesses, with ``line``

    @property
    def warps(self) -> int:
        """Warps a block."""
        return -(-self.threads // 32)


@dataclass(frozen=True)
class Counted:
    """What one call launches, in order."""

    launches: list[Launch] = field(default_factory=list)
    memsets: list[int] = field(default_factory=list)  #: bytes of each


def count(task: Task, source: str, *, toolkit: Path, folder: Path, limits: Limits, gpu: Hardware) -> Counted:
    """Run sampled blocks of every launch of one call at the timed size.

    Raises :class:`NoModel` for what the model does not cover, :class:`InternalFault` for our own faults.
    """
    shared = kit(toolkit)
    with ThreadPoolExecutor(1) as pool:
        compiling = pool.submit(kernel_resources, source, toolkit, gpu.architecture, _subfolder(folder), limits)
        prepared = prepare(shared, source, task.function, "counted", folder)
        if isinstance(prepared, Execution):
            raise NoModel(prepared.reason)
        library, layout = prepared
        inputs = _inputs(task, folder)
        lines = _run(task, shared, library, layout, inputs, folder, limits, gpu)
        mixes = read_mixes(library, folder)
        resources = compiling.result()
    return _read(lines, library, layout, mixes, resources, folder)


def _subfolder(folder: Path) -> Path:
    inner = folder / "resources"
    inner.mkdir()
    return inner


def _inputs(task: Task, folder: Path) -> Path:
    """Inputs at the timed size, made once for a task; writes the call file into ``folder``."""
    sizes = dict(task.sizes.timed[0])
    cache = Cache(load().cache_folder / "cpu" / "inputs", section("verify", VerifySettings).cache_bytes)
    key = content_id("timed inputs", task.hash, sorted(sizes.items()))
    arrays, index = cache.get(key), cache.read(f"{key}-calls")
    if arrays is None or index is None:
        frames.write_calls(task, [make_call(task, sizes, _SEED)], folder / "calls", folder / "inputs")
        index = (folder / "calls").read_bytes()
        cache.put(f"{key}-calls", index)
        arrays = cache.put(key, folder / "inputs")
        (folder / "inputs").unlink(missing_ok=True)
    (folder / "calls").write_bytes(index)
    return arrays


def _run(
    task: Task, shared: Kit, library: Path, layout: Layout, inputs: Path, folder: Path, limits: Limits, gpu: Hardware
) -> list[str]:
    options = {
        "counted": 1,
        "host": int(task.abi == "host"),
        "arena": (4 * inputs.stat().st_size + SPARE) // 4096 * 4096,
        "blocks": SAMPLED_BLOCKS,
        "multiprocessors": gpu.multiprocessors,
        "shared": gpu.shared,
        "l2": int(gpu.l2),
    }
    setup = folder / "setup"
    write_setup(setup, library, layout, options)
    with setup.open("a") as stream:
        stream.write(f"inputs {inputs}\n")
    finished, nonce = run_driver(shared, folder, limits, readable=[inputs])
    lines = read_report(folder, nonce)
    if lines is None:
        if finished.timed_out:
            raise NoModel(f"its sampled blocks did not end within {limits.seconds:g} s")
        raise NoModel(f"the counted run ended early ({finished.killed_by or finished.returncode})")
    fault = fault_of(lines, library, folder)
    if fault and fault[0] is VerdictKind.HARNESS_ERROR:
        raise InternalFault(fault[1])
    if fault:
        raise NoModel(f"the counted run stopped: {fault[1]}")
    return lines


def _read(
    lines: list[str],
    library: Path,
    layout: Layout,
    mixes: dict[int, Mix],
    resources: dict[str, Resources],
    folder: Path,
) -> Counted:
    names = dict(layout.kernels)
    counted = Counted()
    found = [json.loads(line.removeprefix("launch ")) for line in lines if line.startswith("launch ")]
    places = sorted({int(site["at"]) for launch in found for site in launch.get("sites", ())})
    line_of = dict(zip(places, source_lines(library, places, folder), strict=True))
    for launch in found:
        if "memset" in launch:
            counted.memsets.append(int(launch["memset"]))
            continue
        mix = Mix()
        for place, entries in launch.pop("basic_blocks").items():
            block = mixes.get(int(place), Mix())
            for name in ("single", "double", "integer", "branches", "special"):
                setattr(mix, name, getattr(mix, name) + getattr(block, name) * entries)
        sites = tuple({**site, "line": line_of[int(site["at"])]} for site in launch.pop("sites"))
        kernel, spread = str(launch.pop("kernel")), float(launch.pop("spread"))
        counted.launches.append(
            Launch(
                kernel=kernel,
                blocks=int(launch.pop("blocks")),
                threads=int(launch.pop("threads")),
                sampled=int(launch.pop("sampled")),
                dynamic_shared=int(launch.pop("dynamic_shared")),
                spread=spread,
                mix=mix,
                resources=of_kernel(resources, names.get(int(launch.pop("address")), ""), kernel),
                sites=sites,
                count={name: float(value) for name, value in launch.items()},
            )
        )
    return counted
