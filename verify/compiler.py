"""Compiles a candidate to a shared object, in the sandbox, once."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from regraph_db.errors import InternalFault
from regraph_db.records import VerdictKind, content_id
from verify import sandbox, screens, signature
from verify.cache import Cache
from verify.elf import NotElf, SharedObject, read_shared_object
from verify.private import PrivateFolder
from verify.settings import VerifySettings
from verify.task import Task
from verify.toolchain import Toolkit

CANDIDATE = "candidate.cu"
LONGEST_SOURCE = 1 << 20
DEFAULT_ARCHITECTURE = "sm_90"


@dataclass(frozen=True)
class Compiled:
    """What became of a candidate: a shared object, or a verdict's kind and reason."""

    library: Path | None  #: in the cache; copy it before use, it may be evicted
    verdict: VerdictKind | None = None
    reason: str = ""
    log: str = ""
    seconds: float = 0.0  #: 0 when it came from the cache


class Compiler:
    """nvcc behind the sandbox, the screens and a cache; safe for several threads."""

    def __init__(self, settings: VerifySettings, toolkit: Toolkit, cache_folder: Path, architecture: str = "") -> None:
        self._settings = settings
        self.toolkit = toolkit
        self.architecture = settings.arch or architecture or DEFAULT_ARCHITECTURE
        self._cache = Cache(cache_folder / "binaries", settings.cache_bytes)
        self.flags = (
            "-shared",
            "-O3",
            "-std=c++17",
            f"-arch={self.architecture}",
            "-lineinfo",
            "-cudart",
            "none",
            "-Xcompiler",
            "-fPIC",
        )

    @property
    def identity(self) -> str:
        """What besides the source decides the result: compilers and flags."""
        return content_id(self.toolkit.version, self.toolkit.host, self.flags)

    def compile(self, task: Task | None, source: str) -> Compiled:
        """Compile ``source`` for ``task`` (``None``: any CUDA translation unit). Never raises for what the source says.

        Raises :class:`InternalFault` when the sandbox, the cache or nvcc itself fails.
        """
        refused = self._refuse(task, source)
        if refused is not None:
            return refused
        code = screens.without_comments(source)
        allow = task.allow if task else ()
        if hack := screens.screen_text(code, allow):
            return Compiled(None, VerdictKind.REWARD_HACK, hack)
        # Nothing but the toolkit's and the system's headers can be read, so text and compilers determine the
        # preprocessed
        # text; taking the comments out makes the key as good as one of preprocessed text, without a second run of
        # gcc -E.
        key = content_id("binary", code, self.identity, task.signature if task else "", allow)
        known = self._cache.get(key)
        if known is not None:
            return Compiled(known)
        started = time.monotonic()
        with PrivateFolder() as folder:
            compiled = self._run(task, source, Path(folder), key)
        return Compiled(compiled.library, compiled.verdict, compiled.reason, compiled.log, time.monotonic() - started)

    def _refuse(self, task: Task | None, source: str) -> Compiled | None:
        """What is plain before nvcc runs."""
        try:
            size = len(source.encode())
        except UnicodeEncodeError:
            return Compiled(None, VerdictKind.COMPILE_ERROR, "the source is not valid Unicode")
        if size > LONGEST_SOURCE:
            return Compiled(None, VerdictKind.COMPILE_ERROR, f"the source has {size} bytes, more than {LONGEST_SOURCE}")
        if "\0" in source:
            return Compiled(
                None, VerdictKind.COMPILE_ERROR, f"line {source[: source.index(chr(0))].count(chr(10)) + 1}: a NUL byte"
            )
        if not source.strip():
            return Compiled(None, VerdictKind.COMPILE_ERROR, "the source is empty")
        if task is not None and (wrong := signature.mismatch(task, source)):
            return Compiled(None, VerdictKind.COMPILE_ERROR, wrong)
        return None

    def _run(self, task: Task | None, source: str, folder: Path, key: str) -> Compiled:
        (folder / CANDIDATE).write_text(source + (signature.proof(task) if task else "\n"), "utf-8")
        runtime = self.toolkit.library("libcudart.so")
        linked = ["-Xlinker", str(runtime), "-Xlinker", "-z", "-Xlinker", "defs"] if runtime else []
        linked += [
            f"-l{library}" for library in (task.allow if task else ()) if library in ("cublas", "cufft", "cusparse")
        ]
        argv = [
            str(self.toolkit.nvcc),
            *self.flags,
            "-ccbin",
            str(self.toolkit.host_path),
            "-Xcompiler",
            "-H",
            CANDIDATE,
            "-o",
            "candidate.so",
            *linked,
        ]
        limits = sandbox.Limits(
            seconds=self._settings.compile_seconds, memory=self._settings.compile_memory, output=1 << 20, processes=64
        )
        readable = [self.toolkit.root, *([runtime] if runtime else [])]
        done = sandbox.run(argv, folder=folder, limits=limits, readable=readable)
        words, headers = _split(done.stderr.decode(errors="replace") + done.stdout.decode(errors="replace"), folder)
        log = shorten(words, self._settings.log_characters)
        if done.killed_by in ("deadline", "memory", "processes"):
            reason = {
                "deadline": f"compiling took more than {limits.seconds:g} s",
                "memory": "compiling took too much memory",
            }.get(done.killed_by, "compiling started too many processes")
            return Compiled(None, VerdictKind.COMPILE_ERROR, reason, log)
        allow = task.allow if task else ()
        outside, library = screens.screen_headers(
            [header for header in headers if not header.is_relative_to(folder)], self.toolkit, allow
        )
        if outside:
            return Compiled(
                None, VerdictKind.REWARD_HACK, f"it includes {outside}, which is outside the include path", log
            )
        if library:
            return Compiled(None, VerdictKind.REWARD_HACK, f"it includes {library}, a library instead of a kernel", log)
        product = folder / "candidate.so"
        if not done.ok:
            if done.killed_by or "No space left on device" in words:
                raise InternalFault(f"nvcc ended with {done.killed_by or 'a full disk'}.", where=str(folder))
            if undefined := _undefined(words):
                return self._unresolved(undefined, allow, log)
            return Compiled(None, VerdictKind.COMPILE_ERROR, first_error(words), log)
        if not product.is_file():
            raise InternalFault("nvcc ended well and wrote nothing.", where=str(folder))
        return self._screened(task, product, key, log)

    def _unresolved(self, undefined: list[str], allow: tuple[str, ...], log: str) -> Compiled:
        needs = frozenset(name.partition("(")[0] for name in undefined)
        hack = screens.screen_symbols(SharedObject(needs, frozenset(), (), False), "", allow, frozenset())
        if hack:
            return Compiled(None, VerdictKind.REWARD_HACK, hack, log)
        return Compiled(None, VerdictKind.COMPILE_ERROR, f"undefined: {', '.join(sorted(undefined)[:5])}", log)

    def _screened(self, task: Task | None, product: Path, key: str, log: str) -> Compiled:
        try:
            found = read_shared_object(product)
        except NotElf as error:
            raise InternalFault(f"nvcc wrote no shared object: {error}.", where=str(product)) from error
        if task is not None and task.function not in found.offers:
            return Compiled(
                None,
                VerdictKind.COMPILE_ERROR,
                f'`{task.function}` is not declared extern "C"; wanted: {task.signature}',
                log,
            )
        hack = screens.screen_symbols(
            found, task.function if task else "", task.allow if task else (), runtime_symbols(self.toolkit)
        )
        if hack:
            return Compiled(None, VerdictKind.REWARD_HACK, hack, log)
        return Compiled(self._cache.put(key, product), log=log)


@lru_cache(maxsize=4)
def runtime_symbols(toolkit: Toolkit) -> frozenset[str]:
    """The symbols that the CUDA runtime defines; empty when the toolkit has no shared one."""
    library = toolkit.library("libcudart.so")
    try:
        return read_shared_object(library).offers if library else frozenset()
    except NotElf:
        return frozenset()


def gpu_architecture(index: int) -> str:
    """The architecture of GPU ``index``, e.g. ``sm_90``; empty when there is none."""
    try:
        words = subprocess.run(
            ["nvidia-smi", "-i", str(index), "--query-gpu=compute_cap", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"sm_{words.replace('.', '')}" if re.fullmatch(r"\d+\.\d", words) else ""


_ATTRIBUTE = re.compile(r"__attribute__\(\((global|device|host|shared|constant|managed)\)\)")


def _split(words: str, folder: Path) -> tuple[str, list[Path]]:
    """The compiler's own words, and the headers that `gcc -H` listed among them."""
    kept: list[str] = []
    headers: dict[Path, None] = {}
    listing = False
    for line in words.splitlines():
        header = re.match(r"\.+ (.+)", line)
        if header:
            headers[Path(header[1])] = None
        elif line.startswith("Multiple include guards may be useful for:"):
            listing = True
        elif not (listing and line.startswith("/")):
            listing = False
            kept.append(line)
    text = "\n".join(kept).replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")
    return _own_words(re.sub(r"/?tmpxft_[0-9a-f]{8}_[0-9a-f]{8}-\d+_", "", text).strip()), list(headers)


def _own_words(text: str) -> str:
    """nvcc shows lines as they are after preprocessing: back to ``__global__`` and the like, the caret moved along."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        removed = 0
        caret = lines[number + 1].find("^") if number + 1 < len(lines) else -1
        for found in _ATTRIBUTE.finditer(line):
            removed += len(found[0]) - len(found[1]) - 4 if found.start() < caret else 0
        lines[number] = _ATTRIBUTE.sub(r"__\1__", line)
        if removed and not lines[number + 1][:caret].strip():
            lines[number + 1] = lines[number + 1][removed:]
    return "\n".join(lines)


def _undefined(words: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"undefined reference to [`']([^'\n]+)'", words)))


_HEAD = re.compile(
    r"(?P<file>[\w./-]+)[(:](?P<line>\d+)\)?(?::\d+)?: "
    r"(?P<kind>(?:fatal |catastrophic )?error|warning|note|remark|Warning)(?: #[\w-]+)?: (?P<text>.*)"
)


def first_error(words: str) -> str:
    """The first error in one line, with the candidate's own line number."""
    for line in words.splitlines():
        found = _HEAD.match(line)
        if found and "error" in found["kind"]:
            if found["file"].startswith("signature"):
                text = re.search(r"the signature is not: .*", found["text"])
                return (
                    text[0].replace('\\"', '"').rstrip('"')
                    if text
                    else f"the signature is not the task's: {found['text']}"
                )
            if found["file"] == CANDIDATE:
                return f"line {found['line']}: {found['text']}"
            return f"{Path(found['file']).name}, line {found['line']}: {found['text']}"
        if re.match(r"(ptxas|nvlink|cicc|nvcc|cudafe\+\+|ld|collect2)\b.*(error|fatal)", line, re.IGNORECASE):
            return line.strip()[:400]
    return (words.strip().splitlines() or ["nvcc failed without a word"])[-1][:400]


def shorten(words: str, limit: int) -> str:
    """Errors with the lines that belong to them first, warnings left out when there are errors, cut to ``limit``."""
    blocks: list[tuple[bool, list[str]]] = []
    for line in words.splitlines():
        found = _HEAD.match(line)
        if found:
            blocks.append(("error" in found["kind"], [line]))
        elif blocks and line.startswith((" ", "\t")):
            blocks[-1][1].append(line)
        elif line.strip():
            blocks.append((not re.search(r"[Ww]arning|In file included|Remark", line), [line]))
    errors = [block for block in blocks if block[0]] or blocks
    text = "\n".join(line for _, block in errors for line in block)
    return (
        text if len(text) <= limit else text[: limit - 40].rstrip() + f"\n… ({len(text) - limit + 40} characters more)"
    )
