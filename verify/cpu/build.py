"""Builds what the CPU level runs: the driver, a precompiled header for each kind of build, a candidate's library.

Driver and headers are made once for a toolkit, a compiler and a processor, and kept under the cache folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from regraph_db.errors import EnvironmentFault, InternalFault
from regraph_db.settings import load
from verify import sandbox
from verify.sandbox import Limits

RUNTIME = Path(__file__).with_name("runtime")
#: How our host programs read calls; the driver is one of them.
CALL = RUNTIME.parent.parent / "runner" / "call.h"
#: The name that compiler messages and debug information give the candidate's text, whose lines the translator keeps.
FILE = "candidate.cu"
HEADER = "regraph_cuda.h"

_COMMON = (
    *("-std=c++17", "-g1", "-fPIC", "-fvisibility=hidden", "-fno-plt", "-ftls-model=local-dynamic", "-w"),
    *("-fno-ipa-reference", "-fno-strict-aliasing", "-fno-stack-protector", "-fno-math-errno", "-fno-trapping-math"),
    *("-ffp-contract=fast", "-fmax-errors=5"),
)
_HOOKS = [
    "-fsanitize=thread",
    "-fno-threadsafe-statics",
    "--param=tsan-instrument-func-entry-exit=0",
    "--param=tsan-distinguish-volatile=1",
]
#: Flags by kind of build: ``plain`` runs, ``checked`` also tells of every access, ``counted`` of basic blocks too.
KINDS = {
    "plain": ["-O1"],
    "checked": ["-O1", *_HOOKS, "-fno-tree-sra"],
    "counted": [
        "-O2",
        *_HOOKS,
        "-fsanitize-coverage=trace-pc",
        "-fno-tree-sra",
        "-fno-tree-vectorize",
        "-fplt",
        "-DREGRAPH_COUNTED",
    ],
}
#: Named one by one, so that no sanitizer library comes with the hooks.
_LIBRARIES = ("-nodefaultlibs", "-lstdc++", "-lm", "-lc", "-lgcc_s")
#: Copies by the C library pass through the checks too (access.cpp).
_WRAPPED = ("-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset",)
_FEATURES = ("avx2", "fma", "f16c")
#: Kits of other versions (of the CPU level's sources, of a compiler, of a toolkit) that stay; one takes 300 MB.
_KITS_KEPT = 2
COMPILE_SECONDS = 60.0
COMPILE_MEMORY = 4 << 30
_BUILDING = threading.Lock()


@dataclass(frozen=True)
class Kit:
    """The finished parts that every candidate shares."""

    folder: Path
    compiler: Path
    include: Path  #: the toolkit's headers
    flags: tuple[str, ...]

    @property
    def driver(self) -> Path:
        return self.folder / "driver"


@dataclass(frozen=True)
class Built:
    """What became of a candidate: a library, or the compiler's words."""

    library: Path | None
    log: str = ""
    seconds: float = 0.0
    killed_by: str = ""


@lru_cache(maxsize=1)
def unavailable() -> str:
    """Why this machine cannot run CUDA C++ on its CPU; empty when it can."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return f"the CPU level is written for Linux on x86-64, this is {platform.system()} on {platform.machine()}"
    if shutil.which("g++") is None:
        return "no g++ on PATH (Debian: apt-get install g++)"
    return ""


@lru_cache(maxsize=8)
def kit(toolkit: Path, cache: Path | None = None) -> Kit:
    """Driver and headers for the toolkit whose ``include`` folder lies in ``toolkit``; built when they are not there.

    Raises :class:`EnvironmentFault` without a compiler, :class:`InternalFault` when our own sources do not compile.
    """
    if reason := unavailable():
        raise EnvironmentFault(f"{reason}.", fix="The levels `compile` and `gpu` do not need it.")
    compiler = Path(str(shutil.which("g++"))).resolve()
    machine = tuple(f"-m{feature}" for feature in _FEATURES if feature in _processor())
    include = toolkit / "include"
    digest = hashlib.sha256(repr((_version(compiler), str(include), machine, _COMMON, KINDS)).encode())
    for source in (*sorted(RUNTIME.rglob("*.*")), CALL):
        digest.update(source.read_bytes())
    folder = (cache or load().cache_folder / "cpu") / digest.hexdigest()[:24]
    found = Kit(folder, compiler, include, (*_COMMON, *machine))
    with _BUILDING:
        while not _held(found):
            _build_kit(found, machine)
            _evict(folder.parent, keep=folder)
    return found


def _held(wanted: Kit) -> bool:
    """Whether the kit is there; if so, this process holds it until it ends, so that nobody evicts it."""
    try:
        handle = os.open(wanted.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    fcntl.flock(handle, fcntl.LOCK_SH)
    if wanted.driver.exists():
        os.utime(wanted.folder)
        return True
    os.close(handle)
    return False


def _evict(folder: Path, keep: Path) -> None:
    """Remove kits of other versions that no process holds, but for the latest few."""
    kits = [path for path in folder.iterdir() if path != keep and re.fullmatch(r"[0-9a-f]{24}", path.name)]
    for old in sorted(kits, key=lambda path: path.stat().st_mtime, reverse=True)[_KITS_KEPT:]:
        with suppress(OSError):
            handle = os.open(old, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
            finally:
                os.close(handle)


def _processor() -> frozenset[str]:
    match = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return frozenset(match.group(1).split() if match else ())


def _version(compiler: Path) -> str:
    return subprocess.run(
        [str(compiler), "-dumpfullversion"], capture_output=True, text=True, check=True, timeout=20
    ).stdout.strip()


def _build_kit(wanted: Kit, machine: tuple[str, ...]) -> None:
    """In a folder aside, which becomes the real one in a single step; another process may have been quicker."""
    wanted.folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=wanted.folder.parent, prefix=".building-") as name:
        folder = Path(name)
        sources = [str(path) for path in sorted(RUNTIME.glob("*.cpp")) if path.name != "anchor.cpp"]
        includes = ["-I", str(RUNTIME / "include"), "-isystem", str(wanted.include)]
        base = [str(wanted.compiler), "-std=c++17", "-O2", *machine]
        _ours([*base, "-g1", "-rdynamic", *includes, *sources, "-o", str(folder / "driver")])
        _ours([*base, "-fPIC", "-c", str(RUNTIME / "anchor.cpp"), "-o", str(folder / "anchor.o")])
        folder.chmod(0o755)
        try:
            folder.rename(wanted.folder)
        except OSError:
            if not wanted.driver.exists():
                raise
        else:
            folder.mkdir()  # for the context manager to remove


def _ours(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise InternalFault(f"the CPU level's own sources do not compile: {done.stderr.strip()[:800]}")


def _precompiled(kit_: Kit, kind: str) -> Path:
    """The folder that holds the precompiled header for ``kind`` of build."""
    folder = kit_.folder / kind
    with _BUILDING:
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=kit_.folder, prefix=".building-") as name:
                header = Path(name) / f"{HEADER}.gch"
                _ours(
                    [
                        str(kit_.compiler),
                        *kit_.flags,
                        *KINDS[kind],
                        "-x",
                        "c++-header",
                        *_includes(kit_),
                        str(RUNTIME / "include" / HEADER),
                        "-o",
                        str(header),
                    ]
                )
                Path(name).chmod(0o755)
                if not folder.exists():
                    Path(name).rename(folder)
                    Path(name).mkdir()
    return folder


def _includes(kit_: Kit) -> list[str]:
    return ["-I", str(RUNTIME / "include"), "-isystem", str(kit_.include), "-isystem", str(kit_.include / "cccl")]


def build(kit_: Kit, text: str, kind: str, folder: Path) -> Built:
    """Compile the translated ``text`` to ``candidate.so`` in ``folder``, confined."""
    header = _precompiled(kit_, kind)
    source = folder / FILE
    source.write_text(text, "utf-8")
    library = folder / "candidate.so"
    argv = [
        str(kit_.compiler), "-shared", *kit_.flags, *KINDS[kind], "-I", str(header), *_includes(kit_),
        "-include", HEADER, "-x", "c++", source.name, "-x", "none", str(kit_.folder / "anchor.o"),
        "-o", library.name, *_WRAPPED, *_LIBRARIES,
    ]  # fmt: skip
    limits = Limits(seconds=COMPILE_SECONDS, memory=COMPILE_MEMORY, output=1 << 16, processes=32, sparse=True)
    done = sandbox.run(argv, folder=folder, limits=limits, readable=[RUNTIME, kit_.folder, kit_.include.parent])
    log = done.stderr.decode("utf-8", "replace")
    return Built(library if done.ok and library.exists() else None, log, done.seconds, done.killed_by)


def source_lines(library: Path, offsets: list[int], folder: Path) -> list[int]:
    """The candidate's own line for each offset of its library, the innermost of inlined calls; 0 where unknown."""
    tool = shutil.which("addr2line")
    if tool is None or not offsets:
        return [0] * len(offsets)
    argv = [tool, "-e", library.name, "-i", "-a", *(hex(max(0, offset - 1)) for offset in offsets)]
    done = sandbox.run(argv, folder=folder, limits=Limits(seconds=20.0, processes=8))
    lines: list[int] = []
    for part in re.split(r"^0x[0-9a-f]+$", done.stdout.decode("utf-8", "replace"), flags=re.MULTILINE)[1:]:
        own = re.search(rf"(?:^|/){re.escape(FILE)}:(\d+)", part, re.MULTILINE)
        lines.append(int(own.group(1)) if own else 0)
    return lines if len(lines) == len(offsets) else [0] * len(offsets)
