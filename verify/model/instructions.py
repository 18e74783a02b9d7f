"""Instructions of each basic block of a counted library, from its disassembly, sorted as a GPU would issue them."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from regraph_db.errors import EnvironmentFault
from verify import sandbox
from verify.sandbox import Limits

_LINE = re.compile(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)")
_SPECIAL_CALL = re.compile(
    r"<regraph_special_|<_ZL?\d+regraph_special_|<(exp|log|pow|sin|cos|tan|tanh|erf|exp2|log2|cbrt)f?(@|>|-)"
)
_FLOATING = re.compile(
    r"v?(add|sub|mul|min|max|fn?m(add|sub)\d*|cvt\w*|u?comi|cmp\w*|blend\w*|and|andn|or|xor|round)\w*?([sp])([sd])\w*$"
)
_INTEGER = re.compile(
    r"(add|sub|imul|mul|mulx|lea|shl|sal|sar|shr|shlx|sarx|shrx|and|andn|or|xor|cmp|test|cmov\w*|neg|not|inc|dec|set\w*|adc|sbb|popcnt|lzcnt|tzcnt|rol|ror|bt|bts|movsx\w*|movzx\w*)[bwlq]?$"
)
#: Arithmetic on 32-bit registers: what a kernel computes, where 64-bit registers mostly hold addresses.
_WORD = re.compile(r"(imul|shl|sal|sar|shr|shlx|sarx|shrx|and|andn|or|xor|popcnt|lzcnt|tzcnt|rol|ror|rorx)l?$")
_NARROW = re.compile(r"%(e[a-ds]\w|r\d+d)\b")
#: An array on the stack whose index is not known at compile time: local memory on a GPU.
_LOCAL = re.compile(r"\(%r[sb]p,%r\w+")
_DIVISION = re.compile(r"v?(div|sqrt)([sp])([sd])")


@dataclass
class Mix:
    """How many instructions of each sort a warp issues in one pass through a basic block."""

    single: float = 0.0  #: float32
    double: float = 0.0  #: float64
    words: float = 0.0  #: 32-bit integers computed with: shifts, masks, products
    integer: float = 0.0  #: other integers, most of them addresses and counters
    branches: float = 0.0
    special: float = 0.0  #: in the special-function units: exponentials, roots, reciprocals
    local: float = 0.0  #: accesses to arrays on the stack whose index is not known at compile time


def read_mixes(library: Path, folder: Path) -> dict[int, Mix]:
    """The mix of every basic block, by the address that the library's hook reports for it.

    Raises :class:`EnvironmentFault` without objdump.
    """
    tool = shutil.which("objdump")
    if tool is None:
        raise EnvironmentFault(
            "no objdump on PATH, which the model reads instructions with.",
            fix="Install binutils (Debian: apt-get install binutils).",
        )
    done = sandbox.run(
        [tool, "-d", "--no-show-raw-insn", "-w", library.name],
        folder=folder,
        limits=Limits(seconds=30.0, output=64 << 20, processes=8),
    )
    mixes: dict[int, Mix] = {}
    current: Mix | None = None
    waiting = False
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        match = _LINE.match(line)
        if not match:
            current = None
            continue
        address, operation, operands = int(match.group(1), 16), match.group(2), match.group(3)
        if waiting:
            current = mixes[address] = Mix()
            waiting = False
        if operation.startswith("call"):
            if "sanitizer_cov_trace_pc" in operands:
                waiting = True
            elif current is not None and _SPECIAL_CALL.search(operands):
                current.special += 1
                current.single += 2 if "regraph_special" in operands else 8
        elif operation.startswith(("jmp", "ret")):
            current = None
        elif current is not None:
            _count(current, operation, operands)
    return mixes


def _count(mix: Mix, operation: str, operands: str) -> None:
    if _LOCAL.search(operands) and not operation.startswith("lea"):
        mix.local += 1
    if division := _DIVISION.match(operation):
        if division.group(3) == "d":
            mix.double += 9
        else:
            mix.single += 9
        mix.special += 1
    elif floating := _FLOATING.match(operation):
        if floating.group(4) == "d":
            mix.double += 1
        else:
            mix.single += 1
    elif operation.startswith(("vcvt", "cvt")):
        mix.single += 1
    elif operation[0] == "j":
        mix.branches += 1
    elif "rsp" in operands or _LOCAL.search(operands):
        return  # spilling to the stack is the host compiler's affair
    elif operation.startswith(("idiv", "div")):
        mix.integer += 20
    elif _INTEGER.match(operation) and not _clears(operation, operands):
        if _WORD.match(operation) and _NARROW.search(operands):
            mix.words += 1
        else:
            mix.integer += 1


def _clears(operation: str, operands: str) -> bool:
    """``xor`` of a register with itself."""
    return operation.startswith("xor") and len(set(operands.split(","))) == 1
