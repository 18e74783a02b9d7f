"""`regraph eval mutate`: do the tests of a task notice plausible mistakes?

Right kernels (steps of the shipped trajectories) are broken one place at a time, the way people and models break them:
the last element forgotten, one element too many, no tail, no barrier, a wrong neutral element, a narrowed accumulator.
The judge must not pass the result. Mutants that do not compile say nothing about the tests and are not counted.

A mutant may be right all the same (a barrier that was not needed). Such survivors cannot be told from holes in the
tests by a program: they are listed, and a person looks at them. What was looked at and does no harm stands in
``harmless.toml`` with the reason, by the hash of its code, and is not counted again.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from cudaeval.shipped import code_hash
from regraph_db.errors import InputError
from regraph_db.records import Level, Verdict, VerdictKind

if TYPE_CHECKING:
    from verify import Judge, Task

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
HARMLESS = Path(__file__).parent / "harmless.toml"
#: Verdicts that say nothing about the tests.
_MUTE = (VerdictKind.COMPILE_ERROR, VerdictKind.UNSUPPORTED, VerdictKind.HARNESS_ERROR)


@dataclass(frozen=True)
class Operator:
    """One kind of mistake: where it may happen, and what is written there instead."""

    name: str
    place: str  #: a regular expression; ``{size}`` stands for any of the task's size names
    written: Callable[[re.Match[str]], str]


def _swap(before: str, after: str) -> Callable[[re.Match[str]], str]:
    return lambda match: match[0].replace(before, after, 1)


def _from_one(match: re.Match[str]) -> str:
    return "1.0f" if match[0] == "-INFINITY" else match[0].replace("0.0", "1.0")


OPERATORS: tuple[Operator, ...] = (
    Operator("last element forgotten", r"< {size}\b(?! [-*/%])", lambda m: f"{m[0]} - 1"),
    Operator("one element too many", r"(?<!<)< {size}\b(?! [-*/%+])", _swap("<", "<=")),
    Operator("grid rounded down", r"\(([\w.]+) \+ \d+\) / (\d+)", lambda m: f"{m[1]} / {m[2]}"),
    Operator("tail dropped", r"\b{size} % (?!2\b)\d+(?=\))", lambda m: "0"),
    Operator("barrier removed", r"__syncthreads\(\);", lambda m: ";"),
    # Where an accumulator starts, not where a tile is padded: a padding is often multiplied by a zero elsewhere.
    Operator("wrong neutral element", r"-INFINITY|(?<!for \()\b(float|double) \w+ = 0\.0f?(?=;)", _from_one),
    Operator("accumulator not cleared", r"cudaMemsetAsync\([^;]*\);", lambda m: ""),
    Operator(
        "reduction too short",
        r"\b(offset|mask|stride|delta) = (16|128|64)\b",
        lambda m: f"{m[1]} = {int(m[2]) // 2}",
    ),
    Operator("sign changed", r"(?<=[\w\])] )\+(?= [\w(])", lambda m: "-"),
    Operator("block index ignored", r"\bblockIdx\.([xyz])\b(?! ==)", lambda m: "0"),
    Operator("constant changed", r"(?<![\w.])(?!0\.0+f|1\.0f)\d+\.\d+(e-?\d+)?f\b", lambda m: f"({m[0]} * 1.05f)"),
    Operator(
        "accumulator narrowed",
        r"\b(sum|acc|total|s0|value) \+= ([^;]+);",
        # Through int: out of a signed char's range, a float's own conversion is undefined and may change nothing.
        lambda m: f"{m[1]} = decltype({m[1]} + 0)((signed char)(int)({m[1]} + ({m[2]})));",
    ),
    Operator(
        "minimum for maximum",
        r"\bfmaxf\(|\batomicMax\(|\bmax\(",
        lambda m: m[0].replace("max", "min").replace("Max", "Min"),
    ),
    Operator("neighbour's value", r"(?<=\[)(i|c|r|k)(?=\])", lambda m: f"{m[1]} > 0 ? {m[1]} - 1 : 0"),
)


@dataclass(frozen=True)
class Mutant:
    """A right kernel with one mistake."""

    task: str
    step: int  #: which step of the trajectory was broken, from 1
    operator: str
    line: int
    code: str

    @property
    def text(self) -> str:
        """The broken line."""
        return self.code.splitlines()[self.line - 1].strip()


@dataclass(frozen=True)
class Report:
    """What became of the mutants of one task."""

    caught_by: dict[str, int]  #: caught mutants by operator
    survivors: tuple[Mutant, ...]
    uncounted: int  #: mutants that did not compile or that the level cannot run

    @property
    def caught(self) -> int:
        return sum(self.caught_by.values())


@dataclass(frozen=True)
class Harmless:
    """A mutant that a person found to be right."""

    task: str
    step: int
    operator: str
    line: int
    code: str  #: SHA-256 of the mutant's code
    reason: str


def read_harmless(file: Path = HARMLESS) -> list[Harmless]:
    """The shipped list. Raises :class:`InputError` for a broken file."""
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        return [Harmless(**entry) for entry in document.get("mutant", [])]
    except (OSError, tomllib.TOMLDecodeError, TypeError) as error:
        raise InputError(f"no list of harmless mutants: {error}.", where=str(file)) from None


def mutants(task: str, step: int, code: str, sizes: Sequence[str]) -> list[Mutant]:
    """Every mutant of ``code`` in the order of :data:`OPERATORS`; comments are left alone.

    ``sizes`` are the names of the task's sizes (``n``, ``rows``…), which bounds are written with.
    """
    plain = _COMMENT.sub(lambda match: " " * len(match[0]) if "\n" not in match[0] else match[0], code)
    names = "(?:" + "|".join(map(re.escape, [*sizes, "vectors", "groups", "pairs", "count"])) + ")"
    found = []
    for operator in OPERATORS:
        for match in re.finditer(operator.place.replace("{size}", names), plain):
            broken = code[: match.start()] + operator.written(match) + code[match.end() :]
            found.append(Mutant(task, step, operator.name, code.count("\n", 0, match.start()) + 1, broken))
    return found


def chosen(found: Sequence[Mutant], seed: int) -> Iterator[Mutant]:
    """The mutants in a seeded order that spreads over operators: one of each before any has two."""
    rng = Random(seed)
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in found:
        by_operator.setdefault(mutant.operator, []).append(mutant)
    queues = list(by_operator.values())
    rng.shuffle(queues)
    for queue in queues:
        rng.shuffle(queue)
    while queues:
        for queue in queues:
            yield queue.pop()
        queues = [queue for queue in queues if queue]


def check(
    task: Task,
    codes: Sequence[str],
    judge: Judge,
    *,
    count: int = 5,
    seed: int = 0,
    level: Level = Level.FUNCTIONAL,
    harmless: Sequence[Harmless] = (),
    progress: Callable[[Mutant, Verdict], None] | None = None,
) -> Report:
    """Judge ``count`` mutants of ``task``, made from ``codes``: those of its trajectory's steps.

    A task with fewer mutants that compile contributes those it has; ``harmless`` ones are left out.
    """
    known = {each.code for each in harmless}
    sizes = [parameter.name for parameter in task.parameters if parameter.kind == "size"]
    found = [m for step, code in enumerate(codes, 1) for m in mutants(task.name, step, code, sizes)]
    order = chosen([m for m in found if code_hash(m.code) not in known], seed)
    caught: Counter[str] = Counter()
    survivors: list[Mutant] = []
    uncounted = 0
    while (missing := count - caught.total() - len(survivors)) > 0:
        batch = list(islice(order, missing))
        if not batch:
            break
        waiting: list[tuple[Mutant, Future[Verdict]]] = [(m, judge.submit(task, m.code, level)) for m in batch]
        for mutant, future in waiting:
            verdict = future.result()
            if progress is not None:
                progress(mutant, verdict)
            if verdict.verdict in _MUTE:
                uncounted += 1
            elif verdict.passed:
                survivors.append(mutant)
            else:
                caught[mutant.operator] += 1
    return Report(dict(caught), tuple(survivors), uncounted)
