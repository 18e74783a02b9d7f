"""A GPU: which one, its lock, the runner built for it, and what it can do at most."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regraph_db.errors import EnvironmentFault, InternalFault
from regraph_db.records import content_id
from verify import sandbox
from verify.cache import Cache
from verify.private import PrivateFolder
from verify.session import Session
from verify.settings import VerifySettings
from verify.toolchain import Toolkit

RUNNER = Path(__file__).parent / "runner"


@dataclass(frozen=True)
class Gpu:
    """A GPU as its driver names it."""

    index: int
    name: str
    driver: str
    uuid: str
    architecture: str  #: e.g. ``sm_90``


@dataclass(frozen=True)
class Peaks:
    """What a GPU can do at most, measured by our own kernels."""

    bytes_per_second: float  #: of a large copy, read and written bytes together
    flops_per_second: float  #: float32 fused multiply-adds, counted as two
    floor_seconds: float  #: of a kernel that does nothing
    l2: int  #: bytes


def find_gpu(index: int) -> Gpu:
    """GPU ``index``. Raises :class:`EnvironmentFault` when there is none or its driver does not answer."""
    query = [
        "nvidia-smi",
        "-i",
        str(index),
        "--query-gpu=name,driver_version,uuid,compute_cap",
        "--format=csv,noheader",
    ]
    try:
        words = subprocess.run(query, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        raise EnvironmentFault(
            f"no GPU {index} answers.", fix="Judge with --level functional, or see what `nvidia-smi` says."
        ) from None
    parts = [part.strip() for part in words.split(",")]
    if len(parts) != 4:
        raise EnvironmentFault(f"nvidia-smi says {words[:200]!r} of GPU {index}.", fix="See what `nvidia-smi` says.")
    return Gpu(index, parts[0], parts[1], parts[2], f"sm_{parts[3].replace('.', '')}")


@contextlib.contextmanager
def gpu_lock(gpu: Gpu, folder: Path, *, exclusive: bool) -> Iterator[None]:
    """Hold the GPU: alone for timing, shared with others for checking; between threads and processes of this user."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / f"{gpu.uuid}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Runner:
    """The built runner and what it loads."""

    program: Path
    kernels: Path
    runtime: Path

    def session(self, gpu: Gpu, folder: Path, limits: sandbox.Limits, *, under: Sequence[str | Path] = ()) -> Session:
        """Start a runner that works in ``folder``; ``under`` is a program with its arguments that starts it in turn."""
        argv = [*under, self.program, "{control}", "{replies}", "0", self.kernels, self.runtime]
        readable = [self.program, self.kernels, self.runtime.parent]
        if under:
            readable.append(Path(under[0]).parent.parent)
        # The driver sees this GPU alone: its own numbering may differ from nvidia-smi's, and every further GPU that it
        # sets up costs time.
        return Session(argv, folder, limits, readable, {"CUDA_VISIBLE_DEVICES": gpu.uuid})


def build_runner(gpu: Gpu, toolkit: Toolkit, settings: VerifySettings, cache_folder: Path) -> Runner:
    """Compile the runner for this GPU and toolkit, once.

    Raises :class:`EnvironmentFault` when the toolkit has no shared CUDA runtime, :class:`InternalFault` when it does
    not compile.
    """
    runtime = toolkit.library("libcudart.so")
    if runtime is None:
        raise EnvironmentFault(
            f"the CUDA toolkit at {toolkit.root} has no libcudart.so.",
            fix="Install nvidia-cuda-runtime or a whole toolkit.",
        )
    cache = Cache(cache_folder / "runner", 1 << 30)
    texts = [path.read_text() for path in sorted(RUNNER.iterdir()) if path.suffix in (".cpp", ".h", ".cu")]
    key = content_id("runner", texts, toolkit.version, toolkit.host, gpu.architecture)
    built = {}
    host = [
        str(toolkit.host_path),
        "-std=c++17",
        "-O2",
        "-rdynamic",
        f"-I{toolkit.include}",
        "runner.cpp",
        "shims.cpp",
        "-ldl",
        "-o",
    ]
    device = [
        str(toolkit.nvcc),
        "-cubin",
        f"-arch={gpu.architecture}",
        "-ccbin",
        str(toolkit.host_path),
        "kernels.cu",
        "-o",
    ]
    for part, argv in (("program", host), ("kernels", device)):
        with cache.making(key):
            built[part] = cache.get(f"{key}-{part}") or _compiled(f"{key}-{part}", argv, toolkit, settings, cache)
    return Runner(built["program"], built["kernels"], runtime)


def _compiled(key: str, argv: Sequence[str], toolkit: Toolkit, settings: VerifySettings, cache: Cache) -> Path:
    with PrivateFolder() as name:
        folder = Path(name)
        for path in RUNNER.iterdir():
            if path.is_file():
                (folder / path.name).write_bytes(path.read_bytes())
        limits = sandbox.Limits(seconds=settings.compile_seconds, memory=settings.compile_memory)
        done = sandbox.run([*argv, "product"], folder=folder, limits=limits, readable=[toolkit.root])
        if not done.ok:
            raise InternalFault(f"the runner does not compile: {done.stderr.decode(errors='replace')[-800:]}")
        return cache.put(key, folder / "product")


def measure_peaks(gpu: Gpu, runner: Runner, cache_folder: Path) -> Peaks:
    """The GPU's peaks, measured once per GPU and driver."""
    cache = Cache(cache_folder / "peaks", 1 << 20)
    key = content_id("peaks", gpu.uuid, gpu.driver, (RUNNER / "kernels.cu").read_text())
    known = cache.read(key)
    if known is None:
        with gpu_lock(gpu, cache_folder, exclusive=True):
            known = cache.read(key)  # another process may have measured them meanwhile
            if known is None:
                limits = sandbox.Limits(seconds=120, memory=8 << 30)
                with PrivateFolder() as name, runner.session(gpu, Path(name), limits) as session:
                    fields = {**session.hello(), **session.peaks()}
                known = cache.put(key, json.dumps(fields).encode()).read_bytes()
    fields = json.loads(known)
    return Peaks(
        float(fields["bytes_per_second"]),
        float(fields["flops_per_second"]),
        float(fields["floor_ns"]) * 1e-9,
        int(fields["l2"]),
    )
