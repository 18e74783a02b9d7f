"""Counts of a candidate's launches at its task's timed size, from sampled blocks of an instrumented build."""

from __future__ import annotations

import json
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from regraph_db.errors import InternalFault, RegraphError
from regraph_db.records import VerdictKind, content_id
from regraph_db.settings import load, section
from verify import frames
from verify.cache import Cache
from verify.cpu import translate
from verify.cpu.build import RUNTIME, Kit, kit, source_lines
from verify.cpu.execute import SPARE, fault_of, prepare, read_report, run_driver, write_setup
from verify.cpu.symbols import Layout
from verify.execution import Execution
from verify.inputs import make_call
from verify.model import instructions
from verify.model.instructions import Mix
from verify.model.profiles import Hardware
from verify.model.resources import Resources, kernel_resources, of_kernel
from verify.model.sass import loads_in_flight
from verify.sandbox import Limits
from verify.settings import VerifySettings
from verify.task import Task

SAMPLED_BLOCKS = 16
#: Largest relative spread of the work of sampled blocks, as standard error of its mean, that a time is given for.
STEADY = 0.25
_SEED = 20261121
_COUNTING_SOURCES = ("cache.h", "counts.cpp", "counts.h", "replay.cpp", "replay.h")


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
    sites: tuple[dict[str, Any], ...]  #: the most expensive accesses, with ``line``
    resources: Resources = field(default_factory=Resources)
    mangled: str = ""  #: the kernel's name in the cubin; empty where it is not known

    @cached_property
    def in_flight(self) -> float:
        """Mean loads of one place in global memory that are under way at once."""
        places: dict[int, list[float]] = {}
        for site in self.sites:
            if site["kind"] == "global load":
                places.setdefault(int(site["line"]), []).append(float(site["requests"]))
        return loads_in_flight(self.resources.batches, places)

    @property
    def warps(self) -> int:
        """Warps a block."""
        return -(-self.threads // 32)


@dataclass(frozen=True)
class Cost:
    """What counting took when it was done: compiling, the counted run, reading both."""

    seconds: float = 0.0  #: by the clock, on a machine that may have been busy
    processor_seconds: float = 0.0  #: of all processes; other work of this process at the same time counts as well


@dataclass(frozen=True)
class Counted:
    """What one call launches, in order."""

    launches: list[Launch] = field(default_factory=list)
    memsets: list[int] = field(default_factory=list)  #: bytes of each
    refused: str = ""  #: why there are no counts
    cost: Cost = field(default_factory=Cost)


_FORM = TypeAdapter(Counted)


def count(task: Task, source: str, *, toolkit: Path, folder: Path, limits: Limits, gpu: Hardware) -> Counted:
    """Run sampled blocks of every launch of one call at the timed size; what was counted once is read from the cache.

    Raises :class:`NoModel` for what the model does not cover, :class:`InternalFault` for our own faults.
    """
    cache = Cache(load().cache_folder / "model", section("verify", VerifySettings).cache_bytes)
    key = content_id(
        "counted", _version(), task.hash, source, sorted(task.sizes.timed[0].items()), sorted(asdict(gpu).items())
    )
    known = cache.read(key)
    begin, before = time.perf_counter(), _processor_seconds()
    with ThreadPoolExecutor(1) as pool:
        compiling = pool.submit(kernel_resources, source, toolkit, gpu.architecture, _subfolder(folder), limits, cache)
        if known is None:
            counted = _count(task, source, toolkit, folder, limits, gpu)
        else:
            counted = _FORM.validate_json(known)
        resources = compiling.result()
    if known is None:
        took = Cost(time.perf_counter() - begin, _processor_seconds() - before)
        counted = replace(counted, cost=took)
        cache.put(key, _FORM.dump_json(counted))
    if counted.refused:
        raise NoModel(counted.refused)
    launches = [replace(one, resources=of_kernel(resources, one.mangled, one.kernel)) for one in counted.launches]
    return replace(counted, launches=launches)


def _processor_seconds() -> float:
    """Of this process and of all that it started and waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@lru_cache(maxsize=1)
def _version() -> str:
    """Everything that decides what is counted: a change of it counts anew."""
    texts = [(RUNTIME / name).read_text("utf-8") for name in _COUNTING_SOURCES]
    return content_id(
        SAMPLED_BLOCKS,
        *texts,
        *(Path(module.__file__ or "").read_text("utf-8") for module in (instructions, translate)),
    )


def _count(task: Task, source: str, toolkit: Path, folder: Path, limits: Limits, gpu: Hardware) -> Counted:
    shared = kit(toolkit)
    prepared = prepare(shared, source, task.function, "counted", folder)
    if isinstance(prepared, Execution):
        return Counted(refused=prepared.reason)
    library, layout = prepared
    lines = _run(task, shared, library, layout, _inputs(task, folder), folder, limits, gpu)
    fault = fault_of(lines, library, folder)
    if fault and fault[0] is VerdictKind.HARNESS_ERROR:
        raise InternalFault(fault[1])
    if fault:
        if fault[0] is VerdictKind.UNSUPPORTED:
            return Counted(refused=fault[1].removeprefix("no model: "))
        # The functional level ran it through, so it read what blocks that were not sampled should have written.
        return Counted(refused=f"a launch depends on what blocks that were not sampled write: {fault[1]}")
    return _read(lines, library, layout, instructions.read_mixes(library, folder), folder)


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
    return lines


def _read(
    lines: list[str],
    library: Path,
    layout: Layout,
    mixes: dict[int, Mix],
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
            for kind in fields(Mix):
                setattr(mix, kind.name, getattr(mix, kind.name) + getattr(block, kind.name) * entries)
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
                mangled=names.get(int(launch.pop("address")), ""),
                sites=sites,
                count={name: float(value) for name, value in launch.items()},
            )
        )
    return counted
