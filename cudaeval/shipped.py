"""The shipped trajectories and their measurements: reading them, and telling a stale measurement from a true one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from cudaeval import TRAJECTORIES
from regraph_db.errors import InputError, NotFound
from regraph_db.records import Interval, Level, Record, Seconds, Trajectory, VerdictKind, content_id

if TYPE_CHECKING:
    from verify import Task

SCHEMA = 1
SUFFIX = ".measured.json"


class MeasuredStep(Record):
    """What the judge found of one step's code; figures are ``None`` where it was not timed."""

    code: str = Field(pattern=r"^[0-9a-f]{64}$")  #: SHA-256 of the code, in UTF-8
    method: str  #: the step's own words, to read the file by
    verdict: VerdictKind
    level: Level
    reason: str = ""
    seconds: Seconds | None = None  #: median of one call at the timed size
    speedup: Interval | None = None  #: sequential reference over this step, with its 95 % bootstrap interval
    reference_seconds: Seconds | None = None  #: the reference, timed beside this step
    bound_share: float | None = None  #: share of the GPU's limit, 0 to 1
    samples: int = 0  #: timed samples a side
    unstable: bool = False  #: the timing did not settle within its limit

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of ``seconds`` that the speedup's interval amounts to, lower end first."""
        if self.speedup is None or self.reference_seconds is None:
            return None
        return self.reference_seconds / self.speedup.high, self.reference_seconds / self.speedup.low


class Measured(Record):
    """``NAME.measured.json``: one trajectory's steps as measured on one machine."""

    version: int = SCHEMA
    task: str
    workload: str  #: hash of what was timed: signature, reference and timed sizes of the task
    trajectory: str  #: the trajectory's id
    gpu: str
    driver: str
    nvcc: str
    flags: tuple[str, ...] = ()
    host: str = ""  #: host compiler and processor, which the reference ran on
    date: datetime
    sizes: tuple[dict[str, int], ...] = ()  #: what was run; the last is the timed size
    steps: tuple[MeasuredStep, ...] = Field(min_length=1)

    @property
    def best(self) -> MeasuredStep | None:
        """The fastest step that passed and was timed."""
        timed = [s for s in self.steps if s.verdict is VerdictKind.PASSED and s.seconds is not None]
        return min(timed, key=lambda s: s.seconds or 0.0, default=None)


def code_hash(code: str) -> str:
    """The SHA-256 of ``code`` in UTF-8, by which a measurement names what it measured."""
    return hashlib.sha256(code.encode()).hexdigest()


def names(folder: Path = TRAJECTORIES) -> list[str]:
    """The tasks that have a trajectory file in ``folder``, sorted."""
    return sorted(file.stem for file in folder.glob("*.jsonl"))


def trajectory_file(name: str, folder: Path = TRAJECTORIES) -> Path:
    """The file of task ``name``; :class:`NotFound` where there is none."""
    file = folder / f"{name}.jsonl"
    if not file.is_file():
        raise NotFound(f"no trajectory for `{name}`.", where=str(folder), fix="`regraph eval trajectories` lists them.")
    return file


def read_trajectories(file: Path) -> list[Trajectory]:
    """The trajectories of one file; every error names file, line and field.

    Raises :class:`InputError` for a line that is no JSON object, an unknown field, an empty method or code, and an
    empty file. The format is `docs/trajectory-format.md`.
    """
    found = []
    for number, line in _lines(file):
        where = f"{file}:{number}"
        try:
            document = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"not JSON: {error.msg} at column {error.colno}.", where=where) from None
        if not isinstance(document, dict):
            raise InputError("a JSON object is wanted.", where=where)
        try:
            trajectory = Trajectory.model_validate(document)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise InputError(f"{first['msg']}.", where=f"{where}, field `{field}`") from None
        for index, step in enumerate(trajectory.steps):
            if not step.method.strip():
                raise InputError("the method is empty.", where=f"{where}, field `steps.{index}.method`")
        found.append(trajectory)
    if not found:
        raise InputError("no trajectory in it.", where=str(file))
    return found


def load_one(name: str, folder: Path = TRAJECTORIES) -> tuple[Task, Trajectory]:
    """The one trajectory of the file of task ``name``, and its task.

    Raises :class:`InputError` for a broken file, for one that holds several, and for one that names an unknown task.
    """
    from verify import load_task

    file = trajectory_file(name, folder)
    trajectories = read_trajectories(file)
    if len(trajectories) != 1:
        raise InputError("more than one trajectory in a shipped file.", where=f"{file}:2")
    (trajectory,) = trajectories
    try:
        return load_task(trajectory.task or name), trajectory
    except NotFound as error:
        raise InputError(error.what, where=f"{file}:1, field `task`", fix=error.fix) from None


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    try:
        with file.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}.", where=str(file)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: {error.reason} at byte {error.start}.", where=str(file)) from None


def measured_file(name: str, folder: Path = TRAJECTORIES) -> Path:
    """Where the measurements of task ``name`` lie; the file need not exist."""
    return folder / f"{name}{SUFFIX}"


def read_measured(file: Path) -> Measured | None:
    """The measurements in ``file``, ``None`` where there is no file. Raises :class:`InputError` for a broken one."""
    try:
        return Measured.model_validate_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{first['msg']}.", where=f"{file}, field `{field}`", fix="Measure it again.") from None


def write_measured(measured: Measured, file: Path) -> None:
    """Write ``measured`` whole or not at all."""
    document: dict[str, Any] = measured.model_dump(mode="json")
    part = file.with_name(file.name + ".part")
    part.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    part.replace(file)


def workload(task: Task) -> str:
    """A hash of what a measurement of ``task`` depends on; more check sizes or a new title do not change it."""
    return content_id("workload", task.signature, task.reference, task.sizes.timed)


def staleness(measured: Measured, trajectory: Trajectory, task: Task) -> str:
    """Why ``measured`` does not speak of ``trajectory`` and ``task`` as they are; empty when it does."""
    if measured.task != trajectory.task:
        return f"it measured task `{measured.task}`, the trajectory is of `{trajectory.task}`"
    if measured.workload != workload(task):
        return "the task's reference, signature or timed sizes have changed since"
    if len(measured.steps) != len(trajectory.steps):
        return f"it holds {len(measured.steps)} steps, the trajectory {len(trajectory.steps)}"
    for index, (step, written) in enumerate(zip(measured.steps, trajectory.steps, strict=True)):
        if step.code != code_hash(written.code):
            return f"the code of step {index + 1} has changed since"
    return ""
