"""When something of ours breaks: `harness_error` or a clear error, never a reward, and the next judgement is right."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from regraph_db.cli import regraph
from regraph_db.errors import InternalFault
from regraph_db.records import Level, VerdictKind
from verify import sandbox
from verify.cores import Cores
from verify.frames import write_calls
from verify.inputs import make_call
from verify.judge import Judge
from verify.sandbox import Defences
from verify.settings import VerifySettings
from verify.task import load_task
from verify.toolchain import find_toolkit

TASKS = Path(__file__).parent / "tasks"
RIGHT = (Path(__file__).parents[1] / "hostile" / "benign" / "honest.cu").read_text()


def toolkit_with(folder: Path, script: str) -> VerifySettings:
    """Settings for a toolkit whose nvcc tells its version and otherwise runs ``script``."""
    real = find_toolkit(VerifySettings())
    (folder / "bin").mkdir(parents=True)
    (folder / "include").symlink_to(real.include)
    nvcc = folder / "bin" / "nvcc"
    nvcc.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "V{real.version}" && exit 0\n{script}\n')
    nvcc.chmod(0o755)
    return VerifySettings(nvcc=nvcc, jobs=2)


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -9 $$", "SIGKILL"),
        ("kill -SEGV $$", "SIGSEGV"),
        ("echo 'nvcc fatal: No space left on device' >&2; exit 1", "full disk"),
        ("exit 0", "wrote nothing"),
        ("echo rubbish > candidate.so", "no shared object"),
    ],
)
def test_an_nvcc_that_breaks_is_our_fault_and_is_not_remembered(tmp_path: Path, script: str, words: str) -> None:
    cache, task = tmp_path / "cache", load_task(TASKS / "affine")
    with Judge(toolkit_with(tmp_path / "broken", script), cache_folder=cache) as judge:
        verdict = judge.judge(task, RIGHT, Level.COMPILE)
    assert verdict.verdict is VerdictKind.HARNESS_ERROR and words in verdict.reason
    assert verdict.speedup is None
    with Judge(cache_folder=cache) as judge:
        assert judge.judge(task, RIGHT, Level.COMPILE).passed


@pytest.mark.nvcc
def test_an_nvcc_that_hangs_is_ended_at_its_deadline(tmp_path: Path) -> None:
    settings = toolkit_with(tmp_path / "slow", "sleep 60").model_copy(update={"compile_seconds": 0.5})
    with Judge(settings, cache_folder=tmp_path / "cache") as judge:
        verdict = judge.judge(load_task(TASKS / "affine"), RIGHT, Level.COMPILE)
    assert verdict.verdict is VerdictKind.COMPILE_ERROR and "0.5 s" in verdict.reason


def test_a_disk_that_is_full_is_said_so(tmp_path: Path) -> None:
    task = load_task(TASKS / "affine")
    with pytest.raises(InternalFault, match="No space left"):
        write_calls(task, [make_call(task, {"n": 100_000}, 0)], tmp_path / "index", Path("/dev/full"))


def test_a_candidate_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "latin.cu"
    file.write_bytes(b"// a\n// b\n// caf\xe9\n")
    done = CliRunner().invoke(regraph, ["verify", str(TASKS / "affine"), str(file)])
    assert done.exit_code != 0 and f"{file}:3" in str(done.exception or done.output)


@pytest.mark.nvcc
def test_a_reference_that_is_not_utf8_is_the_tasks_fault(tmp_path: Path) -> None:
    from regraph_db.errors import InputError

    folder = Path(shutil.copytree(TASKS / "affine", tmp_path / "affine"))
    (folder / "reference.cpp").write_bytes(b"// one\n// \xff\n")
    with pytest.raises(InputError, match=r"reference\.cpp:2.*UTF-8"):
        load_task(folder)


def test_the_doctor_names_every_missing_defence(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = (("Landlock (file confinement)", "the kernel has none"), ("pid namespace", "Operation not permitted"))
    monkeypatch.setattr(sandbox, "defences", lambda: Defences(("user",), False, True, lacking))
    shown = CliRunner().invoke(regraph, ["doctor"]).output
    for name, why in lacking:
        assert any(name in line and why in line and line.startswith("!") for line in shown.splitlines()), shown


def test_whoever_times_on_the_cpu_has_every_core_and_nobody_waits_for_ever() -> None:
    cores, order, busy = Cores(2), [], threading.Event()

    def worker(name: str) -> None:
        with cores.one():
            busy.set()
            time.sleep(0.05)
            order.append(name)

    def timer() -> None:
        with cores.all():
            order.append("alone")

    first = [threading.Thread(target=worker, args=(f"first {k}",)) for k in range(2)]
    for thread in first:
        thread.start()
    busy.wait()
    alone = threading.Thread(target=timer)
    alone.start()
    for thread in (*first, alone):
        thread.join(20)
    later = threading.Thread(target=worker, args=("later",))
    later.start()
    later.join(20)
    assert order[2:] == ["alone", "later"] and not alone.is_alive()
    with Cores(1).all():
        pass
