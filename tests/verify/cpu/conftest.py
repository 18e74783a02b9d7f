"""A probe task whose candidate is given whole: ``probe(const float* x, const int* index, float* y, int* z, int n)``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from probes import MANIFEST, REFERENCE, Probe

from regraph_db.errors import EnvironmentFault
from verify.cpu import available, execute
from verify.execution import Call, Execution
from verify.sandbox import Limits
from verify.settings import VerifySettings
from verify.task import Task, load_task
from verify.toolchain import find_toolkit


@pytest.fixture(scope="session")
def toolkit() -> Path:
    if reason := available():
        pytest.skip(reason)
    try:
        return find_toolkit(VerifySettings()).root
    except EnvironmentFault as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    made = {}
    for abi in ("device", "host"):
        folder = tmp_path_factory.mktemp("tasks") / f"probe_{abi}"
        folder.mkdir()
        (folder / "task.toml").write_text(MANIFEST.format(name=folder.name, abi=abi))
        (folder / "reference.cpp").write_text(REFERENCE)
        made[abi] = load_task(folder)
    return made


@pytest.fixture
def probe(toolkit: Path, tasks: dict[str, Task], tmp_path: Path) -> Probe:
    """Run a candidate of the probe task; ``x`` is 0, 1, 2 …, ``index`` is i * 7 mod n, ``y`` and ``z`` are -1."""

    def run(
        source: str, n: int = 256, *, races: bool = True, calls: int = 1, abi: str = "device", seconds: float = 30.0
    ) -> Execution:
        numbers = np.arange(n)
        arguments = [
            numbers.astype(np.float32),
            (numbers * 7 % n).astype(np.int32),
            np.full(n, -1, np.float32),
            np.full(n, -1, np.int32),
            n,
        ]
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        return execute(
            tasks[abi],
            source,
            [Call({"n": n}, arguments)] * calls,
            races=races,
            toolkit=toolkit,
            folder=folder,
            limits=Limits(seconds=seconds),
        )

    return run
