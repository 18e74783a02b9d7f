"""What is right: runs a task's sequential reference, out of every candidate's reach, and remembers its answers."""

from __future__ import annotations

import re
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regraph_db.errors import EnvironmentFault, InputError, InternalFault
from regraph_db.records import content_id
from verify import sandbox
from verify.cache import Cache
from verify.compare import arrays_of
from verify.dtypes import Array
from verify.execution import Call
from verify.frames import Layout, read_arrays, write_calls
from verify.inputs import make_call
from verify.private import PrivateFolder
from verify.settings import VerifySettings
from verify.task import REFERENCE, Task

HOST = Path(__file__).parent / "runner"
FLAGS = ("-std=c++17", "-O3", "-ffp-contract=off")
SANITIZERS = ("-std=c++17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_REMEMBERED_BYTES = 256 << 20


@dataclass(frozen=True)
class Case:
    """One set of inputs of a task, by how they are made."""

    sizes: tuple[tuple[str, int], ...]
    seed: int
    variant: str = "plain"

    @classmethod
    def of(cls, sizes: dict[str, int], seed: int, variant: str = "plain") -> Case:
        return cls(tuple(sizes.items()), seed, variant)

    def call(self, task: Task, poison_seed: int | None = None) -> Call:
        """The call with these inputs, its outputs poisoned anew for each ``poison_seed``."""
        return make_call(task, dict(self.sizes), self.seed, self.variant, poison_seed=poison_seed)


class References:
    """The references' outputs and times, cached on disk by what determines them; safe for several threads."""

    def __init__(
        self,
        settings: VerifySettings,
        cache_folder: Path,
        *,
        alone: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """``alone`` is held while a reference is timed: it keeps the machine free of the caller's other work."""
        self._alone = alone
        self._settings = settings
        self._programs = Cache(cache_folder / "references", settings.cache_bytes)
        self._outputs = Cache(cache_folder / "outputs", settings.cache_bytes)
        self._remembered: OrderedDict[str, list[Array]] = OrderedDict()
        self._lock = threading.Lock()
        self._task_locks: dict[str, threading.Lock] = {}

    def outputs(self, task: Task, cases: Sequence[Case]) -> list[list[Array]]:
        """For each case every array after the reference's call, in the signature's order; 16-bit floats as ``float32``.

        Raises :class:`InputError` when the reference does not compile or end.
        """
        with self._task_lock(task):
            found = [self._known(task, case) for case in cases]
            if None in found:
                with self._outputs.making(content_id("making", task.hash)):
                    found = [self._known(task, case) for case in cases]
                    missing = [case for case, arrays in zip(cases, found, strict=True) if arrays is None]
                    computed = iter(self._compute(task, missing))
                    found = [arrays if arrays is not None else next(computed) for arrays in found]
        return [arrays for arrays in found if arrays is not None]

    def seconds(self, task: Task, case: Case) -> float:
        """Seconds of one sequential call at ``case`` on one core of this machine: the least of three, measured once."""
        key = content_id("seconds", self._key(task, case), processor())
        known = self._outputs.read(key)
        if known is not None:
            return float(known)
        # Alone before the task's lock: whoever holds that one may wait for a core.
        with self._alone(), self._task_lock(task), self._outputs.making(content_id("making", task.hash)):
            known = self._outputs.read(key)
            if known is None:
                _, seconds = run_reference(task, [case.call(task)], self.program(task), self._settings, repeats=3)
                known = repr(min(seconds[0])).encode()
                self._outputs.put(key, known)
        return float(known)

    def program(self, task: Task) -> Path:
        """The reference as a program, compiled once."""
        key = content_id("program", task.reference, task.function, FLAGS, self._settings.host_compiler, host_text())
        known = self._programs.get(key)
        if known is None:
            with PrivateFolder() as folder:
                known = self._programs.put(key, compile_reference(task, Path(folder), self._settings, FLAGS))
        return known

    def _task_lock(self, task: Task) -> threading.Lock:
        with self._lock:
            return self._task_locks.setdefault(task.hash, threading.Lock())

    def _key(self, task: Task, case: Case) -> str:
        return content_id("outputs", task.hash, list(case.sizes), case.seed, case.variant, FLAGS, np.__version__)

    def _known(self, task: Task, case: Case) -> list[Array] | None:
        key = self._key(task, case)
        with self._lock:
            if key in self._remembered:
                self._remembered.move_to_end(key)
                return self._remembered[key]
        raw = self._outputs.read(key)
        if raw is None:
            return None
        arrays, offset = [], 0
        for parameter in task.arrays:
            shape = parameter.shape_at(dict(case.sizes))
            dtype = np.dtype(np.float32) if parameter.dtype.half else parameter.dtype.numpy
            count = int(np.prod(shape, dtype=np.int64))
            if not parameter.writable:
                arrays.append(np.empty(0, dtype))
                continue
            if offset + count * dtype.itemsize > len(raw):
                return None
            arrays.append(np.frombuffer(raw, dtype, count, offset).reshape(shape))
            offset += count * dtype.itemsize
        self._remember(key, arrays)
        return arrays

    def _compute(self, task: Task, cases: Sequence[Case]) -> list[list[Array]]:
        results = []
        for batch in _batches(task, cases):
            outputs, _ = run_reference(task, [case.call(task) for case in batch], self.program(task), self._settings)
            for case, arrays in zip(batch, outputs, strict=True):
                kept = [
                    array if p.writable else np.empty(0, array.dtype)
                    for p, array in zip(task.arrays, arrays, strict=True)
                ]
                key = self._key(task, case)
                self._outputs.put(key, b"".join(array.tobytes() for array in kept))
                self._remember(key, kept)
                results.append(kept)
        return results

    def _remember(self, key: str, arrays: list[Array]) -> None:
        with self._lock:
            self._remembered[key] = arrays
            while (
                sum(a.nbytes for kept in self._remembered.values() for a in kept) > _REMEMBERED_BYTES
                and len(self._remembered) > 1
            ):
                self._remembered.popitem(last=False)


def _batches(task: Task, cases: Sequence[Case]) -> list[list[Case]]:
    """Cases that run in one program: large ones alone."""
    batches: list[list[Case]] = [[]]
    held = 0
    for case in cases:
        size = task.working_set(dict(case.sizes))
        if batches[-1] and held + size > 64 << 20:
            batches.append([])
            held = 0
        batches[-1].append(case)
        held += size
    return [batch for batch in batches if batch]


def host_text() -> str:
    """The text of our own host program, so that a change of it is a change of every key."""
    return (HOST / "reference_host.cpp").read_text() + (HOST / "call.h").read_text()


def processor() -> str:
    """The processor's name, for evidence and for keys of measured times."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def compile_reference(
    task: Task, folder: Path, settings: VerifySettings, flags: Sequence[str], *, source: str | None = None
) -> Path:
    """Compile the reference (or ``source`` in its place) with our host into ``folder/reference``.

    Raises :class:`InputError` with the compiler's words, :class:`EnvironmentFault` when there is no compiler.
    """
    compiler = shutil.which(settings.host_compiler)
    if compiler is None:
        raise EnvironmentFault(
            f"no `{settings.host_compiler}` on PATH.",
            fix="Install g++ (Debian: apt-get install g++) or set verify.host_compiler.",
        )
    (folder / REFERENCE).write_text((task.reference if source is None else source) + _signature_check(task))
    program = folder / "reference"
    argv = [
        compiler,
        *flags,
        f"-DREGRAPH_FUNCTION={task.function}",
        f"-I{HOST}",
        str(HOST / "reference_host.cpp"),
        REFERENCE,
        "-o",
        str(program),
    ]
    limits = sandbox.Limits(seconds=settings.compile_seconds, memory=settings.compile_memory)
    done = sandbox.run(argv, folder=folder, limits=limits, readable=[HOST, Path(compiler)])
    if not done.ok:
        words = done.stderr.decode(errors="replace")
        line = re.search(rf"{REFERENCE}:(\d+):(?:\d+:)? (?:fatal )?error: (.*)", words)
        where = f"{task.folder / REFERENCE}:{line[1]}" if line else str(task.folder / REFERENCE)
        what = line[2] if line else (words.strip()[-600:] or f"the compiler was ended ({done.killed_by})")
        raise InputError(
            f"the reference does not compile: {what}.", where=where, fix=f"It must define `{task.reference_signature}`."
        )
    return program


def _signature_check(task: Task) -> str:
    """Lines after the reference that stop the compiler when its function has another signature."""
    types = ", ".join(p.reference_declaration.rsplit(" ", 1)[0] for p in task.parameters)
    message = f"the signature is not: {task.reference_signature}".replace('"', '\\"')
    return (
        "\n#include <cstddef>\n#include <cstdint>\n#include <type_traits>\n"
        f'static_assert(std::is_same<decltype(&{task.function}), void (*)({types})>::value, "{message}");\n'
    )


def run_reference(
    task: Task,
    calls: Sequence[Call],
    program: Path,
    settings: VerifySettings,
    *,
    repeats: int = 1,
    sanitized: bool = False,
) -> tuple[list[list[Array]], list[list[float]]]:
    """Run ``calls`` in one process; returns the arrays after each call, and the seconds of its repeats.

    Raises :class:`InputError` when it crashes or passes its deadline.
    """
    with PrivateFolder() as name:
        folder = Path(name)
        layout = write_calls(task, calls, folder / "index", folder / "arrays", widened=True)
        limits = sandbox.Limits(seconds=600, memory=max(settings.run_memory, 4 * layout.total), sparse=sanitized)
        argv: list[str | Path] = [program, "index", "arrays", "outputs", str(repeats)]
        # The leak check would need ptrace, which the sandbox refuses.
        done = sandbox.run(
            argv, folder=folder, limits=limits, readable=[program], env={"ASAN_OPTIONS": "detect_leaks=0"}
        )
        lines = done.stdout.decode().splitlines()
        if not done.ok or len(lines) != len(calls):
            _explain(task, calls, done, len(lines))
        seconds = [[float(word) for word in line.split()] for line in lines]
        outputs = [_with_inputs(task, call, layout, index, folder / "outputs") for index, call in enumerate(calls)]
    return outputs, seconds


def _with_inputs(task: Task, call: Call, layout: Layout, index: int, file: Path) -> list[Array]:
    """The arrays after a call; inputs, which the host does not write back, as they were."""
    if file.stat().st_size < layout.total:
        with file.open("ab") as stream:
            stream.truncate(layout.total)
    found = read_arrays(layout, index, file)
    return [
        after if p.writable else before
        for p, before, after in zip(task.arrays, arrays_of(task, call), found, strict=True)
    ]


def _explain(task: Task, calls: Sequence[Call], done: sandbox.Finished, finished: int) -> None:
    words = done.stderr.decode(errors="replace")
    where = str(task.folder / REFERENCE)
    at = dict(calls[min(finished, len(calls) - 1)].sizes)
    if done.returncode in (64, 65, 66, 67):
        raise InternalFault(f"the reference's host failed with {done.returncode} at {at}: {words[-300:]}", where=where)
    line = re.search(rf"{REFERENCE}:(\d+)", words)
    summary = re.search(r"(?:SUMMARY: |runtime error: ).*", words)
    reason = summary[0] if summary else f"it ended with {done.killed_by or done.returncode}"
    raise InputError(f"the reference fails at {at}: {reason}.", where=f"{where}:{line[1]}" if line else where)
