"""``regraph task new``: from a C++ function to a sound task, or to an error that says how."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from regraph_db.cli import regraph
from regraph_db.errors import InputError
from verify.cpp_function import read_function
from verify.task import load_task

SOURCE = """#include <cmath>

void axpy(float a, const float* x, float* y, int n) {
    for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

void product(const double* a, const double* b, double* c, int m, int n, int k) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
            c[i * n + j] = sum;
        }
}

void blur(const float* in, float* out, int rows, int columns) {
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c) {
            const int at = r * columns + c;
            const int left = c > 0 ? at - 1 : at;
            out[at] = 0.5f * (in[at] + in[left]);
        }
}

void gather(const float* table, const int* index, float* out, int n) {
    for (int i = 0; i < n; i++) out[i] = table[index[i]];
}

void total(const int* x, long long* result, int n) {
    result[0] = 0;
    for (int i = 0; i < n; ++i) result[0] += x[i];
}

void buckets(const unsigned* keys, unsigned* counts, int n, int bits) {
    for (int b = 0; b < (1 << bits); ++b) counts[b] = 0;
    for (int i = 0; i < n; ++i) ++counts[keys[i] & ((1u << bits) - 1)];
}
"""


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGRAPH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "mine.cpp"
    path.write_text(SOURCE)
    return path


def new(function: str, *words: str, file: str = "mine.cpp") -> Result:
    return CliRunner().invoke(regraph, ["task", "new", file, "--function", function, *words])


def shapes(name: str) -> dict[str, str]:
    return {
        p.name: f"{p.kind} {p.shape[0]}" if p.is_array else p.kind for p in load_task(Path("tasks") / name).parameters
    }


def test_a_vector_function_becomes_a_sound_task() -> None:
    result = new("axpy", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    document: dict[str, Any] = json.loads(result.stdout)
    assert document["sound"] is True and document["decide"]
    assert shapes("axpy") == {"a": "scalar", "x": "input n", "y": "inout n", "n": "size"}
    assert 'extern "C" void axpy' in Path("tasks/axpy/reference.cpp").read_text()


def test_a_size_that_is_an_exponent_stays_small() -> None:
    result = new("buckets", "--shape", "counts=2**bits")
    assert result.exit_code == 0, (result.output, result.exception)
    sizes = load_task(Path("tasks/buckets")).sizes
    assert all(given["bits"] <= 12 for given in (*sizes.check, *sizes.hidden, *sizes.timed))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("product", {"a": "input m*k", "b": "input n*k", "c": "output m*n", "m": "size", "n": "size", "k": "size"}),
        ("total", {"x": "input n", "result": "output 1", "n": "size"}),
    ],
)
def test_lengths_are_told_from_the_loops(function: str, expected: dict[str, str]) -> None:
    result = new(function, "--no-check")
    assert result.exit_code == 0, (result.output, result.exception)
    assert shapes(function) == expected


def test_a_length_that_cannot_be_told_is_asked_for_with_the_option_that_gives_it() -> None:
    result = new("gather")
    assert isinstance(result.exception, InputError)
    assert "`table`" in str(result.exception) and "--shape table=n" in str(result.exception)
    assert not Path("tasks/gather").exists()


def test_a_length_that_is_given_stands_in_the_manifest_and_bounds_the_indices() -> None:
    result = new("gather", "--shape", "table=2*n", "--no-check")
    assert result.exit_code == 0, (result.output, result.exception)
    assert shapes("gather") == {"table": "input 2*n", "index": "input n", "out": "output n", "n": "size"}
    assert 'high = "2*n"' in Path("tasks/gather/task.toml").read_text()


def test_a_conditional_index_is_asked_for() -> None:
    result = new("blur", "--no-check")
    assert isinstance(result.exception, InputError) and "--shape in=rows*columns" in str(result.exception)
    assert new("blur", "--no-check", "--shape", "in=rows*columns").exit_code == 0
    assert shapes("blur")["out"] == "output rows*columns"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("int f(int n) { return n; }", "returns a value"),
        ("void g() {}", "no function `f` is defined. It defines g"),
        ("static void f(float* x, int n) {}", "is static"),
        ("template <class T> void f(T* x, int n) {}", "is a template"),
        ("#include <vector>\nvoid f(std::vector<float>& x) {}", "neither a scalar nor a pointer"),
        ("struct S { int a; };\nvoid f(S* x, int n) {}", "a type that a task cannot pass"),
        ("void f(float** x, int n) {}", "neither a scalar nor a pointer"),
        ("void f(float* x, int n) {}\nint main() {}", "defines `main`"),
        ("void f(float* x, int n) {}\nvoid f(double* x, int n) {}", "defined 2 times"),
        ("void f(const float* x, int n) { for (int i = 0; i < n; ++i) x[i]; }", "writes through no pointer"),
    ],
)
def test_what_cannot_be_a_task_is_named_with_the_way_out(text: str, words: str) -> None:
    Path("bad.cpp").write_text(text)
    result = new("f", "--no-check", file="bad.cpp")
    assert isinstance(result.exception, InputError) and words in str(result.exception), result.output
    assert result.exception.fix and not Path("tasks").exists()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("--shape", "x", "NAME=VALUE"), ("--shape", "q=n", "no parameter"), ("--kind", "q=input", "no parameter")],
)
def test_options_that_name_nothing_are_refused(option: str, value: str, words: str) -> None:
    result = new("axpy", option, value)
    assert isinstance(result.exception, InputError) and words in str(result.exception)


def test_a_folder_that_is_there_is_left_alone() -> None:
    Path("tasks/axpy").mkdir(parents=True)
    result = new("axpy")
    assert isinstance(result.exception, InputError) and list(Path("tasks/axpy").iterdir()) == []


def test_a_function_with_c_linkage_keeps_its_text(source: Path) -> None:
    linked = 'extern "C" void f(float* x, int n) { for (int i = 0; i < n; ++i) x[i] = 1; }\n'
    source.write_text(linked)
    assert new("f", "--no-check").exit_code == 0
    assert Path("tasks/f/reference.cpp").read_text() == linked


def test_what_a_function_reads_before_it_writes_is_seen() -> None:
    function = read_function(SOURCE, "axpy", "mine.cpp")
    assert function.written_first == set() and function.depth == 1
    assert read_function(SOURCE, "product", "mine.cpp").written_first == {"c"}
    assert read_function(SOURCE, "gather", "mine.cpp").index_arrays == {"index": "table"}
