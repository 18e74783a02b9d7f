"""Runs a candidate on the CPU: translate, compile, call in a confined process, read raw outputs or a fault back."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regraph_db.errors import RegraphError
from regraph_db.records import VerdictKind
from verify import frames, sandbox
from verify.cpu.build import Kit, build, kit, source_lines, unavailable
from verify.cpu.refusals import unsupported
from verify.cpu.symbols import Layout, read_layout
from verify.cpu.translate import TranslationError, translate
from verify.execution import Call, Execution
from verify.sandbox import Finished, Limits
from verify.task import Task

#: Device memory beyond the arguments that a candidate may allocate, all calls together.
SPARE = 512 << 20
_LOG = 4000


def available() -> str:
    """Empty when this machine can run the level, else why not."""
    return unavailable()


def execute(
    task: Task, source: str, calls: Sequence[Call], *, races: bool, toolkit: Path, folder: Path, limits: Limits
) -> Execution:
    """Call the candidate once for each of ``calls``, in one confined process.

    ``races`` checks every access of every simulated thread (races, exact bounds, uninitialised shared memory); without
    it the run is quicker and only pages behind each array are guarded. ``toolkit`` holds the CUDA headers in
    ``include``, ``folder`` is private and empty, ``limits`` are the run's.

    Never raises for what the candidate is or does; a fault of this level itself is ``harness_error``.
    """
    try:
        return _execute(task, source, calls, races, toolkit, folder, limits)
    except RegraphError as error:
        return Execution(VerdictKind.HARNESS_ERROR, str(error))


def _execute(
    task: Task, source: str, calls: Sequence[Call], races: bool, toolkit: Path, folder: Path, limits: Limits
) -> Execution:
    shared = kit(toolkit)
    prepared = prepare(shared, source, task.function, "checked" if races else "plain", folder)
    if isinstance(prepared, Execution):
        return prepared
    library, layout = prepared
    places = frames.write_calls(task, calls, folder / "calls", folder / "inputs")
    options = {"checked": int(races), "host": int(task.abi == "host"), "arena": _arena(calls)}
    write_setup(folder / "setup", library, layout, options)
    finished, nonce = run_driver(shared, folder, limits)
    return _read(finished, nonce, library, folder, places, len(calls), limits)


def prepare(shared: Kit, source: str, function: str, kind: str, folder: Path) -> tuple[Path, Layout] | Execution:
    """Translate and compile; the library and its layout, or why there is none."""
    if reason := unsupported(source):
        return Execution(VerdictKind.UNSUPPORTED, f"the CPU level does not run {reason}")
    try:
        translation = translate(source, unroll=kind == "counted")
    except TranslationError as error:
        return Execution(VerdictKind.UNSUPPORTED, f"the CPU level does not understand {error}")
    built = build(shared, translation.text, kind, folder)
    if built.library is None:
        if built.killed_by == "deadline":
            return Execution(VerdictKind.UNSUPPORTED, f"the host compiler took more than {built.seconds:.0f} s")
        first = next((line for line in built.log.splitlines() if "error:" in line), built.killed_by or "no message")
        return Execution(
            VerdictKind.UNSUPPORTED, f"the CPU level does not compile it: {first.strip()[:300]}", built.log[:_LOG]
        )
    layout = read_layout(built.library, function, translation.constants)
    if layout is None:
        return Execution(VerdictKind.COMPILE_ERROR, f'it does not define extern "C" `{function}`', built.log[:_LOG])
    return built.library, layout


def _arena(calls: Sequence[Call]) -> int:
    """Address space for device memory: nothing is ever reused, so that what is freed stays closed."""
    arrays = [
        argument.nbytes for call in calls for argument in call.arguments if not isinstance(argument, (int, float))
    ]
    return (4 * sum(arrays) + 16384 * len(arrays) + SPARE) // 4096 * 4096


def write_setup(file: Path, library: Path, layout: Layout, options: dict[str, int]) -> None:
    """The file that tells the driver how to run and where the candidate's variables lie."""
    lines = [f"library ./{library.name}", f"function {layout.function}"]
    lines += [f"option {name} {value}" for name, value in options.items()]
    lines += [f"variable {v.offset} {v.size} {int(v.constant)} {v.name}" for v in layout.variables]
    lines += [f"shared {v.offset} {v.size} 0 {v.name}" for v in layout.shared]
    file.write_text("\n".join(lines) + "\n")


def run_driver(shared: Kit, folder: Path, limits: Limits, readable: Sequence[Path] = ()) -> tuple[Finished, str]:
    """Run the driver over what was written into ``folder``; how it ended, and the nonce that must close its report."""
    nonce = secrets.token_hex(16)
    confined = replace(limits, sparse=True)
    finished = sandbox.run(
        [shared.driver],
        folder=folder,
        limits=confined,
        readable=[shared.folder, *readable],
        stdin=f"{nonce}\n".encode(),
    )
    return finished, nonce


def read_report(folder: Path, nonce: str) -> list[str] | None:
    """The report's lines; ``None`` when it does not end as only the driver can end it."""
    try:
        lines = (folder / "report").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    return lines[:-1] if lines and lines[-1] == f"end {nonce}" else None


def fault_of(lines: list[str], library: Path, folder: Path) -> tuple[VerdictKind, str] | None:
    """The fault that a report holds, its places turned into the candidate's lines."""
    for index, line in enumerate(lines):
        if line.startswith("load_error "):
            missing = re.search(r"undefined symbol: (\S+)", line)
            what = (
                f"it calls `{missing.group(1)}`, which the CPU level does not offer"
                if missing
                else line.removeprefix("load_error ")
            )
            return VerdictKind.UNSUPPORTED, what
        if line.startswith("fault "):
            _, kind, *sites = line.split()
            message = lines[index + 1].removeprefix("message ") if index + 1 < len(lines) else ""
            return VerdictKind(kind), _with_lines(message, [int(site, 16) for site in sites], library, folder)
    return None


def _with_lines(message: str, sites: list[int], library: Path, folder: Path) -> str:
    found = source_lines(library, [site for site in sites if site >= 0], folder)
    lines = iter(found)
    named = [next(lines) if site >= 0 else 0 for site in sites]
    used = {int(number) for number in re.findall(r"@(\d)", message)}
    spare = [line for index, line in enumerate(named) if index not in used and line]

    def name(match: re.Match[str]) -> str:
        line = named[int(match.group(1))] or (spare[0] if spare else 0)
        return f"line {line}" if line else "an unknown line"

    return re.sub(r"@(\d)", name, message)


def _read(
    finished: Finished, nonce: str, library: Path, folder: Path, places: frames.Layout, count: int, limits: Limits
) -> Execution:
    log = (finished.stdout + finished.stderr).decode("utf-8", "replace")[:_LOG]
    lines = read_report(folder, nonce)
    if lines is None:
        if finished.timed_out:
            return Execution(VerdictKind.TIMEOUT, f"it did not end within {limits.seconds:g} s on the CPU", log)
        if finished.killed_by:
            return Execution(VerdictKind.RUNTIME_ERROR, f"it was ended by {finished.killed_by}", log)
        return Execution(VerdictKind.REWARD_HACK, "it ended the process that ran it, or closed its result channel", log)
    fault = fault_of(lines, library, folder)
    if fault:
        return Execution(fault[0], fault[1], log)
    seconds = [float(line.split()[2]) for line in lines if line.startswith("call ")]
    if len(seconds) != count:
        return Execution(VerdictKind.HARNESS_ERROR, f"{len(seconds)} of {count} calls were reported", log)
    outputs = [list(frames.read_arrays(places, call, folder / "outputs")) for call in range(count)]
    return Execution(None, "", log, outputs, seconds)
