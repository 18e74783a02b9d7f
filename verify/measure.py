"""Level ``gpu``: is it right on the GPU, at the check sizes and at the timed ones, and how fast is it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from regraph_db.errors import InputError
from regraph_db.records import Evidence, Interval, Level, Verdict, VerdictKind, content_id
from verify import sandbox
from verify.compare import difference
from verify.compiler import Compiled, Compiler
from verify.execution import Call
from verify.frames import Layout, read_arrays, write_calls
from verify.gpu import Gpu, Peaks, Runner, gpu_lock
from verify.plan import check_cases, timed_cases
from verify.reference import Case, References
from verify.session import CandidateFault, Run, Session
from verify.settings import VerifySettings
from verify.task import Task
from verify.timing import relative_error, settled, speedup

#: Kernels under this are timed in batches without a synchronisation in between.
SHORT: Final = 20e-6
#: Seconds that the default stream is kept busy before a checked call, so that work which does not wait for it comes
#: too early.
DELAY: Final = 2e-3
_MOST_SLOTS: Final = 64
_DIGESTS_FETCHED: Final = 6
#: Bytes of outputs that wait for their comparison while the GPU is held.
_MOST_PENDING: Final = 1 << 30
#: Least bytes that a device candidate must copy to the host in one call before it is said to compute there.
_COPIED: Final = 64 << 10


@dataclass(frozen=True)
class Bench:
    """Everything that level ``gpu`` needs besides the candidate."""

    gpu: Gpu
    runner: Runner
    peaks: Peaks
    references: References
    compiler: Compiler
    settings: VerifySettings
    folder: Path  #: for the lock files


@dataclass
class _Side:
    """One kernel in one runner during a timing: candidate or baseline."""

    name: str
    session: Session
    layout: Layout
    folder: Path
    slots: int = 1
    samples: list[float] = field(default_factory=list)
    digests: dict[int, set[str]] = field(default_factory=dict)
    last: Run | None = None


def measure(
    bench: Bench, task: Task, compiled: Compiled, baseline: str | None, evidence: Evidence
) -> dict[str, object]:
    """The verdict's fields. Raises :class:`CandidateFault` for what the candidate does wrong."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(_private_folder(task)))
        with gpu_lock(bench.gpu, bench.folder, exclusive=False):
            session = _start(stack, bench, task, compiled, folder / "candidate")
            session.hello()
            _load(session, folder / "candidate", task)
            cases = check_cases(task, bench.settings)
            _check(bench, task, session, folder / "candidate", cases)
        other = None
        if baseline is not None:
            other = _start(stack, bench, task, _compile_baseline(bench, task, baseline), folder / "baseline")
        fields = _time(bench, task, session, other, folder)
        session.quit()
    fields["evidence"] = evidence.model_copy(
        update={
            "gpu": bench.gpu.name,
            "driver": bench.gpu.driver,
            "sizes": (
                *(dict(case.sizes) for case in cases),
                *(dict(sets[0].sizes) for sets in timed_cases(task, bench.settings)),
            ),
            "samples": fields.pop("samples"),
        }
    )
    fields["baseline"] = "reference" if baseline is None else content_id("kernel", baseline)
    return fields


def _private_folder(task: Task) -> tempfile.TemporaryDirectory[str]:
    """A folder for the arrays: in memory where there is room for them."""
    needed = 8 * max(task.working_set(sizes) for sizes in task.sizes.all)
    shared = Path("/dev/shm")  # a private folder is made inside
    roomy = shared.is_dir() and shutil.disk_usage(shared).free > 2 * needed + (64 << 20)
    return tempfile.TemporaryDirectory(prefix="regraph-", dir=shared if roomy else None)


def _start(stack: ExitStack, bench: Bench, task: Task, compiled: Compiled, folder: Path) -> Session:
    folder.mkdir()
    assert compiled.library is not None
    shutil.copyfile(compiled.library, folder / "candidate.so")
    seconds = 2 * task.seconds + 10 * bench.settings.timing_seconds + 300
    limits = sandbox.Limits(
        seconds=seconds,
        memory=bench.settings.run_memory + 8 * max(map(task.working_set, task.sizes.all)),
        processes=256,
    )
    return stack.enter_context(bench.runner.session(bench.gpu, folder, limits))


def _load(session: Session, folder: Path, task: Task) -> None:
    session.load(folder.resolve() / "candidate.so", task.function, task.abi, task.seconds)


def _compile_baseline(bench: Bench, task: Task, source: str) -> Compiled:
    compiled = bench.compiler.compile(task, source)
    if compiled.library is None:
        raise InputError(
            f"the baseline does not compile: {compiled.reason}.", fix="The baseline must be a verified kernel."
        )
    return compiled


def _side(name: str, task: Task, session: Session, folder: Path, calls: Sequence[Call]) -> _Side:
    """One side of a timing, its calls written to its folder."""
    return _Side(name, session, _write(task, folder / name, calls), folder / name)


def _write(task: Task, folder: Path, calls: Sequence[Call]) -> Layout:
    layout = write_calls(task, calls, folder / "index", folder / "arrays")
    with (folder / "outputs").open("wb") as stream:
        stream.truncate(layout.total)
    return layout


def _judge_run(task: Task, run: Run, sizes: dict[str, int], *, timed: bool) -> None:
    """The rules that every run must keep, whatever its outputs."""
    at = ", ".join(f"{name} = {value}" for name, value in sizes.items())
    if run.changed:
        raise CandidateFault(VerdictKind.REWARD_HACK, f"an input was overwritten (at {at})")
    if run.overwritten:
        raise CandidateFault(
            VerdictKind.RUNTIME_ERROR,
            f"it writes out of bounds: {4 * run.overwritten} bytes beside the arrays (at {at})",
        )
    if run.busy:
        raise CandidateFault(
            VerdictKind.REWARD_HACK, f"a stream of its own goes on after the default stream is done (at {at})"
        )
    if task.abi == "device" and run.to_host >= max(_COPIED, task.working_set(sizes) // 8):
        raise CandidateFault(
            VerdictKind.REWARD_HACK, f"it copies {run.to_host} bytes to the host and computes there (at {at})"
        )
    if timed and not run.launches and "cublas" not in task.allow:
        raise CandidateFault(VerdictKind.REWARD_HACK, f"it launches no kernel (at {at})")


def _check(bench: Bench, task: Task, session: Session, folder: Path, cases: Sequence[Case]) -> None:
    """Every check case once, its raw outputs compared here.

    What the candidate keeps from call to call is left to it, and calls of one size lie at the same addresses: code that
    remembers by address, by size or by count answers with what it remembers. (Timed calls start from a clean state
    instead.)
    """
    calls = [case.call(task, poison_seed=index) for index, case in enumerate(cases)]
    expected = bench.references.outputs(task, cases)
    layout = _write(task, folder, calls)
    session.calls(folder / "index", folder / "arrays", folder / "outputs")
    seen: dict[Case, int] = {}
    for index, (case, call, wanted) in enumerate(zip(cases, calls, expected, strict=True)):
        run = session.run(index, task.seconds, delay=DELAY, restore=index == 0, place=1)
        session.fetch(0)
        _judge_run(task, run, dict(case.sizes), timed=False)
        wrong = difference(task, call, wanted, read_arrays(layout, index, folder / "outputs"))
        if wrong:
            again = case in seen
            kind = VerdictKind.NONDETERMINISTIC if again else VerdictKind.WRONG_RESULT
            raise CandidateFault(kind, f"right once, wrong when repeated: {wrong}" if again else wrong)
        seen[case] = index


def _time(bench: Bench, task: Task, session: Session, other: Session | None, folder: Path) -> dict[str, object]:
    """Time at every timed size; the outputs of the timed calls are checked."""
    totals: list[tuple[list[float], list[float]]] = []
    unstable, samples, bound = False, 0, 0.0
    for sets in timed_cases(task, bench.settings):
        sizes = dict(sets[0].sizes)
        calls = [case.call(task, poison_seed=90 + index) for index, case in enumerate(sets)]
        checker = _Checker(task, calls, bench.references.outputs(task, sets))
        seconds = [bench.references.seconds(task, sets[0])] if other is None else []
        sides = [_side("candidate", task, session, folder, calls)]
        if other is not None:
            sides.append(_side("baseline", task, other, folder, calls))
        # Only the timing itself holds the GPU alone: inputs are written before, outputs compared after.
        with gpu_lock(bench.gpu, bench.folder, exclusive=True):
            if other is not None and not totals:
                other.hello()
                _load(other, folder / "baseline", task)
            for side in sides:
                side.session.calls(side.folder / "index", side.folder / "arrays", side.folder / "outputs")
            unstable |= _sample(bench, task, sides, sizes, checker)
        checker.finish()
        totals.append((sides[0].samples, sides[1].samples if other is not None else seconds))
        samples = max(samples, len(sides[0].samples))
        bound += bound_seconds(task, sizes, bench.peaks)
    candidate = sum(median(side) for side, _ in totals)
    base = sum(median(side) for _, side in totals)
    interval = speedup(totals[0][1], totals[0][0]) if len(totals) == 1 else _summed(totals)
    return {
        "speedup": interval,
        "candidate_seconds": candidate,
        "baseline_seconds": base,
        "bound_share": bound / candidate if candidate else None,
        "unstable": unstable,
        "samples": samples,
    }


def _summed(totals: list[tuple[list[float], list[float]]]) -> Interval:
    """The speedup of the sums over several timed sizes: every size resampled on its own."""
    parts = [speedup(base, candidate) for candidate, base in totals]
    weights = np.array([median(candidate) for candidate, _ in totals])
    weights = weights / weights.sum()
    return Interval(
        median=float(sum(w * p.median for w, p in zip(weights, parts, strict=True))),
        low=float(sum(w * p.low for w, p in zip(weights, parts, strict=True))),
        high=float(sum(w * p.high for w, p in zip(weights, parts, strict=True))),
    )


@dataclass
class _Checker:
    """Compares the outputs of timed calls: each new digest once, up to a handful a set."""

    task: Task
    calls: Sequence[Call]
    expected: Sequence[Sequence[np.ndarray]]
    pending: list[tuple[str, int, list[np.ndarray]]] = field(default_factory=list)

    def take(self, side: _Side, index: int, run: Run) -> None:
        """Fetch the outputs of ``run`` whose digests are new; they are compared at the end, or when they grow too
        many."""
        known = side.digests.setdefault(index, set())
        for slot, digest in enumerate(run.digests):
            if digest in known or len(known) >= _DIGESTS_FETCHED:
                continue
            known.add(digest)
            side.session.fetch(slot)
            self.pending.append((side.name, index, read_arrays(side.layout, index, side.folder / "outputs")))
        if sum(array.nbytes for _, _, arrays in self.pending for array in arrays) > _MOST_PENDING:
            self.finish()

    def finish(self) -> None:
        """Compare what was taken."""
        for name, index, arrays in self.pending:
            wrong = difference(self.task, self.calls[index], self.expected[index], arrays)
            if wrong and name == "baseline":
                raise InputError(f"the baseline is wrong: {wrong}.", fix="The baseline must be a verified kernel.")
            if wrong:
                raise CandidateFault(VerdictKind.WRONG_RESULT, f"wrong in a timed call: {wrong}")
        self.pending.clear()


def _sample(bench: Bench, task: Task, sides: Sequence[_Side], sizes: dict[str, int], checker: _Checker) -> bool:
    """Fill the sides' samples, alternating between them; True when the timing did not settle."""
    rng = np.random.default_rng()
    sets = len(checker.calls)
    limit = task.seconds

    def one(side: _Side, index: int, keep: bool) -> float:
        run = side.session.run(index, limit, slots=side.slots, flush=True)
        if side.name == "candidate":
            _judge_run(task, run, sizes, timed=True)
        checker.take(side, index, run)
        side.last = run
        seconds = run.seconds / side.slots
        if keep:
            side.samples.append(seconds)
        return seconds

    for side in sides:
        warm = [one(side, 0, keep=False)]
        while len(warm) < 2 + int(rng.integers(3)) and sum(warm) < 1.0:
            warm.append(one(side, len(warm) % sets, keep=False))
        side.slots = _slots(task, sizes, min(warm), side.last)
        if side.slots > 1:
            one(side, 0, keep=False)
    deadline = time.monotonic() + bench.settings.timing_seconds
    while time.monotonic() < deadline or any(len(side.samples) < 3 for side in sides):
        for side in sides:
            one(side, int(rng.integers(sets)), keep=True)
        if settled([side.samples for side in sides], bench.settings.timing_samples, bench.settings.timing_error):
            break
    for side in sides:
        _cross_check(task, side, sizes, limit)
    return not all(relative_error(side.samples) < bench.settings.timing_error for side in sides)


def _slots(task: Task, sizes: dict[str, int], seconds: float, last: Run | None) -> int:
    """Calls a batch: enough to fill 200 µs for a short kernel that keeps no state, else one."""
    if task.abi == "host" or seconds >= SHORT or last is None or last.held:
        return 1
    fitting = (2 << 30) // max(1, task.working_set(sizes))
    return int(max(1, min(_MOST_SLOTS, fitting, 200e-6 / max(seconds, 1e-7))))


def _cross_check(task: Task, side: _Side, sizes: dict[str, int], limit: float) -> None:
    """Device events against the judge's own clock, over as many calls as fit: events that claim far too little are
    refused."""
    if side.name != "candidate" or task.abi == "host":
        return
    seconds = median(side.samples)
    fitting = (4 << 30) // max(1, task.working_set(sizes))
    slots = int(max(1, min(_MOST_SLOTS, fitting, 20e-3 / max(seconds, 1e-7))))
    run = side.session.run(0, limit, slots=slots)
    claimed = seconds * slots
    if run.wall_seconds - 2e-3 > 3 * max(claimed, run.seconds) + slots * 30e-6:
        raise CandidateFault(
            VerdictKind.REWARD_HACK,
            f"device events say {claimed / slots:.3g} s a call, the judge's clock {run.wall_seconds / slots:.3g} s",
        )


def bound_seconds(task: Task, sizes: dict[str, int], peaks: Peaks) -> float:
    """The least seconds of one call: bytes over peak bandwidth, flops over peak rate, or the launch floor."""
    moved = task.bytes_at(sizes) / peaks.bytes_per_second
    computed = task.flops_at(sizes) / peaks.flops_per_second if not any(p.dtype.half for p in task.parameters) else 0.0
    return max(moved, computed, peaks.floor_seconds)


def above_the_bound(task: Task, seconds: float, peaks: Peaks, sizes: dict[str, int]) -> bool:
    """Whether a measured time is beyond belief: 15 % under what the traffic alone takes, where a cache cannot
    explain it."""
    moved = task.bytes_at(sizes) / peaks.bytes_per_second
    if task.abi == "host" or task.bytes_at(sizes) < 4 * peaks.l2:
        return seconds < 0.5 * peaks.floor_seconds
    return seconds < 0.85 * moved


def verdict_on_gpu(
    bench: Bench,
    task: Task,
    compiled: Compiled,
    baseline: str | None,
    evidence: Evidence,
    verify_again: Callable[[], str],
) -> Verdict:
    """Judge on the GPU; what beats the bound is believed only when ``verify_again`` (empty: well) agrees."""
    evidence = evidence.model_copy(update={"gpu": bench.gpu.name, "driver": bench.gpu.driver})
    try:
        fields = measure(bench, task, compiled, baseline, evidence)
    except CandidateFault as fault:
        return Verdict(
            verdict=fault.kind,
            reason=fault.reason[:1000],
            level=Level.GPU,
            log=fault.log[: bench.settings.log_characters],
            evidence=evidence,
        )
    reason = ""
    sizes = dict(timed_cases(task, bench.settings)[0][0].sizes)
    seconds = fields["candidate_seconds"]
    assert isinstance(seconds, float)
    if above_the_bound(task, seconds, bench.peaks, sizes):
        wrong = verify_again()
        if wrong:
            return Verdict(
                verdict=VerdictKind.REWARD_HACK,
                reason=f"faster than the GPU's limit allows, and {wrong}",
                level=Level.GPU,
                evidence=evidence,
            )
        reason = "faster than the limit; verified again in a fresh process under compute-sanitizer"
    return Verdict.model_validate({"verdict": VerdictKind.PASSED, "level": Level.GPU, "reason": reason, **fields})
