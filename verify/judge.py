"""The judge's library face: many candidates at once, results as they come, each judged once."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from regraph_db.errors import InputError, InternalFault, RegraphError
from regraph_db.records import Evidence, Level, Verdict, VerdictKind, content_id, now
from regraph_db.settings import load as load_settings
from regraph_db.settings import section
from verify import sandbox
from verify.cache import Cache
from verify.compare import difference
from verify.compiler import Compiled, Compiler, gpu_architecture
from verify.cores import Cores
from verify.plan import check_cases, timed_cases
from verify.private import PrivateFolder, remove_left_behind
from verify.reference import References, processor
from verify.settings import VerifySettings
from verify.task import Task
from verify.toolchain import Toolkit, find_toolkit

if TYPE_CHECKING:
    from verify.gpu import Gpu
    from verify.measure import Bench

#: Runners that wait for their candidates at once: each holds a CUDA context, some hundred MiB of device memory.
_MOST_WARM = 8
_ORDER = (Level.COMPILE, Level.FUNCTIONAL, Level.MODELLED, Level.GPU)


class Judge:
    """Judges candidates on a pool of threads; use it as a context manager.

    Compiling and the CPU levels use all cores; one lock a GPU keeps timings apart, also between processes. Verdicts are
    cached by source, task, level, compilers, baseline and the judge's own code; ``harness_error`` never is.

    Raises :class:`~regraph_db.errors.EnvironmentFault` when there is no nvcc or no host compiler.
    """

    def __init__(self, settings: VerifySettings | None = None, *, cache_folder: Path | None = None) -> None:
        self.settings = settings or section("verify", VerifySettings)
        folder = cache_folder or load_settings().cache_folder / "verify"
        self._folder = folder
        remove_left_behind()
        # Twice as many candidates as cores are under way: while some wait for the GPU, others compile.
        self._cores = Cores(self.settings.jobs)
        self._runs = threading.BoundedSemaphore(self.settings.jobs)
        self.toolkit: Toolkit = find_toolkit(self.settings)
        self.compiler = Compiler(self.settings, self.toolkit, folder, gpu_architecture(self.settings.gpu))
        self.references = References(self.settings, folder, alone=self._cores.all)
        self._verdicts = Cache(folder / "verdicts", self.settings.cache_bytes)
        self._pool = ThreadPoolExecutor(2 * self.settings.jobs, thread_name_prefix="judge")
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[Verdict]] = {}
        self._gpu: Gpu | None = None
        self._bench_lock = threading.Lock()
        self._known_bench: Bench | None = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=kind is not None)
        if self._known_bench is not None:
            self._known_bench.warm.close()

    @property
    def best_level(self) -> Level:
        """The setting's level, or the strongest level that this machine can reach."""
        if self.settings.level:
            return Level(self.settings.level)
        return best_level(self.settings)

    def submit(
        self,
        task: Task | None,
        source: str,
        level: Level | None = None,
        *,
        baseline: str | None = None,
        fresh: bool = False,
    ) -> Future[Verdict]:
        """Judge ``source`` in the background.

        ``task`` ``None`` means compiling only. ``baseline`` is the source of the kernel to compare with; ``None`` is
        the
        sequential reference on one core. ``fresh`` judges again although the verdict is known (for repeated timings).
        The future raises :class:`InputError` when the task itself is at fault; everything else is a verdict.
        """
        wanted = Level.COMPILE if task is None else Level(level or self.best_level)
        if wanted is Level.NONE:
            raise InputError("level `none` judges nothing.", fix=f"Choose one of {', '.join(_ORDER)}.")
        key = self._key(task, source, wanted, baseline)
        with self._lock:
            if not fresh and key in self._under_way:
                return self._under_way[key]
            future = self._pool.submit(self._judge, key, task, source, wanted, baseline, fresh)
            if not fresh:
                self._under_way[key] = future
        if not fresh:
            # Outside the lock: the callback of a future that is done already runs at once, and takes the lock itself.
            future.add_done_callback(lambda _: self._forget(key))
        return future

    def judge(
        self,
        task: Task | None,
        source: str,
        level: Level | None = None,
        *,
        baseline: str | None = None,
        fresh: bool = False,
    ) -> Verdict:
        """As :meth:`submit`, waiting for the verdict."""
        return self.submit(task, source, level, baseline=baseline, fresh=fresh).result()

    def _forget(self, key: str) -> None:
        with self._lock:
            self._under_way.pop(key, None)

    def _key(self, task: Task | None, source: str, level: Level, baseline: str | None) -> str:
        surroundings = [self.compiler.identity, judge_version(), self.settings.seed, self.settings.hidden]
        if level is Level.GPU:
            surroundings += [self.gpu.name, self.gpu.driver, self.settings.timing_samples, self.settings.timing_error]
        if level is Level.MODELLED:
            surroundings.append(self.settings.model_gpu)
        text = source.encode("utf-8", "surrogatepass").hex() if not source.isascii() else source
        return content_id("verdict", text, task.hash if task else "", level, baseline or "", surroundings)

    def _judge(
        self, key: str, task: Task | None, source: str, level: Level, baseline: str | None, fresh: bool
    ) -> Verdict:
        if not fresh:
            known = self._verdicts.read(key)
            if known is not None:
                try:
                    return Verdict.model_validate_json(known)
                except ValueError:
                    pass  # an entry cut short by a crash is judged again
        try:
            verdict = self._verdict(task, source, level, baseline)
            if verdict.verdict is not VerdictKind.HARNESS_ERROR:
                self._verdicts.put(key, verdict.model_dump_json().encode())
        except InputError:
            raise
        except RegraphError as error:
            verdict = self._fault(level, str(error))
        except Exception as error:
            verdict = self._fault(level, f"{type(error).__name__}: {error}")
        return verdict

    def _fault(self, level: Level, reason: str) -> Verdict:
        return Verdict(verdict=VerdictKind.HARNESS_ERROR, reason=reason[:1000], level=level, evidence=self._evidence())

    def _verdict(self, task: Task | None, source: str, level: Level, baseline: str | None) -> Verdict:
        if level is Level.GPU and task is not None:
            return self._on_gpu(task, source, baseline)
        with self._cores.one():
            compiled = self.compiler.compile(task, source)
            if compiled.library is None or task is None or level is Level.COMPILE:
                return self._compiled(compiled)
            verdict = self._functional(task, source)
        if level is Level.MODELLED and verdict.passed:
            verdict = self._modelled(task, source, verdict)
        return verdict

    def _compiled(self, compiled: Compiled) -> Verdict:
        kind = compiled.verdict or VerdictKind.PASSED
        return Verdict(
            verdict=kind, reason=compiled.reason, level=Level.COMPILE, log=compiled.log, evidence=self._evidence()
        )

    def _functional(self, task: Task, source: str) -> Verdict:
        from verify.cpu import execute

        cases = check_cases(task, self.settings)
        calls = [case.call(task, poison_seed=index) for index, case in enumerate(cases)]
        limits = sandbox.Limits(seconds=task.seconds, memory=self.settings.run_memory, sparse=True)
        with PrivateFolder() as folder:
            ran = execute(
                task, source, calls, races=True, toolkit=self.toolkit.root, folder=Path(folder), limits=limits
            )
        evidence = self._evidence(tuple(dict(case.sizes) for case in cases))
        log = ran.log[: self.settings.log_characters]
        if ran.fault is not None:
            return Verdict(verdict=ran.fault, reason=ran.reason, level=Level.FUNCTIONAL, log=log, evidence=evidence)
        if len(ran.outputs) != len(calls):
            raise InternalFault(f"{len(ran.outputs)} of {len(calls)} calls came back from the CPU level.")
        expected = self.references.outputs(task, cases)
        for call, wanted, got in zip(calls, expected, ran.outputs, strict=True):
            if wrong := difference(task, call, wanted, got):
                return self._differs(wrong, log, evidence)
        return Verdict(verdict=VerdictKind.PASSED, level=Level.FUNCTIONAL, log=log, evidence=evidence)

    def _differs(self, wrong: str, log: str, evidence: Evidence) -> Verdict:
        kind = VerdictKind.REWARD_HACK if "an input was overwritten" in wrong else VerdictKind.WRONG_RESULT
        return Verdict(verdict=kind, reason=wrong, level=Level.FUNCTIONAL, log=log, evidence=evidence)

    def _modelled(self, task: Task, source: str, verdict: Verdict) -> Verdict:
        from verify.model import NoModel, model

        limits = sandbox.Limits(seconds=max(task.seconds, 60), memory=self.settings.run_memory, sparse=True)
        # Before a core is taken: it is timed alone on this machine, the first time.
        baseline = self.references.seconds(task, timed_cases(task, self.settings)[0][0])
        with self._cores.one(), PrivateFolder() as folder:
            try:
                fields = model(
                    task,
                    source,
                    baseline_seconds=lambda: baseline,
                    toolkit=self.toolkit.root,
                    folder=Path(folder),
                    limits=limits,
                    gpu=self.settings.model_gpu,
                )
            except NoModel as error:
                return verdict.model_copy(update={"reason": f"right; no model ({error.what})"})
        evidence = verdict.evidence.model_copy(update={"gpu": self.settings.model_gpu})
        return Verdict.model_validate({**verdict.model_dump(), "level": Level.MODELLED, "evidence": evidence, **fields})

    @property
    def gpu(self) -> Gpu:
        """The GPU that is judged on. Raises :class:`~regraph_db.errors.EnvironmentFault` when there is none."""
        from verify.gpu import find_gpu

        if self._gpu is None:  # finding it twice in a race does no harm
            self._gpu = find_gpu(self.settings.gpu)
        return self._gpu

    def _on_gpu(self, task: Task, source: str, baseline: str | None) -> Verdict:
        from verify.measure import kind_of, verdict_on_gpu
        from verify.quarantine import verify_again

        bench = self._bench()
        # The runner starts, and sets up its CUDA context, while its candidate is compiled.
        with bench.warm.expecting(kind_of(task, self.settings), 1 if baseline is None else 2) as ticket:
            with self._cores.one():
                compiled = self.compiler.compile(task, source)
            if compiled.library is None:
                return self._compiled(compiled)
            with self._runs:
                return verdict_on_gpu(
                    bench,
                    task,
                    compiled,
                    baseline,
                    self._evidence(),
                    ticket,
                    lambda: verify_again(bench, task, compiled),
                )

    def _bench(self) -> Bench:
        from verify.gpu import build_runner, gpu_lock, measure_peaks
        from verify.measure import Bench
        from verify.warm import WarmRunners

        with self._bench_lock:
            if self._known_bench is None:
                gpu, folder = self.gpu, self._folder
                runner = build_runner(gpu, self.toolkit, self.settings, folder)
                peaks = measure_peaks(gpu, runner, folder)
                warm = WarmRunners(
                    lambda private, limits: runner.session(gpu, private, limits),
                    lambda: gpu_lock(gpu, folder, exclusive=False),
                    most=min(self.settings.jobs, _MOST_WARM),
                )
                self._known_bench = Bench(
                    gpu, runner, peaks, self.references, self.compiler, self.settings, folder, warm
                )
        return self._known_bench

    def _evidence(self, sizes: tuple[dict[str, int], ...] = ()) -> Evidence:
        return Evidence(
            nvcc=self.toolkit.version,
            flags=self.compiler.flags,
            host=f"{self.toolkit.host}, {processor()}",
            sizes=sizes,
            date=now(),
        )


def best_level(settings: VerifySettings) -> Level:
    """The strongest level that this machine can reach."""
    if gpu_architecture(settings.gpu):
        return Level.GPU
    try:
        from verify.cpu import available
    except ImportError:
        return Level.COMPILE
    if available():
        return Level.COMPILE
    try:
        from verify.model import model  # noqa: F401
    except ImportError:
        return Level.FUNCTIONAL
    return Level.MODELLED


@lru_cache(maxsize=1)
def judge_version() -> str:
    """A hash of the judge's own code: verdicts of another version are not taken from the cache."""
    digest = hashlib.sha256()
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".h", ".hpp", ".cpp", ".cu", ".cuh", ".toml", ".json") and path.is_file():
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def judge(task: Task | None, source: str, level: Level | None = None, *, baseline: str | None = None) -> Verdict:
    """Judge one candidate; a :class:`Judge` is cheaper for several."""
    with Judge() as one:
        return one.judge(task, source, level, baseline=baseline)
