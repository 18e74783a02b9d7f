"""Nothing is left over: private folders, also those of a judge that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verify import private
from verify.private import PrivateFolder, remove_left_behind

ROOT = Path(__file__).parents[2]


def test_a_private_folder_goes_with_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "_YOUNGEST", -1.0)
    with PrivateFolder(tmp_path) as folder:
        (folder / "file").touch()
        assert remove_left_behind((tmp_path,)) == 0 and (folder / "file").exists()
    assert not folder.exists()


def test_what_is_young_or_not_ours_stays(tmp_path: Path) -> None:
    (tmp_path / "regraph-run-young").mkdir()
    (tmp_path / "regraph-mine").mkdir()
    assert remove_left_behind((tmp_path,)) == 0


@pytest.mark.nvcc
def test_a_judge_that_is_killed_leaves_no_process_and_its_folders_are_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed with SIGKILL while a candidate runs for ever on the CPU."""
    (tmp_path / "endless.cu").write_text(
        "__global__ void k(float* out) { while (atomicAdd(out, 0.0f) < 1.0f) {} }\n"
        'extern "C" void affine(const float* x, float* out, int n) { for (;;) k<<<1, 1>>>(out); }\n'
    )
    inside = tmp_path / "tmp"
    inside.mkdir()
    task = ROOT / "tests" / "verify" / "tasks" / "affine"
    words = [
        "-c",
        "from regraph_db.cli import main; main()",
        "verify",
        str(task),
        str(tmp_path / "endless.cu"),
        "--level",
        "functional",
    ]
    environment = {**os.environ, "TMPDIR": str(inside)}
    judge = subprocess.Popen([sys.executable, *words], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)

    def running() -> list[str]:
        """Processes that work in one of the judge's folders."""
        found = []
        for process in Path("/proc").iterdir():
            try:
                if process.name.isdigit() and (process / "cwd").resolve().is_relative_to(inside):
                    found.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found

    def wait_for(wanted: bool) -> bool:
        for _ in range(1200):
            if any("driver" in line for line in running()) == wanted:
                return True
            time.sleep(0.05)
        return False

    assert wait_for(True)
    judge.send_signal(signal.SIGKILL)
    judge.wait()
    assert wait_for(False) and not running()
    monkeypatch.setattr(private, "_YOUNGEST", -1.0)
    assert remove_left_behind((inside,)) >= 1
    assert not list(inside.iterdir())
