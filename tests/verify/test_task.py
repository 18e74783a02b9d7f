"""Task files: what is read, and that whatever is wrong is named with file, line and field."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regraph_db.errors import InputError, NotFound
from verify.expressions import Expression, ExpressionError
from verify.inputs import VARIANTS, make_call
from verify.task import load_task

TASKS = Path(__file__).parent / "tasks"


@pytest.fixture
def saxpy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TASKS / "saxpy", tmp_path / "saxpy"))


def edit(folder: Path, old: str, new: str) -> None:
    file = folder / "task.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_a_task_is_read_whole(saxpy: Path) -> None:
    task = load_task(saxpy)
    assert task.signature == 'extern "C" void saxpy(float a, const float* x, float* y, int n)'
    assert [p.name for p in task.arrays] == ["x", "y"]
    assert task.bytes_at({"n": 10}) == 120 and task.flops_at({"n": 10}) == 20


def test_the_hash_changes_with_the_reference_and_not_with_the_place(saxpy: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(saxpy, tmp_path / "other" / "saxpy")
    assert load_task(moved).hash == load_task(saxpy).hash
    (saxpy / "reference.cpp").write_text((saxpy / "reference.cpp").read_text() + "// changed\n")
    assert load_task(moved).hash != load_task(saxpy).hash


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('tier = "easy"', 'tier = "trivial"', "field `tier`"),
        ('shape = ["n"]', 'shape = ["n * m"]', "no size is called `m`"),
        ('shape = ["n"]', 'shape = ["n ** 40"]', "overflows"),
        ('shape = ["n"]', 'shape = ["n * 2 ** 40"]', "more than"),
        ('shape = ["n"]', 'shape = ["__import__(1)"]', "not arithmetic"),
        ('kind = "inout"', 'kind = "inputt"', "field `parameters[2].kind`"),
        ('dtype = "int32"', 'dtype = "int8"', "does not fit int8"),
        ('dtype = "float32"', 'dtype = "float8"', "float16, bfloat16"),
        ("{relative = 1e-5", "{relative = -1", "tolerance"),
        ('name = "saxpy"', 'name = "other"', "folder's name"),
        ("{n = 31}", '{n = "31"}', "sizes.check"),
        ('name = "n"', 'name = "m"', "no size is called `m`"),
        ('title = "y = a*x + y"', 'titel = "y"', "titel"),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_field(saxpy: Path, old: str, new: str, words: str) -> None:
    edit(saxpy, old, new)
    lines = (saxpy / "task.toml").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if new in text)
    with pytest.raises(InputError) as caught:
        load_task(saxpy)
    assert words in str(caught.value)
    assert caught.value.where.startswith(str(saxpy / "task.toml"))
    stated = caught.value.where.partition("task.toml:")[2].partition(",")[0]
    assert stated == str(line)


def test_files_that_are_no_task_are_named(tmp_path: Path, saxpy: Path) -> None:
    with pytest.raises(NotFound):
        load_task(tmp_path)
    with pytest.raises(NotFound, match="Did you mean `saxpy`"):
        load_task("saxpi")
    (saxpy / "task.toml").write_bytes(b"schema = 1\nname = '\xff'\n")
    with pytest.raises(InputError, match=r"task\.toml:2.*not UTF-8"):
        load_task(saxpy)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.integers(0, 900), st.integers(0, 60))
def test_garbage_in_a_manifest_is_an_input_error_or_a_task(garbage: bytes, at: int, removed: int) -> None:
    """Cutting bytes out of a manifest and putting others in never raises anything else."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(shutil.copytree(TASKS / "saxpy", Path(name) / "saxpy"))
        raw = (folder / "task.toml").read_bytes()
        (folder / "task.toml").write_bytes(raw[:at] + garbage + raw[at + removed :])
        try:
            task = load_task(folder)
        except InputError as error:
            assert str(error)
        else:
            assert task.name == "saxpy"


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="n0123456789+-*/%()., minaxcelog2_[]'\"", max_size=60))
def test_an_expression_has_a_number_or_an_error(text: str) -> None:
    try:
        value = Expression.parse(text).value({"n": 7})
    except ExpressionError:
        return
    assert np.isfinite(value)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 300), st.integers(0, 2**31), st.sampled_from(VARIANTS))
def test_inputs_are_a_pure_function_and_stay_within_bounds(n: int, seed: int, variant: str) -> None:
    task = load_task(TASKS / "histogram")
    first = make_call(task, {"n": n}, seed, variant)
    second = make_call(task, {"n": n}, seed, variant, poison_seed=9)
    keys, again = first.arguments[0], second.arguments[0]
    assert isinstance(keys, np.ndarray) and isinstance(again, np.ndarray)
    assert np.array_equal(keys, again)
    assert keys.size == n and (n == 0 or (keys.min() >= 0 and keys.max() < 64))
    poison, other = first.arguments[1], second.arguments[1]
    assert isinstance(poison, np.ndarray) and isinstance(other, np.ndarray)
    assert not np.array_equal(poison, other)


def test_float_poison_is_never_nearly_zero() -> None:
    task = load_task(TASKS / "affine")
    poison = make_call(task, {"n": 5000}, 3).arguments[1]
    assert isinstance(poison, np.ndarray)
    assert np.isnan(poison).any() and (np.isnan(poison) | (np.abs(poison) > 1e29)).all()
