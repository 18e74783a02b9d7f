"""The CPU level's kits: old ones are evicted, but none that a process holds."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from verify.cpu import build


def test_old_kits_go_unless_somebody_holds_them(tmp_path: Path) -> None:
    kits = [tmp_path / f"{number:024x}" for number in range(6)]
    for age, folder in enumerate(kits):
        folder.mkdir()
        (folder / "driver").touch()
        os.utime(folder, (1000 - age, 1000 - age))
    (tmp_path / ".building-x").mkdir()
    handle = os.open(kits[5], os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    build._evict(tmp_path, keep=kits[4])
    os.close(handle)
    assert {path.name for path in tmp_path.iterdir()} == {
        ".building-x",
        *(kits[number].name for number in (0, 1, 4, 5)),
    }


@pytest.mark.nvcc
def test_a_kit_in_use_is_held(toolkit: Path) -> None:
    folder = build.kit(toolkit).folder
    handle = os.open(folder, os.O_RDONLY)
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(handle)
