"""Registers, shared memory and batches of loads of each kernel, as ptxas made them; no GPU is needed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

from regraph_db.records import content_id
from verify import sandbox
from verify.cache import Cache
from verify.model.sass import FILE, Batch, disassemble, find_disassembler, read_sass
from verify.sandbox import Limits

_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class Resources:
    """What one thread or block of a kernel needs."""

    registers: int = 32  #: a thread
    shared: int = 0  #: bytes of static shared memory, a block
    spilled: int = 0  #: bytes spilled, a thread, stores and loads
    local: int = (
        0  #: bytes of local memory, a thread: spilled registers and arrays with an index known only when it runs
    )
    batches: tuple[Batch, ...] = ()  #: of loads that are under way together; empty where that is not known


def read_resources(words: str) -> dict[str, Resources]:
    """Every kernel of ``ptxas -v``'s report, by mangled name."""
    found: dict[str, Resources] = {}
    name, spilled, local = "", 0, 0
    for line in words.splitlines():
        if entry := _ENTRY.search(line):
            name, spilled, local = entry.group(1), 0, 0
        elif stack := _STACK.search(line):
            local, stores, loads = map(int, stack.groups())
            spilled = stores + loads
        elif name and (used := _USED.search(line)):
            shared = _SHARED.search(line)
            found[name] = Resources(int(used.group(1)), int(shared.group(1)) if shared else 0, spilled, local)
            name = ""
    return found


def kernel_resources(
    source: str, toolkit: Path, architecture: str, folder: Path, limits: Limits, cache: Cache
) -> dict[str, Resources]:
    """Compile ``source`` to a cubin for ``architecture``; read ptxas' report and the machine code.

    Empty when nvcc refuses. Without nvdisasm no kernel has batches.
    """
    tool = find_disassembler(toolkit)
    key = content_id("compiled for the model", source, architecture, str(toolkit), tool is not None)
    known = cache.read(key)
    if known is None:
        (folder / FILE).write_text(source, "utf-8")
        argv = [str(toolkit / "bin" / "nvcc"), "-O3", "-std=c++17", f"-arch={architecture}", "-lineinfo"]
        argv += ["-Xptxas", "-v", "-cubin", FILE, "-o", "candidate.cubin"]
        done = sandbox.run(argv, folder=folder, limits=limits, readable=[toolkit])
        if not done.ok:
            return {}
        words = done.stderr.decode("utf-8", "replace")
        code = disassemble(tool, folder / "candidate.cubin", folder, limits) if tool else ""
        known = json.dumps([words, code]).encode()
        cache.put(key, known)
    words, code = json.loads(known)
    batches = read_sass(code)
    return {name: replace(one, batches=tuple(batches.get(name, ()))) for name, one in read_resources(words).items()}


def of_kernel(resources: dict[str, Resources], mangled: str, written: str) -> Resources:
    """The resources of the kernel with this mangled name; else the largest of those whose name is in ``written``."""
    if mangled in resources:
        return resources[mangled]
    plain = re.match(r"[\w:]*", written)
    name = plain.group().rpartition("::")[2] if plain else ""
    same = [value for key, value in resources.items() if name and f"{len(name)}{name}" in key]
    return max(same, key=lambda value: value.registers, default=Resources())
