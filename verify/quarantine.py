"""What beats the physical bound is not believed before a fresh process under compute-sanitizer has verified it
again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from regraph_db.errors import InternalFault
from verify import sandbox
from verify.compare import difference
from verify.compiler import Compiled
from verify.frames import read_arrays, write_calls
from verify.plan import seed_of
from verify.private import PrivateFolder
from verify.reference import Case
from verify.session import CandidateFault, Session
from verify.task import Task

if TYPE_CHECKING:
    from verify.measure import Bench


_FOUND_ERRORS = 66  #: the exit code that compute-sanitizer is told to end with when it found errors
_SUMMARY = "ERROR SUMMARY"  #: how the line begins in which compute-sanitizer counts the errors that it found
_ENDING_SECONDS = 120.0


def find_sanitizer(bench: Bench) -> Path | None:
    """compute-sanitizer of the toolkit or on PATH; ``None`` when the machine has none."""
    beside = bench.compiler.toolkit.root / "bin" / "compute-sanitizer"
    found = str(beside) if beside.is_file() else shutil.which("compute-sanitizer")
    return Path(found).resolve() if found else None


def verify_again(bench: Bench, task: Task, compiled: Compiled) -> str:
    """Run a check size and a timed size once more, on inputs never used before.

    Returns what is wrong, empty when nothing is. Raises :class:`InternalFault` when that cannot be found out here:
    without compute-sanitizer nothing that beats the bound is believed, and nothing is said against it either.
    """
    sanitizer = find_sanitizer(bench)
    if sanitizer is None:
        raise InternalFault(
            "it beats the GPU's limit, and there is no compute-sanitizer to verify it again.",
            fix="Install cuda-sanitizer of the CUDA toolkit.",
        )
    seed = seed_of(task, bench.settings) + 9000
    timed = task.sizes.timed or task.sizes.check
    cases = [Case.of(task.sizes.check[-1], seed), Case.of(timed[0], seed + 1)]
    with PrivateFolder() as name:
        folder = Path(name)
        assert compiled.library is not None
        shutil.copyfile(compiled.library, folder / "candidate.so")
        under: list[str | Path] = [sanitizer, "--tool", "memcheck", "--log-file", "sanitizer.log"]
        under += ["--error-exitcode", str(_FOUND_ERRORS)]
        limits = sandbox.Limits(seconds=600, memory=32 << 30, processes=256)
        try:
            with bench.runner.session(bench.gpu, folder, limits, under=under) as session:
                return _replay(bench, task, session, folder, cases)
        except CandidateFault as fault:
            # It may have been ended by the sanitizer, or have ended by itself: the sanitizer's own words tell.
            log = _read(folder)
            if words := _fault_of(log):
                return f"compute-sanitizer says: {words}"
            why = f"{fault.reason}. {log}"[:700]
            raise InternalFault(f"it beats the GPU's limit, and compute-sanitizer could not run it: {why}") from None
        except InternalFault as fault:
            raise InternalFault(
                f"it beats the GPU's limit, and compute-sanitizer could not verify it: {fault.what}"
            ) from fault


def _replay(bench: Bench, task: Task, session: Session, folder: Path, cases: list[Case]) -> str:
    session.hello(120)
    session.load(folder.resolve() / "candidate.so", task.function, task.abi, 120)
    calls = [case.call(task, poison_seed=7 + index) for index, case in enumerate(cases)]
    expected = bench.references.outputs(task, cases)
    layout = write_calls(task, calls, folder / "index", folder / "arrays")
    with (folder / "outputs").open("wb") as stream:
        stream.truncate(layout.total)
    session.calls(folder / "index", folder / "arrays", folder / "outputs")
    for index, (call, wanted) in enumerate(zip(calls, expected, strict=True)):
        session.run(index, 300)
        session.fetch(0)
        if wrong := difference(task, call, wanted, read_arrays(layout, index, folder / "outputs")):
            return f"wrong under compute-sanitizer: {wrong}"
    session.quit()
    done = session.ended(_ENDING_SECONDS)
    log = _read(folder)
    words = _fault_of(log)
    if words or done.returncode == _FOUND_ERRORS:  # the log stands where the candidate can write
        return f"compute-sanitizer says: {words or 'it found errors'}"
    if done.returncode != 0 or _SUMMARY not in log:  # silence is no acquittal
        raise InternalFault(f"it ended with {done.returncode} and without a summary. {log}"[:800])
    return ""


def _read(folder: Path) -> str:
    """What compute-sanitizer wrote."""
    log = folder / "sanitizer.log"
    return log.read_text(errors="replace") if log.is_file() else ""


def _fault_of(log: str) -> str:
    """What compute-sanitizer found in the device's work, in one line; empty when it counted no errors, or did not
    count."""
    lines = [line.strip("= ") for line in log.splitlines()]
    summary = next((line for line in lines if line.startswith(_SUMMARY)), "")
    if not summary or summary.startswith(f"{_SUMMARY}: 0 errors"):
        return ""
    return next((line for line in lines if "Invalid" in line or "Error" in line), summary)[:200]
