"""A conversation with one runner (``runner/runner.cpp``): commands out, one line back for each, nothing believed
without its nonce."""

from __future__ import annotations

import os
import re
import secrets
import select
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from regraph_db.errors import InternalFault
from regraph_db.records import VerdictKind
from verify import sandbox

_LONGEST_LINE = 1 << 20
_FAULT_CODES = (64, 70, 71, 72)
#: Errors that no kernel causes: the GPU or its driver is gone, or its memory is broken. Never a candidate's verdict.
_LOST = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        *("ECC_UNCORRECTABLE", "NVLINK_UNCORRECTABLE", "DEVICE_UNAVAILABLE", "NO_DEVICE", "INVALID_DEVICE"),
        *("DEVICE_NOT_LICENSED", "SYSTEM_NOT_READY", "SYSTEM_DRIVER_MISMATCH", "OPERATING_SYSTEM", "DEINITIALIZED"),
        *("NOT_INITIALIZED", "CONTAINED", "UNCONTAINED"),
    )
)


class CandidateFault(Exception):
    """The candidate, not the judge, is at fault; it carries what the verdict says."""

    def __init__(self, kind: VerdictKind, reason: str, log: str = "") -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.log = log


@dataclass(frozen=True)
class Run:
    """What one ``run`` command reported."""

    seconds: float  #: of all its calls together, by device events (abi host: by the host's clock)
    host_seconds: float  #: by the runner's clock, from before the first call to the end of the device's work
    wall_seconds: float  #: by the judge's own clock, between the lines ``begin`` and ``end``
    launches: int
    to_host: int  #: bytes that the candidate copied to the host
    to_device: int
    held: int  #: bytes of device memory that it holds beyond its calls
    busy: bool  #: whether one of its streams went on after the default stream was done
    changed: int  #: slots whose inputs were changed
    overwritten: int  #: words around the arrays that were overwritten
    digests: tuple[str, ...]  #: of the outputs, by slot


class Session:
    """One runner in its own sandbox. Commands raise :class:`CandidateFault` when the candidate ends or confuses it."""

    def __init__(
        self,
        argv: Sequence[str | Path],
        folder: Path,
        limits: sandbox.Limits,
        readable: Sequence[Path],
        env: Mapping[str, str] | None = None,
    ) -> None:
        control, self._control = os.pipe()
        self._replies, replies = os.pipe()
        os.set_blocking(self._replies, False)
        self._folder = folder
        self._finished: list[sandbox.Finished | BaseException] = []
        self._cancel = threading.Event()
        self._buffer = b""
        self._runs = 0

        def execute() -> None:
            words = [{"{control}": str(control), "{replies}": str(replies)}.get(str(part), str(part)) for part in argv]
            try:
                done = sandbox.run(
                    words,
                    folder=folder,
                    limits=limits,
                    readable=readable,
                    gpu=True,
                    env=env,
                    channels=(control, replies),
                    cancel=self._cancel,
                )
                self._finished.append(done)
            except BaseException as error:
                self._finished.append(error)
            finally:
                os.close(control)
                os.close(replies)

        self._thread = threading.Thread(target=execute, name="runner", daemon=True)
        self._thread.start()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._cancel.set()
        self._thread.join()
        os.close(self._control)
        os.close(self._replies)

    @property
    def alive(self) -> bool:
        """Whether the runner's process still runs."""
        return self._thread.is_alive()

    def hello(self, seconds: float = 60.0) -> dict[str, str]:
        """The device's sizes: ``l2``, ``free``, ``total`` (bytes), ``multiprocessors``."""
        return _fields(self._ask("hello", "ready", seconds))

    def load(self, library: Path, function: str, abi: str, seconds: float) -> None:
        self._ask(f"load {library} {function} {abi}", "loaded", seconds)

    def calls(self, index: Path, arrays: Path, outputs: Path, seconds: float = 120.0) -> None:
        self._ask(f"calls {index} {arrays} {outputs}", "calls", seconds)

    def run(
        self,
        call: int,
        seconds: float,
        *,
        slots: int = 1,
        flush: bool = False,
        delay: float = 0.0,
        restore: bool = True,
        place: int | None = None,
    ) -> Run:
        """Call the candidate ``slots`` times on fresh copies of the inputs of ``call``.

        ``flush`` empties the L2 cache first, ``delay`` keeps the default stream busy for so many seconds first,
        ``restore`` puts
        back everything that the candidate kept from earlier calls; arrays lie at new places unless ``place`` is the
        same.
        """
        seed = secrets.randbits(60) if place is None else place
        command = f"run {call} {slots} {int(flush)} {int(delay * 1e9)} {int(restore)} {seed}"
        nonce = self._send(command)
        began = self._expect(nonce, "begin", seconds)[1]
        ended = self._expect(nonce, "end", seconds)[1]
        fields = _fields(self._expect(nonce, "ran", seconds)[0])
        self._runs += 1
        try:
            run = Run(
                int(fields["device_ns"]) * 1e-9,
                int(fields["host_ns"]) * 1e-9,
                ended - began,
                int(fields["launches"]),
                int(fields["to_host"]),
                int(fields["to_device"]),
                int(fields["held"]),
                fields["busy"] == "1",
                int(fields["changed"]),
                int(fields["overwritten"]),
                tuple(fields["digests"].split(",")),
            )
        except (KeyError, ValueError):
            raise self._garbage(str(fields)) from None
        if len(run.digests) != slots:
            raise self._garbage(f"{len(run.digests)} digests for {slots} calls")
        return run

    def fetch(self, slot: int, seconds: float = 120.0) -> None:
        self._ask(f"fetch {slot}", "fetched", seconds)

    def peaks(self) -> dict[str, str]:
        """``bytes_per_second``, ``flops_per_second`` and ``floor_ns`` of the GPU, by our own kernels."""
        return _fields(self._ask("peaks", "peaks", 60.0))

    def quit(self) -> None:
        """The end record: the runner must have counted as many runs as we did."""
        words = self._ask("quit", "end", 30.0)
        if words.split() != [str(self._runs)]:
            raise self._garbage(f"end record {words!r} after {self._runs} runs")

    def ended(self, seconds: float) -> sandbox.Finished:
        """How the runner ended, after :meth:`quit`. Raises :class:`InternalFault` when it does not end."""
        self._thread.join(seconds)
        done = self._finished[0] if self._finished else None
        if not isinstance(done, sandbox.Finished):
            raise InternalFault(f"the runner did not end within {seconds:g} s.")
        return done

    def _ask(self, command: str, answer: str, seconds: float) -> str:
        return self._expect(self._send(command), answer, seconds)[0]

    def _send(self, command: str) -> str:
        nonce = secrets.token_hex(12)
        try:
            os.write(self._control, f"{command} {nonce}\n".encode())
        except BrokenPipeError:
            self._raise_end()
        return nonce

    def _expect(self, nonce: str, answer: str, seconds: float) -> tuple[str, float]:
        """The words after ``nonce answer``, and when they came. Anything else on the channel is the candidate's
        doing."""
        line, at = self._line(seconds)
        first, _, rest = line.partition(" ")
        verb, _, words = rest.partition(" ")
        if first != nonce:
            raise self._garbage(line)
        if verb == "error":
            stage, _, name = words.partition(" ")
            if name.split(" ")[0] in _LOST:
                raise InternalFault(f"the GPU was lost: {name[:100]}.", fix="See what `nvidia-smi` says.")
            raise self._error(stage, name)
        if verb != answer:
            raise self._garbage(line)
        return words, at

    def _line(self, seconds: float) -> tuple[str, float]:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                self._cancel.set()
                self._thread.join()
                raise CandidateFault(VerdictKind.TIMEOUT, f"no answer within {seconds:g} s", self._words())
            ready, _, _ = select.select([self._replies], [], [], min(left, 0.1))
            if ready:
                chunk = os.read(self._replies, 1 << 16)
                self._buffer += chunk
                if not chunk:
                    self._raise_end()
                if len(self._buffer) > _LONGEST_LINE:
                    raise self._garbage(self._buffer[:80].decode(errors="replace"))
            elif not self._thread.is_alive():
                self._raise_end()
        at = time.monotonic()
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace"), at

    def _garbage(self, line: str) -> CandidateFault:
        return CandidateFault(
            VerdictKind.REWARD_HACK, f"something else than the runner wrote to the result channel: {line[:80]!r}"
        )

    def _error(self, stage: str, name: str) -> CandidateFault:
        name = name[:300]
        if stage == "load":
            undefined = re.search(r"undefined symbol: (\S+)", name)
            return CandidateFault(
                VerdictKind.COMPILE_ERROR, f"undefined: {undefined[1]}" if undefined else f"it cannot be loaded: {name}"
            )
        if stage == "launch":
            return CandidateFault(VerdictKind.LAUNCH_ERROR, f"a launch or a CUDA call failed: {name}", self._words())
        return CandidateFault(VerdictKind.RUNTIME_ERROR, f"the kernel failed: {name}", self._words())

    def _words(self) -> str:
        done = self._finished[0] if self._finished else None
        return (
            (done.stdout + done.stderr).decode(errors="replace")[-2000:] if isinstance(done, sandbox.Finished) else ""
        )

    def _raise_end(self) -> None:
        """Say why the runner is gone."""
        self._thread.join()
        done = self._finished[0]
        if isinstance(done, BaseException):
            raise InternalFault(f"the runner could not be started: {done}.") from done
        words = self._words()
        if done.timed_out:
            raise CandidateFault(VerdictKind.TIMEOUT, "it passed its deadline", words)
        if done.killed_by in ("memory", "processes"):
            raise CandidateFault(
                VerdictKind.RUNTIME_ERROR, f"it took too much memory or too many processes ({done.killed_by})", words
            )
        if done.killed_by:
            raise CandidateFault(VerdictKind.RUNTIME_ERROR, f"its host code ended with {done.killed_by}", words)
        if done.returncode in _FAULT_CODES:
            raise InternalFault(f"the runner failed with {done.returncode}: {words[-400:]}")
        if done.returncode == 0:
            raise CandidateFault(
                VerdictKind.REWARD_HACK, "it ended the runner with exit code 0, before the end record", words
            )
        raise CandidateFault(VerdictKind.RUNTIME_ERROR, f"it ended the runner with exit code {done.returncode}", words)


def _fields(words: str) -> dict[str, str]:
    return dict(part.partition("=")[::2] for part in words.split())
