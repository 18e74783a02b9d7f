"""Every cheat of the design gets its verdict, every benign twin passes, and nothing is left over."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from regraph_db.records import Level, Verdict
from verify.judge import Judge, best_level
from verify.settings import VerifySettings
from verify.task import Task, load_task

HERE = Path(__file__).parent
TASKS = HERE.parent / "verify" / "tasks"
CHEATS = sorted((HERE / "cheats").glob("*.cu"))
BENIGN = sorted((HERE / "benign").glob("*.cu"))
REPORT = HERE.parents[1] / "build" / "reports" / "hostile.json"
SETTINGS = VerifySettings(timing_seconds=2.0, run_memory=2 << 30, compile_seconds=120)
pytestmark = pytest.mark.nvcc


class Fixture:
    """A kernel with the lines at its head: what it does, the task, the verdicts it may get and the levels that must
    see it."""

    def __init__(self, file: Path) -> None:
        self.source = file.read_text()
        head = dict(re.findall(r"^// ([a-z ]+): (.*)$", self.source, re.MULTILINE))
        self.task: Task = load_task(TASKS / head["task"])
        self.verdicts = head["verdict"].split()
        self.levels = head["levels"].split()
        self.twin = head.get("twin", "")
        self.no_faster_than = head.get("no faster than", "")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(SETTINGS, cache_folder=tmp_path_factory.mktemp("cache")) as one:
        yield one


@pytest.fixture(scope="module")
def gpu_judge(judge: Judge) -> Judge:
    if best_level(SETTINGS) is not Level.GPU:
        pytest.skip("no GPU")
    return judge


@pytest.fixture(scope="module")
def kept(gpu_judge: Judge) -> Iterator[list[tuple[str, Verdict]]]:
    """What the GPU tests saw, written to a report when they end."""
    rows: list[tuple[str, Verdict]] = []
    yield rows
    evidence = next((verdict.evidence for _, verdict in rows if verdict.evidence.gpu), None)
    if evidence is not None:
        head = {"gpu": evidence.gpu, "driver": evidence.driver, "nvcc": evidence.nvcc, "date": str(evidence.date)}
        told = [{"fixture": name, "verdict": verdict.verdict, "reason": verdict.reason} for name, verdict in rows]
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(json.dumps({**head, "fixtures": told}, indent=1) + "\n")


def leftovers() -> set[str]:
    """Processes in sandboxes and shared-memory segments of ours."""
    found = {path.name for path in Path("/dev/shm").glob("regraph-*")} if Path("/dev/shm").is_dir() else set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                command = (process / "cmdline").read_bytes()
                parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if b"sandbox_child" in command and parent == os.getpid():
                found.add(f"process {process.name}")
    return found


def explain(fixture: Fixture, verdict: Verdict) -> str:
    return f"{verdict.verdict}: {verdict.reason}\n{verdict.log[:2000]} (wanted {fixture.verdicts})"


def cases(files: list[Path], level: str, without: str = "") -> list[object]:
    """Fixtures that ``level`` must judge, but for those that the level ``without`` catches already."""
    found = [(file, Fixture(file).levels) for file in files]
    return [pytest.param(file, id=file.stem) for file, levels in found if level in levels and without not in levels]


@pytest.mark.parametrize("file", cases(CHEATS, "functional", without="compile"))
def test_a_cheat_is_caught_on_the_cpu_and_the_next_honest_kernel_passes(judge: Judge, file: Path) -> None:
    fixture = Fixture(file)
    verdict = judge.judge(fixture.task, fixture.source, Level.FUNCTIONAL)
    assert verdict.verdict in fixture.verdicts, explain(fixture, verdict)
    assert verdict.reason
    honest = Fixture(HERE / "benign" / "honest.cu")
    after = judge.judge(honest.task, honest.source, Level.FUNCTIONAL, fresh=True)
    assert after.passed, explain(honest, after)
    assert not leftovers()
    assert not Path("/tmp/left_by_a_candidate").exists()  # the file that one cheat tries to write


@pytest.mark.parametrize("file", cases(CHEATS, "compile"))
def test_a_cheat_in_the_text_is_caught_without_running(judge: Judge, file: Path) -> None:
    fixture = Fixture(file)
    verdict = judge.judge(fixture.task, fixture.source, Level.COMPILE)
    assert verdict.verdict in fixture.verdicts, explain(fixture, verdict)
    assert verdict.level is Level.COMPILE


@pytest.mark.parametrize("file", cases(BENIGN, "functional"))
def test_a_benign_kernel_passes_on_the_cpu(judge: Judge, file: Path) -> None:
    fixture = Fixture(file)
    verdict = judge.judge(fixture.task, fixture.source, Level.FUNCTIONAL)
    assert verdict.passed, explain(fixture, verdict)
    assert verdict.speedup is None, "no speed is invented without a GPU"


def test_every_cheat_names_a_benign_twin_that_exists() -> None:
    benign = {file.stem for file in BENIGN}
    assert {Fixture(file).twin for file in CHEATS} <= benign


@pytest.mark.gpu
@pytest.mark.parametrize("file", cases(CHEATS, "gpu"))
def test_a_cheat_is_caught_on_the_gpu_and_the_next_honest_kernel_passes(
    gpu_judge: Judge, kept: list[tuple[str, Verdict]], file: Path
) -> None:
    fixture = Fixture(file)
    against = Fixture(HERE / "benign" / f"{fixture.no_faster_than}.cu").source if fixture.no_faster_than else None
    verdict = gpu_judge.judge(fixture.task, fixture.source, Level.GPU, baseline=against)
    kept.append((f"cheats/{file.stem}", verdict))
    assert verdict.verdict in fixture.verdicts, explain(fixture, verdict)
    if against is not None:
        assert verdict.speedup is not None and verdict.speedup.median < 1.15, "it is timed as if it remembered nothing"
    honest = Fixture(HERE / "benign" / "honest.cu")
    after = gpu_judge.judge(honest.task, honest.source, Level.GPU, fresh=True)
    assert after.passed, explain(honest, after)
    assert not leftovers()


@pytest.mark.gpu
@pytest.mark.parametrize("file", cases(BENIGN, "gpu"))
def test_a_benign_kernel_passes_on_the_gpu_with_a_speedup(
    gpu_judge: Judge, kept: list[tuple[str, Verdict]], file: Path
) -> None:
    fixture = Fixture(file)
    verdict = gpu_judge.judge(fixture.task, fixture.source, Level.GPU)
    kept.append((f"benign/{file.stem}", verdict))
    assert verdict.passed, explain(fixture, verdict)
    assert verdict.speedup is not None and verdict.speedup.low <= verdict.speedup.median <= verdict.speedup.high
    assert verdict.candidate_seconds and verdict.baseline_seconds
    assert verdict.evidence.gpu and verdict.evidence.driver and verdict.evidence.samples >= 3
