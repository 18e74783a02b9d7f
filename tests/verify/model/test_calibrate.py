"""A profile from micro-kernels and from measured files, as far as a machine without a GPU can show: the program builds,
its report is read or refused, and the commands work on real measured steps."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner

from regraph_db.cli import regraph
from regraph_db.errors import EnvironmentFault, InternalFault
from verify.cpu import available
from verify.model import microkernels
from verify.model.profiles import Constants, Hardware, load_profile
from verify.model.samples import Samples, Skipped
from verify.settings import VerifySettings
from verify.toolchain import find_toolkit

H200 = load_profile("h200")
TRAJECTORIES = Path(__file__).parents[3] / "cudaeval" / "trajectories"


def report(**changed: object) -> str:
    """What the micro-kernels would say of an H200 whose constants are those of its profile."""
    values: dict[str, object] = {"title": "NVIDIA Test", "driver": 13000}
    for part in (H200.hardware, H200.constants):
        names = [field.name for field in fields(part) if field.name not in microkernels.TAKEN_OVER]
        values |= {name: getattr(part, name) for name in names}
    return "".join(f"{name} {value}\n" for name, value in (values | changed).items())


def test_a_report_becomes_a_profile() -> None:
    found = microkernels.read_measured(report(l2=25e6, warps=48, dram=1000.5), H200, "today")
    assert (found.title, found.calibrated) == ("NVIDIA Test", "today")
    assert (found.hardware.warps, found.constants.dram) == (48, 1000.5)
    assert found.constants.l2_share == pytest.approx(H200.constants.l2_share / 2)
    assert found.constants.power == H200.constants.power


@pytest.mark.parametrize(
    ("text", "named"),
    [("", "architecture"), (report(far_wait=0), "far_wait"), (report(dram="nan"), "dram"), (report(step="x"), "x")],
)
def test_a_report_that_is_no_measurement_is_refused(text: str, named: str) -> None:
    with pytest.raises(InternalFault, match=named):
        microkernels.read_measured(text, H200, "today")


def test_every_constant_is_measured_or_named_as_taken_over() -> None:
    told = set(re.findall(r'tell\("(\w+)"', microkernels.SOURCE.read_text("utf-8")))
    constants = {field.name for field in fields(Constants)}
    assert constants - microkernels.TAKEN_OVER == told & constants
    assert {field.name for field in fields(Hardware)} - told == {"architecture"}


@pytest.mark.nvcc
def test_the_micro_kernels_build_and_say_so_where_there_is_no_gpu(tmp_path: Path) -> None:
    try:
        toolkit = find_toolkit(VerifySettings())
    except EnvironmentFault as error:
        pytest.skip(str(error))
    program = microkernels.build(toolkit, "sm_90", tmp_path)
    if shutil.which("nvidia-smi"):
        pytest.skip("there is a GPU: `regraph gpu calibrate --measure` shows more")
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "cudaGetDeviceProperties" in done.stderr and not done.stdout


def test_calibrate_says_what_it_lacks(tmp_path: Path) -> None:
    told = CliRunner().invoke(regraph, ["gpu", "calibrate", "--output", str(tmp_path / "x.toml")])
    assert told.exit_code == 2 and "--measure" in told.output
    few = str(TRAJECTORIES / "relu.measured.json")
    if available():
        pytest.skip(available())
    told = CliRunner().invoke(regraph, ["gpu", "calibrate", few, "--output", str(tmp_path / "x.toml")])
    assert told.exit_code == 1 and "too few for a fit" in told.output
    assert not (tmp_path / "x.toml").exists()


@pytest.mark.nvcc
def test_the_table_compares_with_what_was_measured(tmp_path: Path) -> None:
    if available():
        pytest.skip(available())
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- modelled: begin -->\n<!-- modelled: end -->\nafter\n")
    call = ["gpu", "table", str(TRAJECTORIES / "relu.measured.json"), "--json", "--update", str(page)]
    told = CliRunner().invoke(regraph, call)
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    (split,) = found["splits"].values()
    assert split["summary"]["families"] == 1 and split["rows"][0]["family"] == "relu"
    assert split["rows"][0]["kernels"] == 3 and found["no_model"] == {}
    text = page.read_text()
    assert "| `relu` | 3 |" in text and text.startswith("before") and text.endswith("after\n")


def test_refusals_are_counted_by_kind() -> None:
    samples = Samples()
    samples.skipped += [
        Skipped("a", 0, "a launch depends on what blocks that were not sampled write: illegal address at line 4"),
        Skipped("b", 2, "a launch depends on what blocks that were not sampled write: illegal address at line 9"),
        Skipped("c", 1, "the work of the blocks of `k` differs too much to be sampled (relative spread 3.1)"),
    ]
    assert list(samples.refusals().values()) == [2, 1]
