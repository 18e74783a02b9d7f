"""`mutants.json`: which mutants the tests of each task caught, kept with what it was found on.

An entry speaks of one task as it was: its manifest, reference and inputs, and the steps that were broken. The tests of
the project fail when an entry is missing or stale, so that a task cannot change and keep an old figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, ValidationError

from cudaeval.mutate import OPERATORS, Harmless, Report
from cudaeval.shipped import code_hash
from regraph_db.errors import InputError
from regraph_db.records import Count, Level, Record, content_id, now

if TYPE_CHECKING:
    from verify import Task

FILE = Path(__file__).parent / "mutants.json"


class Survivor(Record):
    """A broken kernel that passed."""

    step: int
    operator: str
    line: int
    text: str  #: the broken line
    code: str  #: SHA-256 of the mutant's code


class Entry(Record):
    """One task's result."""

    workload: str  #: hash of the task and of the steps that were broken
    date: datetime
    level: Level
    seed: Count
    caught: dict[str, Count]  #: by operator
    survivors: tuple[Survivor, ...] = ()
    uncounted: Count = 0  #: mutants that did not compile or that the level cannot run

    def answers(self, task: Task, codes: Sequence[str], count: int, level: Level, seed: int) -> bool:
        """Whether the check need not be run again: nothing has changed, and at least ``count`` mutants were judged."""
        judged = sum(self.caught.values()) + len(self.survivors)
        same = (self.workload, self.level, self.seed) == (workload(task, codes), level, seed)
        return same and judged >= count

    def without(self, harmless: Sequence[Harmless]) -> tuple[Survivor, ...]:
        """The survivors that nobody has found harmless since."""
        known = {each.code for each in harmless}
        return tuple(each for each in self.survivors if each.code not in known)


class Kept(Record):
    """The whole file."""

    version: int = 1
    tasks: dict[str, Entry] = Field(default_factory=dict)


def workload(task: Task, codes: Sequence[str]) -> str:
    """A hash of what the mutation check of ``task`` depends on."""
    return content_id("mutants", task.hash, [code_hash(code) for code in codes])


def entry(task: Task, codes: Sequence[str], report: Report, *, level: Level, seed: int) -> Entry:
    """What is kept of ``report``."""
    return Entry(
        workload=workload(task, codes),
        date=now(),
        level=level,
        seed=seed,
        caught=report.caught_by,
        survivors=tuple(
            Survivor(step=m.step, operator=m.operator, line=m.line, text=m.text, code=code_hash(m.code))
            for m in report.survivors
        ),
        uncounted=report.uncounted,
    )


def read(file: Path = FILE) -> Kept:
    """The file, empty where there is none. Raises :class:`InputError` for a broken one."""
    try:
        return Kept.model_validate_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Kept()
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{first['msg']}.", where=f"{file}, field `{field}`", fix="Delete it and check again."
        ) from None


def keep(name: str, found: Entry, file: Path = FILE) -> None:
    """Put ``found`` into the file, whole or not at all."""
    tasks = {**read(file).tasks, name: found}
    part = file.with_name(file.name + ".part")
    part.write_text(Kept(tasks=dict(sorted(tasks.items()))).model_dump_json(indent=1) + "\n", encoding="utf-8")
    part.replace(file)


def tally(tasks: Mapping[str, Entry], harmless: Sequence[Harmless]) -> tuple[int, int]:
    """How many mutants of ``tasks`` were caught, and how many survived that do harm."""
    return (
        sum(sum(each.caught.values()) for each in tasks.values()),
        sum(len(each.without(harmless)) for each in tasks.values()),
    )


def markdown(tasks: Mapping[str, Entry], harmless: Sequence[Harmless]) -> str:
    """What `docs/cudaeval.md` says of the mutation check."""
    caught, survived = tally(tasks, harmless)
    if not caught + survived:
        return "Nothing is kept yet: `regraph eval mutate --keep`.\n"
    dates = sorted({each.date.date().isoformat() for each in tasks.values()})
    seeds = ", ".join(str(seed) for seed in sorted({each.seed for each in tasks.values()}))
    least = min(sum(each.caught.values()) + len(each.without(harmless)) for each in tasks.values())
    by_operator: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    lines = []
    for name, each in tasks.items():
        by_operator.update(each.caught)
        for survivor in each.without(harmless):
            missed[survivor.operator] += 1
            text = survivor.text.replace("|", "\\|")
            lines.append(f"| `{name}` | {survivor.step} | {survivor.line} | {survivor.operator} | `{text}` |")
    page = [
        f"On {len(tasks)} tasks, at least {least} mutants each: **{caught} of {caught + survived} caught "
        f"({caught / (caught + survived):.1%})**; {', '.join(dict.fromkeys((dates[0], dates[-1])))}, seed {seeds}.",
        "",
        "| mistake | caught | survived |",
        "|---|---:|---:|",
    ]
    for operator in (each.name for each in OPERATORS):
        if by_operator[operator] + missed[operator]:
            page.append(f"| {operator} | {by_operator[operator]} | {missed[operator]} |")
    if lines:
        page += [
            "",
            "Survivors:",
            "",
            "| task | step | line | mistake | the broken line |",
            "|---|---:|---:|---|---|",
            *lines,
        ]
    return "\n".join(page) + "\n"
