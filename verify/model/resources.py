"""Registers and static shared memory of each kernel, as ptxas reports them; no GPU is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from verify import sandbox
from verify.sandbox import Limits

_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_STACK = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class Resources:
    """What one thread or block of a kernel needs."""

    registers: int = 32  #: a thread
    shared: int = 0  #: bytes of static shared memory, a block
    spilled: int = 0  #: bytes spilled, a thread, stores and loads


def read_resources(words: str) -> dict[str, Resources]:
    """Every kernel of ``ptxas -v``'s report, by mangled name."""
    found: dict[str, Resources] = {}
    name, spilled = "", 0
    for line in words.splitlines():
        if entry := _ENTRY.search(line):
            name, spilled = entry.group(1), 0
        elif stack := _STACK.search(line):
            spilled = int(stack.group(1)) + int(stack.group(2))
        elif name and (used := _USED.search(line)):
            shared = _SHARED.search(line)
            found[name] = Resources(int(used.group(1)), int(shared.group(1)) if shared else 0, spilled)
            name = ""
    return found


def kernel_resources(
    source: str, toolkit: Path, architecture: str, folder: Path, limits: Limits
) -> dict[str, Resources]:
    """Compile ``source`` to a cubin for ``architecture`` and read the report; empty when nvcc refuses."""
    (folder / "resources.cu").write_text(source, "utf-8")
    argv = [
        str(toolkit / "bin" / "nvcc"),
        "-O3",
        "-std=c++17",
        f"-arch={architecture}",
        "-Xptxas",
        "-v",
        "-cubin",
        "resources.cu",
        "-o",
        "resources.cubin",
    ]
    done = sandbox.run(argv, folder=folder, limits=limits, readable=[toolkit])
    return read_resources(done.stderr.decode("utf-8", "replace")) if done.ok else {}


def of_kernel(resources: dict[str, Resources], mangled: str, written: str) -> Resources:
    """The resources of the kernel with this mangled name; else the largest of those whose name is in ``written``."""
    if mangled in resources:
        return resources[mangled]
    plain = re.match(r"[\w:]*", written)
    name = plain.group().rpartition("::")[2] if plain else ""
    same = [value for key, value in resources.items() if name and f"{len(name)}{name}" in key]
    return max(same, key=lambda value: value.registers, default=Resources())
