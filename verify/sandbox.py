"""Runs an untrusted program: namespaces, Landlock, seccomp, rlimits, a deadline and a watch on memory and processes.

What the machine lacks is left out and *named* by :func:`missing_defences`; nothing is dropped silently.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from regraph_db.errors import InternalFault
from verify.private import PrivateFolder

_CHILD = Path(__file__).with_name("sandbox_child.py")
_POLL = 0.02
#: What every program may read: the system's libraries, compilers and headers; nothing of the users', nothing of /etc
#: but what the dynamic linker needs.
SYSTEM = (
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/sbin",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full")


@dataclass(frozen=True)
class Limits:
    """What one run may use."""

    seconds: float = 20.0  #: wall-clock deadline
    memory: int = 4 << 30  #: bytes, resident, of all its processes; also the largest file it may write
    output: int = 1 << 20  #: bytes kept of each of stdout and stderr; the rest is read and thrown away
    processes: int = 64
    sparse: bool = False  #: it maps far more than it touches (CUDA, sanitizers): the address space is not limited


@dataclass(frozen=True)
class Finished:
    """How a program ended."""

    returncode: int | None  #: ``None`` when a signal ended it
    stdout: bytes
    stderr: bytes
    timed_out: bool
    seconds: float
    killed_by: (
        str  #: a signal's name, ``deadline``, ``memory``, ``processes`` or ``cancelled``; empty when it ended by itself
    )

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.killed_by


@dataclass(frozen=True)
class Defences:
    """What this machine can do; a reason stands for each thing that it cannot."""

    namespaces: tuple[str, ...]
    landlock: bool
    seccomp: bool
    missing: tuple[tuple[str, str], ...]  #: (defence, why it is missing)


def run(
    argv: Sequence[str | Path],
    *,
    folder: Path,
    limits: Limits,
    readable: Sequence[Path] = (),
    gpu: bool = False,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    channels: Sequence[int] = (),
    cancel: threading.Event | None = None,
) -> Finished:
    """Run ``argv`` confined, in ``folder``: its working directory and the only place that it can write.

    ``readable`` are the paths it may read besides the system's. ``gpu`` lets it open the GPU's devices. The
    environment is
    empty but for PATH, HOME, TMPDIR and ``env``. ``channels`` are descriptors that it inherits under their own
    numbers. Setting
    ``cancel`` kills it. Every process it started is gone when this returns.

    Raises :class:`InternalFault` when the sandbox itself cannot be set up; how the program ended is never an exception.
    """
    return _run(argv, folder, limits, readable, gpu, stdin, env or {}, defences(), channels, cancel)


@lru_cache(maxsize=1)
def defences() -> Defences:
    """Find out by trying, once a process, what this machine lets a sandbox do."""
    missing: list[tuple[str, str]] = []

    def works(namespaces: tuple[str, ...], landlock: bool, seccomp: bool) -> str:
        with PrivateFolder() as folder:
            tried = Defences(namespaces, landlock, seccomp, ())
            try:
                done = _run(["/bin/sh", "-c", "exit 0"], Path(folder), Limits(seconds=10), (), False, b"", {}, tried)
            except InternalFault as error:
                return error.what
            return "" if done.ok else f"a trial run ended with {done.returncode or done.killed_by}"

    wanted: tuple[str, ...] = ("user", "mount", "ipc", "net", "pid")
    why = works(wanted, False, False)
    if why and os.getuid() == 0:
        wanted, first = ("mount", "ipc", "net", "pid"), why
        why = works(wanted, False, False)
        if not why:
            missing.append(("user namespace", first))
    if why:
        wanted, reason = (), why
        for names in (("user", "net"), ("user",)):
            if not works(names, False, False):
                wanted = names
                break
        missing += [
            (f"{name} namespace", reason) for name in ("user", "mount", "ipc", "net", "pid") if name not in wanted
        ]
    landlock, seccomp = works((), True, False), works((), False, True)
    if landlock:
        missing.append(("Landlock (file confinement)", landlock))
    if seccomp:
        missing.append(("seccomp (system calls)", seccomp))
    return Defences(wanted, not landlock, not seccomp, tuple(missing))


def missing_defences() -> tuple[tuple[str, str], ...]:
    """Defences that this machine lacks, each with the reason; empty when all are there."""
    return defences().missing


def _run(
    argv: Sequence[str | Path],
    folder: Path,
    limits: Limits,
    readable: Sequence[Path],
    gpu: bool,
    stdin: bytes,
    env: Mapping[str, str],
    using: Defences,
    channels: Sequence[int] = (),
    cancel: threading.Event | None = None,
) -> Finished:
    folder = folder.resolve()
    # The driver names its threads by writing /proc/PID/task/*/comm and gives up where it cannot. PID is the program's,
    # or under compute-sanitizer its child's; the rest of a /proc of our own is read-only (private_mounts).
    names = "/proc" if {"mount", "pid"} <= set(using.namespaces) else "/proc/self/task"
    outlet, inlet = os.pipe()
    configuration = {
        "argv": [str(part) for part in argv],
        "folder": str(folder),
        "environment": {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "LANG": "C.UTF-8",
            **env,
        },
        "readable": [
            *SYSTEM,
            "/proc",
            *(("/sys",) if gpu else ("/sys/devices/system",)),
            *(str(Path(path).resolve()) for path in readable),
        ],
        "devices": [*_DEVICES, *((*_gpu_devices(), names) if gpu else ())],
        "gpu": gpu,
        "namespaces": list(using.namespaces),
        "landlock": using.landlock,
        "seccomp": using.seccomp,
        "address_space": 0 if gpu or limits.sparse else limits.memory,
        "file_size": limits.memory,
        "processes": limits.processes,
        "status": inlet,
    }
    started = time.monotonic()
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_CHILD), json.dumps(configuration)],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(inlet, *channels),
                start_new_session=True,
                env={},
            )
        except OSError as error:
            os.close(outlet)
            raise InternalFault(f"the sandbox cannot be started: {error}.") from error
        finally:
            os.close(inlet)
    try:
        stdout, stderr, killed_by = _watch(process, limits, started, cancel)
        with os.fdopen(outlet, "rb") as pipe:
            status = pipe.read().decode(errors="replace").splitlines()
    except BaseException:
        _kill(process.pid)
        process.wait()
        raise
    seconds = time.monotonic() - started
    process.wait()
    faults = [line.removeprefix("fault ") for line in status if line.startswith("fault ")]
    if faults:
        raise InternalFault(
            f"the sandbox cannot be set up: {faults[0]}.", fix="`regraph doctor` lists what this machine lacks."
        )
    returncode: int | None = None
    for line in status:
        word, _, number = line.partition(" ")
        if word == "exit":
            returncode = int(number)
        elif word == "signal" and not killed_by:
            killed_by = (
                signal.Signals(int(number)).name
                if int(number) in signal.valid_signals() and int(number) < 32
                else f"signal {number}"
            )
    if not status and not killed_by:
        raise InternalFault("the sandbox ended without a word.", fix="Was it killed from outside?")
    return Finished(returncode if not killed_by else None, stdout, stderr, killed_by == "deadline", seconds, killed_by)


def _gpu_devices() -> list[str]:
    return [str(path) for pattern in ("nvidia*", "dxg", "nvhost*", "nvmap") for path in Path("/dev").glob(pattern)]


def _watch(
    process: subprocess.Popen[bytes], limits: Limits, started: float, cancel: threading.Event | None
) -> tuple[bytes, bytes, str]:
    """Read the output up to its cap and enforce deadline, memory and processes; returns why it was killed, if it
    was."""
    kept: dict[int, bytearray] = {}
    killed_by = ""
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            selector.register(stream.fileno(), selectors.EVENT_READ)
            kept[stream.fileno()] = bytearray()
        looked = 0.0
        ended_at = 0.0
        while True:
            for key, _ in selector.select(_POLL) if selector.get_map() else ():
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    selector.unregister(key.fd)
                kept[key.fd].extend(chunk[: max(0, limits.output - len(kept[key.fd]))])
            now = time.monotonic()
            if process.poll() is not None:
                ended_at = ended_at or now
                # Output still in the pipe is read; a straggler that holds it open was killed with the namespace.
                if not selector.get_map() or now - ended_at > 0.5:
                    break
            elif not selector.get_map():
                time.sleep(0.002)
            if not killed_by and process.returncode is None and now - looked >= _POLL:
                looked = now
                killed_by = (
                    "cancelled"
                    if cancel is not None and cancel.is_set()
                    else _exceeded(process.pid, limits, now - started)
                )
                if killed_by:
                    _kill(process.pid)
    streams = list(kept.values())
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return bytes(streams[0]), bytes(streams[1]), killed_by


def _exceeded(pid: int, limits: Limits, elapsed: float) -> str:
    if elapsed > limits.seconds:
        return "deadline"
    tree = _tree(pid)
    if len(tree) > limits.processes + 2:
        return "processes"
    return "memory" if sum(map(_resident, tree)) > limits.memory else ""


def _tree(pid: int) -> list[int]:
    """``pid`` and everything that descends from it."""
    found, index = [pid], 0
    while index < len(found) and len(found) < 4096:
        try:
            for task in Path(f"/proc/{found[index]}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            pass
        index += 1
    return found


def _resident(pid: int) -> int:
    """Bytes of its resident memory, anonymous and shared, without the pages of mapped files."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith(("RssAnon", "RssShmem")))


def _kill(pid: int) -> None:
    """The whole tree; with a process namespace the kernel finishes what is missed."""
    for member in reversed(_tree(pid)):
        try:
            os.kill(member, signal.SIGKILL)
        except ProcessLookupError:
            continue
