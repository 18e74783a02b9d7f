"""The mutation tool itself: what it breaks, what it leaves alone, how it counts."""

from __future__ import annotations

import dataclasses
import itertools
import json
from concurrent.futures import Future
from pathlib import Path

import pytest
from click.testing import CliRunner

from cudaeval import caught
from cudaeval.mutate import OPERATORS, Harmless, Report, check, chosen, mutants
from regraph_db.cli import regraph
from regraph_db.errors import InputError
from regraph_db.records import Level, Verdict, VerdictKind
from verify import load_task
from verify.task import Task

CODE = """\
__global__ void kernel(const float* x, float* y, int n) {
    __shared__ float tile[256];
    // i < n is the edge
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    if (i < n) {
        sum += 2.5f * x[i];
    }
    __syncthreads();
    for (int offset = 16; offset > 0; offset >>= 1) {
        sum = fmaxf(sum, __shfl_down_sync(0xffffffffu, sum, offset));
    }
}
extern "C" void saxpy(const float* x, float* y, int n) {
    cudaMemsetAsync(y, 0, 4);
    kernel<<<(n + 255) / 256, 256>>>(x, y, n);
    if (n % 4 > 0) {
        kernel<<<1, (n % 4)>>>(x, y, n);
    }
}
"""


def test_each_operator_finds_its_place() -> None:
    found = {mutant.operator: mutant for mutant in mutants("saxpy", 1, CODE, ["n"])}
    assert set(found) == {operator.name for operator in OPERATORS}
    assert "if (i < n - 1) {" in found["last element forgotten"].code
    assert "if (i <= n) {" in found["one element too many"].code
    assert "kernel<<<n / 256, 256>>>" in found["grid rounded down"].code
    assert "    ;\n" in found["barrier removed"].code
    assert "offset = 8;" in found["reduction too short"].code
    assert "(2.5f * 1.05f) * x[i]" in found["constant changed"].code


def test_a_mutant_differs_in_its_line_alone_and_comments_stay() -> None:
    for mutant in mutants("saxpy", 1, CODE, ["n"]):
        before, after = CODE.splitlines(), mutant.code.splitlines()
        changed = [number for number, (a, b) in enumerate(itertools.zip_longest(before, after), 1) if a != b]
        assert changed == [mutant.line]
        assert "// i < n is the edge" in mutant.code


def test_the_choice_is_seeded_and_spreads_over_operators() -> None:
    found = mutants("saxpy", 1, CODE, ["n"])
    order = list(chosen(found, 3))
    assert order == list(chosen(found, 3))
    assert sorted(m.code for m in order) == sorted(m.code for m in found)
    first = [mutant.operator for mutant in order[: len(OPERATORS)]]
    assert len(set(first)) == len(OPERATORS)


class Lenient:
    """Passes what still holds a barrier, refuses to compile what lost its memset, and catches the rest."""

    def submit(self, task: Task | None, source: str, level: Level | None = None) -> Future[Verdict]:
        kind = VerdictKind.WRONG_RESULT
        if "cudaMemsetAsync" not in source:
            kind = VerdictKind.COMPILE_ERROR
        elif "__syncthreads" not in source:
            kind = VerdictKind.PASSED
        future: Future[Verdict] = Future()
        future.set_result(Verdict(verdict=kind))
        return future


def lenient(count: int) -> Report:
    return check(load_task("saxpy"), [CODE], Lenient(), count=count)  # type: ignore[arg-type]


def test_survivors_are_named_and_what_does_not_compile_is_not_counted() -> None:
    total = len(mutants("saxpy", 1, CODE, ["n"]))
    found = lenient(1000)
    assert (found.uncounted, len(found.survivors)) == (1, 1)
    assert found.caught == total - 2
    assert found.survivors[0].operator == "barrier removed"
    assert "barrier removed" not in found.caught_by


def test_enough_mutants_are_counted_even_when_some_do_not_compile() -> None:
    found = lenient(8)
    assert found.caught + len(found.survivors) == 8


def test_a_result_is_kept_until_the_task_or_its_steps_change(tmp_path: Path) -> None:
    task, file = load_task("saxpy"), tmp_path / "mutants.json"
    assert caught.read(file).tasks == {}
    caught.keep("saxpy", caught.entry(task, [CODE], lenient(8), level=Level.FUNCTIONAL, seed=3), file)
    kept = caught.read(file).tasks["saxpy"]
    assert kept.answers(task, [CODE], 8, Level.FUNCTIONAL, 3)
    assert not kept.answers(task, [CODE + " "], 8, Level.FUNCTIONAL, 3)
    assert not kept.answers(dataclasses.replace(task, hash="other"), [CODE], 8, Level.FUNCTIONAL, 3)
    assert not kept.answers(task, [CODE], 9, Level.FUNCTIONAL, 3)
    assert not kept.answers(task, [CODE], 8, Level.FUNCTIONAL, 4)


def test_a_survivor_that_was_found_harmless_no_longer_counts(tmp_path: Path) -> None:
    entry = caught.entry(load_task("saxpy"), [CODE], lenient(1000), level=Level.FUNCTIONAL, seed=0)
    (survivor,) = entry.survivors
    assert caught.tally({"saxpy": entry}, []) == (sum(entry.caught.values()), 1)
    assert "| `saxpy` | 1 | 9 | barrier removed | `;` |" in caught.markdown({"saxpy": entry}, [])
    harmless = [Harmless("saxpy", 1, survivor.operator, survivor.line, survivor.code, "one warp")]
    assert caught.tally({"saxpy": entry}, harmless) == (sum(entry.caught.values()), 0)
    assert "Survivors" not in caught.markdown({"saxpy": entry}, harmless)


def test_a_broken_file_is_named_with_the_field(tmp_path: Path) -> None:
    file = tmp_path / "mutants.json"
    file.write_text('{"tasks": {"saxpy": {"workload": 1}}}', encoding="utf-8")
    with pytest.raises(InputError, match=r"mutants\.json, field `tasks\.saxpy"):
        caught.read(file)


@pytest.mark.nvcc
def test_what_is_kept_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def judged(*_: object, **__: object) -> None:
        raise AssertionError("a mutant was judged")

    monkeypatch.setattr("verify.Judge.submit", judged)
    done = CliRunner().invoke(regraph, ["eval", "mutate", "--keep", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["share"] >= 0.98
