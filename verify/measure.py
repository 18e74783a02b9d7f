"""Level ``gpu``: is it right on the GPU, at the check sizes and at the timed ones, and how fast is it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from regraph_db.errors import InputError
from regraph_db.records import Evidence, Level, Verdict, VerdictKind, content_id
from verify import sandbox
from verify.bound import above_the_bound, bound_seconds
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
from verify.timing import relative_error, settled, speedup, summed
from verify.warm import OLDEST, Kind, Ticket, Warm, WarmRunners

#: Kernels under this are timed in batches without a synchronisation in between.
SHORT: Final = 20e-6
#: Seconds that the default stream is kept busy before a checked call, so that work which does not wait for it comes
#: too early.
DELAY: Final = 2e-3
_MOST_SLOTS: Final = 64
_CLOCK_TRIES: Final = 5
_DIGESTS_FETCHED: Final = 6
#: So many candidates may hold their arrays on the device at once.
_SHARES: Final = 64
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
    warm: WarmRunners


@dataclass
class _Side:
    """One kernel in one runner: candidate or baseline."""

    name: str
    warm: Warm
    layout: Layout = field(default_factory=lambda: Layout((), 0))
    slots: int = 1
    samples: list[float] = field(default_factory=list)
    digests: dict[int, set[str]] = field(default_factory=dict)
    last: Run | None = None

    @property
    def session(self) -> Session:
        return self.warm.session

    @property
    def folder(self) -> Path:
        return self.warm.folder

    def forget(self) -> None:
        """Before another timed size."""
        self.slots, self.samples, self.digests, self.last = 1, [], {}, None


def measure(
    bench: Bench, task: Task, compiled: Compiled, baseline: Compiled | None, ticket: Ticket
) -> dict[str, object]:
    """The verdict's fields. Raises :class:`CandidateFault` for what the candidate does wrong.

    The GPU is shared while the candidate is loaded, checked and given the inputs of its timing; only the timing has it
    alone.
    """
    cases = check_cases(task, bench.settings)
    calls = [case.call(task, poison_seed=index) for index, case in enumerate(cases)]
    expected = bench.references.outputs(task, cases)
    with ExitStack() as stack:
        sides = [_Side("candidate", stack.enter_context(ticket.take()))]
        with gpu_lock(bench.gpu, bench.folder, exclusive=False):
            _load(sides[0], task, compiled)
            _check(sides[0], task, cases, calls, expected)
        if baseline is not None:
            sides.append(_Side("baseline", stack.enter_context(ticket.take())))
            with gpu_lock(bench.gpu, bench.folder, exclusive=False):
                _load(sides[1], task, baseline)
        fields = _time(bench, task, sides)
        sides[0].session.quit()
    fields["sizes"] = (
        *(dict(case.sizes) for case in cases),
        *(dict(sets[0].sizes) for sets in timed_cases(task, bench.settings)),
    )
    return fields


def kind_of(task: Task, settings: VerifySettings) -> Kind:
    """What a runner for ``task`` needs: its limits, and a place for the arrays in memory where there is room.

    The memory is rounded up to whole GiB, so that most tasks share one kind.
    """
    sizes = max(map(task.working_set, task.sizes.all))
    gib = 1 << 30
    limits = sandbox.Limits(
        seconds=2 * task.seconds + 10 * settings.timing_seconds + 300 + OLDEST,
        memory=settings.run_memory + -(-8 * sizes // gib) * gib,
        processes=256,
    )
    shared = Path("/dev/shm")  # a private folder is made inside
    roomy = shared.is_dir() and shutil.disk_usage(shared).free > 16 * sizes + (64 << 20)
    return Kind(limits, shared if roomy else None)


def _load(side: _Side, task: Task, compiled: Compiled) -> None:
    assert compiled.library is not None
    library = side.folder / "candidate.so"
    shutil.copyfile(compiled.library, library)
    side.session.load(library.resolve(), task.function, task.abi, task.seconds)


def _write(side: _Side, task: Task, calls: Sequence[Call]) -> None:
    """The calls of one phase, for the runner to read; the arrays of an earlier one are written over."""
    side.layout = write_calls(task, calls, side.folder / "index", side.folder / "arrays")
    with (side.folder / "outputs").open("wb") as stream:
        stream.truncate(side.layout.total)


def _read_calls(side: _Side) -> None:
    side.session.calls(side.folder / "index", side.folder / "arrays", side.folder / "outputs")


def _outputs(side: _Side, index: int) -> list[np.ndarray]:
    return read_arrays(side.layout, index, side.folder / "outputs")


def _compile_baseline(bench: Bench, task: Task, source: str) -> Compiled:
    compiled = bench.compiler.compile(task, source)
    if compiled.library is None:
        raise InputError(
            f"the baseline does not compile: {compiled.reason}.", fix="The baseline must be a verified kernel."
        )
    return compiled


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


def _check(
    side: _Side, task: Task, cases: Sequence[Case], calls: Sequence[Call], expected: Sequence[Sequence[np.ndarray]]
) -> None:
    """Every check case once, its raw outputs compared here.

    What the candidate keeps from call to call is left to it, and calls of one size lie at the same addresses: code that
    remembers by address, by size or by count answers with what it remembers. (Timed calls start from a clean state
    instead.)
    """
    _write(side, task, calls)
    _read_calls(side)
    seen: set[Case] = set()
    for index, (case, call, wanted) in enumerate(zip(cases, calls, expected, strict=True)):
        run = side.session.run(index, task.seconds, delay=DELAY, restore=index == 0, place=1)
        side.session.fetch(0)
        _judge_run(task, run, dict(case.sizes), timed=False)
        wrong = difference(task, call, wanted, _outputs(side, index))
        if wrong:
            again = case in seen
            kind = VerdictKind.NONDETERMINISTIC if again else VerdictKind.WRONG_RESULT
            raise CandidateFault(kind, f"right once, wrong when repeated: {wrong}" if again else wrong)
        seen.add(case)


def _time(bench: Bench, task: Task, sides: Sequence[_Side]) -> dict[str, object]:
    """Time at every timed size; the outputs of the timed calls are checked."""
    totals: list[tuple[list[float], list[float]]] = []
    unstable, samples, bound = False, 0, 0.0
    for sets in timed_cases(task, bench.settings):
        sizes = dict(sets[0].sizes)
        calls = [case.call(task, poison_seed=90 + index) for index, case in enumerate(sets)]
        timing = _Timing(task, sizes, _Checker(task, calls, bench.references.outputs(task, sets)))
        seconds = [bench.references.seconds(task, sets[0])] if len(sides) == 1 else []
        for side in sides:
            side.forget()
            _write(side, task, calls)
        # Where the device has room for many candidates, their inputs are brought there, and outputs fetched and
        # compared, while others check theirs; one that fills the device has it alone from its first byte.
        roomy = 4 * task.working_set(sizes) < int(sides[0].warm.sizes.get("total", 0)) // _SHARES
        if roomy:
            with gpu_lock(bench.gpu, bench.folder, exclusive=False):
                timing.bring(sides)
            timing.checker.finish()
        with gpu_lock(bench.gpu, bench.folder, exclusive=True):
            if not roomy:
                timing.bring(sides)
            unstable |= timing.sample(sides, bench.settings)
        timing.checker.finish()
        totals.append((sides[0].samples, sides[1].samples if len(sides) == 2 else seconds))
        samples = max(samples, len(sides[0].samples))
        bound += bound_seconds(task, sizes, bench.peaks)
    candidate = sum(median(side) for side, _ in totals)
    base = sum(median(side) for _, side in totals)
    interval = speedup(totals[0][1], totals[0][0]) if len(totals) == 1 else summed(totals)
    return {
        "speedup": interval,
        "candidate_seconds": candidate,
        "baseline_seconds": base,
        "bound_share": bound / candidate if candidate else None,
        "unstable": unstable,
        "samples": samples,
    }


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
            self.pending.append((side.name, index, _outputs(side, index)))
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


@dataclass(frozen=True)
class _Timing:
    """The timing at one size."""

    task: Task
    sizes: dict[str, int]
    checker: _Checker

    def bring(self, sides: Sequence[_Side]) -> None:
        """Inputs to the device, and one untimed call on each set; its outputs are fetched."""
        for side in sides:
            _read_calls(side)
            for index in range(len(self.checker.calls)):
                self._call(side, index)

    def sample(self, sides: Sequence[_Side], settings: VerifySettings) -> bool:
        """Fill the sides' samples, alternating between them; True when the timing did not settle."""
        rng = np.random.default_rng()
        sets = len(self.checker.calls)
        for side in sides:
            warm = [self._call(side, 0)]
            while len(warm) < 2 + int(rng.integers(3)) and sum(warm) < 1.0:
                warm.append(self._call(side, len(warm) % sets))
            side.slots = _slots(self.task, self.sizes, min(warm), side.last)
            if side.slots > 1:
                self._call(side, 0)
        deadline = time.monotonic() + settings.timing_seconds
        while time.monotonic() < deadline or any(len(side.samples) < 3 for side in sides):
            for side in sides:
                side.samples.append(self._call(side, int(rng.integers(sets))))
            if settled([side.samples for side in sides], settings.timing_samples, settings.timing_error):
                break
        for side in sides:
            _cross_check(self.task, side, self.sizes, self.task.seconds)
        return not all(relative_error(side.samples) < settings.timing_error for side in sides)

    def _call(self, side: _Side, index: int) -> float:
        """Seconds of one call on set ``index``, its rules and new outputs taken care of."""
        run = side.session.run(index, self.task.seconds, slots=side.slots, flush=True)
        if side.name == "candidate":
            _judge_run(self.task, run, self.sizes, timed=True)
        self.checker.take(side, index, run)
        side.last = run
        return run.seconds / side.slots


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
    for _ in range(_CLOCK_TRIES):  # a busy host makes the judge's clock late, never early
        run = side.session.run(0, limit, slots=slots)
        if run.wall_seconds - 2e-3 <= 3 * max(seconds * slots, run.seconds) + slots * 30e-6:
            return
    raise CandidateFault(
        VerdictKind.REWARD_HACK,
        f"device events say {seconds:.3g} s a call, the judge's clock {run.wall_seconds / slots:.3g} s",
    )


def verdict_on_gpu(
    bench: Bench,
    task: Task,
    compiled: Compiled,
    baseline: str | None,
    evidence: Evidence,
    ticket: Ticket,
    verify_again: Callable[[], str],
) -> Verdict:
    """Judge on the GPU; what beats the bound is believed only when ``verify_again`` (empty: well) agrees.

    ``ticket`` gives a runner for the candidate, and one for the baseline where there is one.
    """
    evidence = evidence.model_copy(update={"gpu": bench.gpu.name, "driver": bench.gpu.driver})
    try:
        other = None if baseline is None else _compile_baseline(bench, task, baseline)
        fields = measure(bench, task, compiled, other, ticket)
    except CandidateFault as fault:
        return Verdict(
            verdict=fault.kind,
            reason=fault.reason[:1000],
            level=Level.GPU,
            log=fault.log[: bench.settings.log_characters],
            evidence=evidence,
        )
    evidence = evidence.model_copy(update={key: fields.pop(key) for key in ("sizes", "samples")})
    sizes = dict(timed_cases(task, bench.settings)[0][0].sizes)
    seconds = fields["candidate_seconds"]
    assert isinstance(seconds, float)
    reason = ""
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
    fields["baseline"] = "reference" if baseline is None else content_id("kernel", baseline)
    return Verdict.model_validate(
        {"verdict": VerdictKind.PASSED, "level": Level.GPU, "reason": reason, "evidence": evidence, **fields}
    )
