"""What ``regraph doctor`` finds. Each part is tried, not guessed; other packages add parts by the entry points
``regraph.doctor``."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from regraph_db.errors import RegraphError
from regraph_db.opening import open_store
from regraph_db.settings import Settings, load, section
from verify import sandbox
from verify.settings import VerifySettings
from verify.toolchain import ADVICE, find_toolkit


@dataclass(frozen=True)
class Finding:
    """One line of ``regraph doctor``."""

    part: str
    state: str  #: ``ok``, ``missing`` or ``limited``
    detail: str
    fix: str = ""  #: the command or setting that brings it
    needed: bool = False  #: whether a search needs it


def examine() -> list[Finding]:
    """Look at every part. A part that cannot be looked at is itself a finding, never an exception."""
    settings = load()
    judge = section("verify", VerifySettings)
    parts: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("Python", _python),
        ("store", lambda: _store(settings)),
        ("nvcc", lambda: _toolkit(judge)),
        ("GPU", lambda: _gpu(judge)),
        ("CPU level", _cpu_level),
        ("modelled level", _model_level),
        ("sandbox", _sandbox),
        ("language model", lambda: _language_model(settings)),
        ("cache", lambda: _cache(settings)),
    ]
    parts += [(point.name, point.load()) for point in entry_points(group="regraph.doctor")]
    found: list[Finding] = []
    for name, look in parts:
        try:
            found += look()
        except RegraphError as error:
            found.append(Finding(name, "missing", str(error)))
        except Exception as error:  # a plugin's fault must not hide the other parts
            found.append(Finding(name, "missing", f"{type(error).__name__}: {error}"))
    return found


def _python() -> Iterator[Finding]:
    yield Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def _store(settings: Settings) -> Iterator[Finding]:
    try:
        with open_store(settings):
            yield Finding("store", "ok", settings.store, needed=True)
    except RegraphError as error:
        yield Finding("store", "missing", f"{settings.store}: {error}", "`regraph db init` makes it", needed=True)


def _toolkit(settings: VerifySettings) -> Iterator[Finding]:
    host = shutil.which(settings.host_compiler)
    if host is None:
        yield Finding(
            "host compiler", "missing", f"no {settings.host_compiler}", "Debian: apt-get install g++", needed=True
        )
        return
    try:
        toolkit = find_toolkit(settings)
    except RegraphError as error:
        yield Finding("host compiler", "ok", host)
        yield Finding("nvcc", "missing", error.args[0], ADVICE, needed=True)
        return
    yield Finding("host compiler", "ok", f"{toolkit.host} at {host}")
    yield Finding("nvcc", "ok", f"{toolkit.version} at {toolkit.nvcc} ({toolkit.origin})", needed=True)


def _gpu(settings: VerifySettings) -> Iterator[Finding]:
    from verify.gpu import find_gpu

    try:
        gpu = find_gpu(settings.gpu)
    except RegraphError:
        yield Finding(
            "GPU",
            "limited",
            "none; kernels are run on the CPU and speed is not measured",
            "run on a machine with an NVIDIA GPU to measure",
        )
        return
    yield Finding("GPU", "ok", f"{gpu.name} ({gpu.architecture}), driver {gpu.driver}")
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if sanitizer:
        yield Finding("compute-sanitizer", "ok", sanitizer)
    else:
        yield Finding(
            "compute-sanitizer",
            "limited",
            "none; results beyond the GPU's limit are refused",
            "install cuda-sanitizer of the CUDA toolkit",
        )


def _cpu_level() -> Iterator[Finding]:
    from verify.cpu import available

    why = available()
    yield Finding(
        "CPU level",
        "missing" if why else "ok",
        why or "CUDA C++ runs on the CPU, with the exact race check",
        needed=True,
    )


def _model_level() -> Iterator[Finding]:
    from verify.judge import best_level

    level = best_level(section("verify", VerifySettings))
    yield Finding(
        "best level", "ok" if level != "compile" else "missing", f"`regraph verify` judges at level {level} by default"
    )


def _sandbox() -> Iterator[Finding]:
    missing = sandbox.missing_defences()
    using = sandbox.defences()
    present = [
        *(f"{name} namespace" for name in using.namespaces),
        *(["Landlock"] if using.landlock else []),
        *(["seccomp"] if using.seccomp else []),
    ]
    yield Finding("sandbox", "limited" if missing else "ok", ", ".join([*present, "rlimits", "deadline"]))
    for defence, why in missing:
        yield Finding(
            f"  {defence}",
            "limited",
            why,
            "untrusted kernels are less confined here; run them in a virtual machine or container",
        )


def _language_model(settings: Settings) -> Iterator[Finding]:
    if importlib.util.find_spec("llama_cpp") is None:
        yield Finding(
            "llama.cpp", "limited", "llama-cpp-python is not installed", "`make venv`, or pip install 'regraph[llama]'"
        )
    else:
        yield Finding("llama.cpp", "ok", "llama-cpp-python is installed")
    if settings.model is None:
        yield Finding("model", "limited", "no model is set", "give --model FILE.gguf, or set `model`")
    elif settings.model.startswith("langchain:"):
        there = importlib.util.find_spec("langchain") is not None
        yield Finding(
            "model", "ok" if there else "missing", settings.model, "" if there else "pip install 'regraph[langchain]'"
        )
    else:
        file = Path(settings.model).expanduser()
        detail = f"{file} ({file.stat().st_size >> 20} MiB)" if file.is_file() else f"there is no {file}"
        yield Finding(
            "model",
            "ok" if file.is_file() else "missing",
            detail,
            "" if file.is_file() else "set `model` to a GGUF file",
        )


def _cache(settings: Settings) -> Iterator[Finding]:
    folder = settings.cache_folder
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    yield Finding("cache", "ok", f"{folder}, {shutil.disk_usage(existing).free >> 30} GiB free")
