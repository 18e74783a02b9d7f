"""How many loads of one place a kernel has under way before it waits for one of them, read from its machine code.

ptxas decides that, and nothing before it shows it: a loop that it unrolled and whose loads it could hoist waits once
for sixteen of them, the same loop with a data-dependent address waits for each.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verify import sandbox
from verify.sandbox import Limits

FILE = "candidate.cu"  #: as the source of a cubin is called, so that its lines are told from a header's
_FUNCTION = re.compile(r"\.text\.(\S+):$")
_LABEL = re.compile(r"(\.L_x_\d+):$")
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_OWN_LINE = re.compile(rf'{re.escape(FILE)}", line (\d+)')
_REGISTER = re.compile(r"\bR(\d+)(\.64)?")
#: Loads of one place under way at once where the machine code does not say.
USUAL = 1.0
#: How many more times a loop's instruction is taken to run than one outside it, where its line was not counted.
_LOOP = 8.0


@dataclass(frozen=True)
class Batch:
    """Loads from global memory that are under way together when a thread comes to wait for the first of them."""

    lines: tuple[int, ...]  #: the candidate's line of each load, 0 where unknown
    weight: float  #: guessed from the depth of loops


def find_disassembler(toolkit: Path) -> Path | None:
    """nvdisasm of the toolkit (the wheel ``nvidia-cuda-nvdisasm`` puts it there), else of PATH."""
    inside = toolkit / "bin" / "nvdisasm"
    found = shutil.which("nvdisasm")
    return inside if inside.is_file() else Path(found) if found else None


def disassemble(tool: Path, cubin: Path, folder: Path, limits: Limits) -> str:
    """The machine code of ``cubin``, a file in ``folder``, with source lines; empty when the tool refuses it."""
    argv = [str(tool), "-c", "-gi", "-novliw", cubin.name]
    done = sandbox.run(argv, folder=folder, limits=limits, readable=[tool.parent])
    return done.stdout.decode("utf-8", "replace") if done.ok else ""


def loads_in_flight(batches: Sequence[Batch], places: Mapping[int, Sequence[float]]) -> float:
    """Mean loads of one place that a thread waits for together.

    ``places`` says how often each place of each source line loaded, as far as that was counted; where it was not, the
    depth of loops weighs a batch.
    """
    copies = runs = guessed_copies = guessed_runs = 0.0
    for batch in batches:
        loads = Counter(batch.lines)
        deep = len(batch.lines) / sum(min(count, max(1, len(places.get(line, ())))) for line, count in loads.items())
        counted = sum(sum(places.get(line, ())) for line in loads)
        copies += counted * deep
        runs += counted
        guessed_copies += batch.weight * deep
        guessed_runs += batch.weight
    if runs:
        return copies / runs
    return guessed_copies / guessed_runs if guessed_runs else USUAL


@dataclass(frozen=True)
class _Instruction:
    operation: str
    operands: str
    line: int


def read_sass(text: str) -> dict[str, list[Batch]]:
    """The batches of every kernel of a disassembly, by mangled name."""
    bodies: dict[str, list[_Instruction]] = {}
    body: list[_Instruction] | None = None
    line_number, fresh = 0, True
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("//##"):
            # A chain of inlined calls begins with the innermost one; what counts is the innermost of our own file.
            own = _OWN_LINE.search(stripped)
            line_number = int(own.group(1)) if own and (fresh or not line_number) else 0 if fresh else line_number
            fresh = False
        elif function := _FUNCTION.match(stripped):
            body = bodies.setdefault(function.group(1), [])
        elif body is not None and (label := _LABEL.match(stripped)):
            body.append(_Instruction("label", label.group(1), 0))
        elif body is not None and (found := _INSTRUCTION.search(stripped)):
            body.append(_Instruction(found.group(1), found.group(2), line_number))
            fresh = True
    return {name: list(_batches(code)) for name, code in bodies.items()}


def _weights(code: Sequence[_Instruction]) -> list[float]:
    place = {one.operands: index for index, one in enumerate(code) if one.operation == "label"}
    weights = [1.0] * len(code)
    for index, one in enumerate(code):
        target = re.search(r"\.L_x_\d+", one.operands) if one.operation.startswith("BRA") else None
        start = place.get(target.group(), index) if target else index
        if start < index - 1:  # a kernel ends with a branch to itself
            for inside in range(start, index + 1):
                weights[inside] *= _LOOP
    return weights


def _batches(code: Sequence[_Instruction]) -> Iterator[Batch]:
    pending: set[int] = set()
    lines: list[int] = []
    heaviest = 0.0
    for one, weight in zip(code, _weights(code), strict=True):
        if pending and (one.operation.startswith(("BAR", "EXIT")) or pending & _registers(one)):
            yield Batch(tuple(lines), heaviest)
            pending, lines, heaviest = set(), [], 0.0
        first = _REGISTER.search(one.operands)
        if one.operation.split(".")[0] == "LDG" and first:
            width = 4 if ".128" in one.operation else 2 if ".64" in one.operation.split(",")[0] else 1
            pending |= set(range(int(first.group(1)), int(first.group(1)) + width))
            lines.append(one.line)
            heaviest = max(heaviest, weight)


def _registers(one: _Instruction) -> set[int]:
    found: set[int] = set()
    wide = 4 if ".128" in one.operation else 2 if re.search(r"\.(64|WIDE)|^D[A-Z]", one.operation) else 1
    for match in _REGISTER.finditer(one.operands):
        first = int(match.group(1))
        found |= set(range(first, first + (2 if match.group(2) else wide)))
    return found
