"""A profile measured by our own micro-kernels (``microkernels.cu``) on a GPU: a start for a fit, or a whole profile."""

from __future__ import annotations

import os
import subprocess
from dataclasses import fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from regraph_db.errors import EnvironmentFault, InternalFault
from verify.gpu import Gpu
from verify.model.profiles import Constants, Hardware, Profile
from verify.toolchain import Toolkit

SOURCE = Path(__file__).with_name("microkernels.cu")
#: What no micro-kernel shows: how a GPU's instructions relate to the host's that are counted, and how terms overlap.
TAKEN_OVER = frozenset(("integer", "issue", "unit", "power", "l2_share"))
_BUILD_SECONDS, _RUN_SECONDS = 120, 300


def build(toolkit: Toolkit, architecture: str, folder: Path) -> Path:
    """Compile the micro-kernels into ``folder``. Raises :class:`InternalFault` when nvcc refuses them."""
    program = folder / "microkernels"
    library = [f"-L{toolkit.root / name}" for name in ("lib", "lib64") if (toolkit.root / name).is_dir()]
    argv = [str(toolkit.nvcc), "-O3", "-std=c++17", f"-arch={architecture}", *library, str(SOURCE), "-o", str(program)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
    if done.returncode:
        raise InternalFault(f"the micro-kernels do not compile: {done.stderr.strip()[:500]}", where=str(SOURCE))
    return program


def measure(toolkit: Toolkit, gpu: Gpu, start: Profile, folder: Path) -> Profile:
    """Run the micro-kernels on ``gpu``, which nothing else should use meanwhile; takes less than a minute.

    What they cannot show is taken over from ``start``. Raises :class:`EnvironmentFault` when they do not run.
    """
    program = build(toolkit, gpu.architecture, folder)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu.uuid}
    try:
        done = subprocess.run(
            [str(program)], capture_output=True, text=True, timeout=_RUN_SECONDS, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(f"the micro-kernels did not end within {_RUN_SECONDS} s on {gpu.name}.") from None
    if done.returncode:
        raise EnvironmentFault(
            f"the micro-kernels do not run on {gpu.name}: {done.stderr.strip()[:300]}",
            fix="See what `nvidia-smi` says; the driver must be as new as the toolkit.",
        )
    return read_measured(done.stdout, start, f"{date.today().isoformat()}, micro-kernels, driver {gpu.driver}")


def read_measured(report: str, start: Profile, calibrated: str) -> Profile:
    """The profile of a report, lines of ``NAME VALUE``.

    Raises :class:`InternalFault` when one is missing or not positive.
    """
    given = dict(line.split(maxsplit=1) for line in report.splitlines() if " " in line)

    def value(name: str, kind: str) -> Any:
        if kind == "str":
            return given[name]
        number = float(given[name])
        if not 0 < number < float("inf"):
            raise ValueError(f"{name} = {given[name]}")
        return round(number) if kind == "int" else number

    try:
        hardware = Hardware(**{field.name: value(field.name, str(field.type)) for field in fields(Hardware)})
        measured = {f.name: value(f.name, "float") for f in fields(Constants) if f.name not in TAKEN_OVER}
    except (KeyError, ValueError) as error:
        raise InternalFault(f"the micro-kernels' report lacks something or is no measurement: {error}.") from None
    constants = replace(
        start.constants, **measured, l2_share=start.constants.l2_share / start.hardware.l2 * hardware.l2
    )
    return Profile(start.name, given["title"], calibrated, hardware, constants)
