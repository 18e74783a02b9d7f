"""`regraph task check`: sound tasks are sound, and every way to be unsound is found by trying."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from regraph_db.cli import regraph
from regraph_db.errors import InputError
from verify.reference import References
from verify.settings import VerifySettings
from verify.soundness import Soundness, check_task
from verify.task import load_task

TASKS = Path(__file__).parent / "tasks"
SETTINGS = VerifySettings()


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> References:
    return References(SETTINGS, tmp_path_factory.mktemp("cache"))


def check(references: References, folder: Path) -> Soundness:
    return check_task(load_task(folder), references, SETTINGS)


@pytest.mark.parametrize("name", sorted(path.name for path in TASKS.iterdir()))
def test_the_tests_own_tasks_are_sound(references: References, name: str) -> None:
    assert check(references, TASKS / name).problems == ()


@pytest.mark.parametrize(
    ("task", "old", "new", "words"),
    [
        ("affine", "i < n", "i < n - 1", "not written whole"),
        ("affine", "3.0f * x[i] + 1.0f", "4.0f", "constant"),
        ("saxpy", "a * x[i] + y[i]", "x[i] + y[i]", "`a` does not matter"),
        ("saxpy", "a * x[i] + y[i]", "y[i]", "writing nothing passes"),
        ("affine", "x[i]", "x[i + 1]", "under sanitizers"),
        ("total", "out[0] = (float)sum", "out[0] = (float)(sum - 0.5 * n) * 1e-4f", "tolerance"),
        ("histogram", "++counts[keys[i]]", "counts[keys[i]] += i * i * i * i", "under sanitizers"),
    ],
)
def test_an_unsound_reference_is_found(
    references: References, tmp_path: Path, task: str, old: str, new: str, words: str
) -> None:
    folder = Path(shutil.copytree(TASKS / task, tmp_path / task))
    text = (folder / "reference.cpp").read_text()
    assert old in text
    (folder / "reference.cpp").write_text(text.replace(old, new))
    result = check(references, folder)
    assert not result.sound
    assert any(words in problem for problem in result.problems), result.problems


@pytest.mark.parametrize(
    ("tolerance", "words"),
    [
        ("{relative = 1e-9, absolute = 1e-12}", "refuses a float32 reordering"),
        ("{relative = 0.5, absolute = 1}", "accepts its largest"),
    ],
)
def test_a_tolerance_is_neither_too_narrow_nor_too_wide(
    references: References, tmp_path: Path, tolerance: str, words: str
) -> None:
    folder = Path(shutil.copytree(TASKS / "total", tmp_path / "total"))
    text = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(text.replace("{relative = 1e-4, absolute = 1e-5}", tolerance))
    assert any(words in problem for problem in check(references, folder).problems)


def test_a_reference_with_another_signature_is_refused_with_its_own(references: References, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(TASKS / "affine", tmp_path / "affine"))
    file = folder / "reference.cpp"
    file.write_text(file.read_text().replace("int n", "long n"))
    with pytest.raises(InputError, match='extern "C" void affine'):
        check(references, folder)


def test_the_command_prints_problems_and_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGRAPH_CACHE", str(tmp_path / "cache"))
    folder = Path(shutil.copytree(TASKS / "affine", tmp_path / "affine"))
    good = CliRunner().invoke(regraph, ["task", "check", str(folder), "--json"])
    assert good.exit_code == 0 and json.loads(good.stdout)[0]["sound"] is True
    file = folder / "reference.cpp"
    file.write_text(file.read_text().replace("x[i]", "0.0f"))
    bad = CliRunner().invoke(regraph, ["task", "check", str(folder)])
    assert bad.exit_code == 1 and "`x` does not matter" in bad.output
