"""What beats the physical bound is not believed before a fresh process under compute-sanitizer has verified it
again."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from regraph_db.errors import InternalFault
from verify import sandbox
from verify.compare import difference
from verify.compiler import Compiled
from verify.frames import read_arrays, write_calls
from verify.plan import seed_of
from verify.reference import Case
from verify.session import CandidateFault, Session
from verify.task import Task

if TYPE_CHECKING:
    from verify.measure import Bench


def find_sanitizer(bench: Bench) -> Path | None:
    """compute-sanitizer of the toolkit or on PATH; ``None`` when the machine has none."""
    beside = bench.compiler.toolkit.root / "bin" / "compute-sanitizer"
    found = str(beside) if beside.is_file() else shutil.which("compute-sanitizer")
    return Path(found).resolve() if found else None


def verify_again(bench: Bench, task: Task, compiled: Compiled) -> str:
    """Run a check size and a timed size once more, on inputs never used before; what is wrong, empty when nothing
    is."""
    sanitizer = find_sanitizer(bench)
    if sanitizer is None:
        return "there is no compute-sanitizer on this machine to verify it again"
    seed = seed_of(task, bench.settings) + 9000
    timed = task.sizes.timed or task.sizes.check
    cases = [Case.of(task.sizes.check[-1], seed), Case.of(timed[0], seed + 1)]
    with tempfile.TemporaryDirectory(prefix="regraph-") as name:
        folder = Path(name)
        assert compiled.library is not None
        shutil.copyfile(compiled.library, folder / "candidate.so")
        runner = bench.runner
        argv: list[str | Path] = [
            sanitizer,
            "--tool",
            "memcheck",
            "--error-exitcode",
            "66",
            "--log-file",
            "sanitizer.log",
            runner.program,
            "{control}",
            "{replies}",
        ]
        argv += [str(bench.gpu.index), runner.kernels, runner.runtime]
        limits = sandbox.Limits(seconds=600, memory=32 << 30, processes=256)
        readable = [runner.program, runner.kernels, runner.runtime.parent, sanitizer.parent.parent]
        try:
            with Session(argv, folder, limits, readable) as session:
                return _replay(bench, task, session, folder, cases)
        except CandidateFault as fault:
            return f"compute-sanitizer found fault with it: {fault.reason}"
        except InternalFault as fault:
            return f"compute-sanitizer could not verify it ({fault.what})"


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
    log = folder / "sanitizer.log"
    text = log.read_text(errors="replace") if log.is_file() else ""
    errors = [
        line for line in text.splitlines() if "Invalid" in line or ("ERROR SUMMARY" in line and " 0 errors" not in line)
    ]
    return f"compute-sanitizer says: {errors[0].strip('= ')}" if errors else ""
