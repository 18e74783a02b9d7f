"""Finds the CUDA toolkit and the host compiler, and says which they are."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from regraph_db.errors import EnvironmentFault
from verify.settings import VerifySettings

ADVICE = "Install it with `pip install 'regraph[cuda]'`, put a CUDA toolkit on PATH, or set verify.nvcc."


@dataclass(frozen=True)
class Toolkit:
    """A CUDA toolkit with its compiler and headers."""

    nvcc: Path
    root: Path  #: holds ``include``
    version: str  #: e.g. ``13.0.88``
    origin: str  #: where it was found: ``setting``, ``wheels``, ``PATH`` or ``/usr/local/cuda``
    host: str  #: the host compiler and its version, e.g. ``g++ 12.2.0``
    host_path: Path

    @property
    def include(self) -> Path:
        return self.root / "include"

    def library(self, stem: str) -> Path | None:
        """The newest shared library ``stem``, e.g. ``libcudart.so``; ``None`` when the toolkit has none."""
        for folder in ("lib", "lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib/x86_64-linux-gnu"):
            found = sorted((self.root / folder).glob(f"{stem}*"), key=lambda path: len(path.name))
            if found:
                return found[-1].resolve()
        return None


def find_toolkit(settings: VerifySettings) -> Toolkit:
    """The toolkit to use: the setting's, the wheels', the one on PATH, or /usr/local/cuda's, in this order.

    Raises :class:`EnvironmentFault` when there is none, when it does not run, or when there is no host compiler.
    """
    return _find(settings.nvcc, settings.host_compiler)


@lru_cache(maxsize=8)
def _find(setting: Path | None, host_compiler: str) -> Toolkit:
    host = shutil.which(host_compiler)
    if host is None:
        raise EnvironmentFault(
            f"no `{host_compiler}` on PATH, which nvcc needs.",
            fix="Install g++ (Debian: apt-get install g++) or set verify.host_compiler.",
        )
    tried = []
    for origin, nvcc in _candidates(setting):
        if not nvcc.is_file():
            if origin == "setting":
                raise EnvironmentFault("there is no nvcc there.", where=f"setting verify.nvcc = {nvcc}", fix=ADVICE)
            continue
        nvcc = nvcc.resolve()
        root = nvcc.parent.parent
        if not (root / "include" / "cuda_runtime.h").is_file():
            tried.append(f"{nvcc} has no headers beside it")
            continue
        version = re.search(r"\bV(\d+\.\d+\.\d+)", _words([str(nvcc), "--version"]))
        if version is None:
            tried.append(f"{nvcc} does not run")
            continue
        host_version = _words([host, "-dumpfullversion"]).strip()
        return Toolkit(nvcc, root, version[1], origin, f"{host_compiler} {host_version}", Path(host))
    raise EnvironmentFault(f"no nvcc found{': ' + '; '.join(tried) if tried else ''}.", fix=ADVICE)


def _candidates(setting: Path | None) -> Iterator[tuple[str, Path]]:
    if setting is not None:
        yield "setting", setting.expanduser()
        return
    try:
        for file in files("nvidia-cuda-nvcc") or ():
            if file.name == "nvcc":
                yield "wheels", Path(str(file.locate()))
    except PackageNotFoundError:
        pass
    if found := shutil.which("nvcc"):
        yield "PATH", Path(found)
    yield "/usr/local/cuda", Path("/usr/local/cuda/bin/nvcc")


def _words(argv: list[str]) -> str:
    """What a tool of ours prints; empty when it does not run."""
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
