"""The judge at level ``compile`` and its faults: errors with the candidate's own lines, one judgement for equal
work, no false reward."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from regraph_db.cli import regraph
from regraph_db.errors import EnvironmentFault, InputError
from regraph_db.records import Level, Verdict, VerdictKind
from verify import cache, compiler, inputs, sandbox
from verify.cache import Cache
from verify.judge import Judge
from verify.settings import VerifySettings
from verify.task import load_task
from verify.toolchain import find_toolkit

pytestmark = pytest.mark.nvcc
TASKS = Path(__file__).parent / "tasks"
KERNEL = """__global__ void affine_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i] + 1.0f;
}
"""
FUNCTION = (
    'extern "C" void affine(const float* x, float* out, int n) '
    "{ affine_kernel<<<(n + 255) / 256, 256>>>(x, out, n); }\n"
)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(VerifySettings(compile_seconds=120), cache_folder=tmp_path_factory.mktemp("cache")) as one:
        yield one


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (KERNEL, "it does not define `affine`"),
        (KERNEL + FUNCTION.replace('extern "C" ', ""), "line 5: `affine` is not declared extern"),
        (KERNEL + FUNCTION.replace(", int n", ""), "line 5: `affine` takes 2 parameters, not 3"),
        (KERNEL + FUNCTION.replace("int n", "double n"), "the signature is not: extern"),
        (KERNEL + "\n\nint broken = missing;\n" + FUNCTION, 'line 7: identifier "missing" is undefined'),
        ("\ud800" + KERNEL, "not valid Unicode"),
        ("// x\n" * 3_000_000, "more than"),
        (KERNEL + "a\0b" + FUNCTION, "line 5: a NUL byte"),
        ("   \n", "empty"),
        ("void later();\n" + KERNEL + FUNCTION.replace("{ ", "{ later(); "), "undefined: later()"),
    ],
)
def test_a_compile_error_says_where_and_what(judge: Judge, source: str, words: str) -> None:
    verdict = judge.judge(load_task(TASKS / "affine"), source, Level.COMPILE)
    assert verdict.verdict is VerdictKind.COMPILE_ERROR
    assert words in verdict.reason, verdict.reason
    assert len(verdict.log) <= 4000 and "/tmp/regraph" not in verdict.log  # private folders are not shown


def test_equal_parameter_types_in_other_words_are_the_same_signature(judge: Judge) -> None:
    other = (
        FUNCTION.replace("const float* x", "const float* __restrict__ in")
        .replace("int n)", "const int32_t n)")
        .replace("(x, out", "(in, out")
    )
    verdict = judge.judge(
        load_task(TASKS / "affine"), "#include <cstdint>\n#define A 1\n" + KERNEL + other, Level.COMPILE
    )
    assert verdict.passed, verdict.reason + verdict.log


def test_without_a_task_any_translation_unit_compiles(judge: Judge) -> None:
    assert judge.judge(None, KERNEL).passed
    assert judge.judge(None, KERNEL).level is Level.COMPILE


def test_a_verdict_is_remembered_but_never_a_harness_error(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task(TASKS / "affine")
    source = KERNEL + FUNCTION + "// remembered\nstatic const int remembered = 1;\n"

    def killed(*_: object, **__: object) -> sandbox.Finished:
        return sandbox.Finished(None, b"", b"", False, 0.1, "SIGKILL")

    with monkeypatch.context() as patched:
        patched.setattr(compiler.sandbox, "run", killed)
        fault = judge.judge(task, source, Level.COMPILE)
    assert fault.verdict is VerdictKind.HARNESS_ERROR and "SIGKILL" in fault.reason
    first = judge.judge(task, source, Level.COMPILE)
    assert first.passed
    with monkeypatch.context() as patched:
        patched.setattr(compiler.sandbox, "run", killed)
        assert judge.judge(task, source, Level.COMPILE) == first


def test_a_full_disk_is_our_fault(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache.shutil, "copyfileobj", full)
    source = KERNEL + FUNCTION + "static const int full = 1;\n"
    verdict = judge.judge(load_task(TASKS / "affine"), source, Level.COMPILE)
    assert verdict.verdict is VerdictKind.HARNESS_ERROR and "No space left" in verdict.reason


def test_equal_candidates_at_once_are_judged_once(judge: Judge) -> None:
    task = load_task(TASKS / "affine")
    source = KERNEL + FUNCTION + "static const int twins = 1;\n"
    futures = [judge.submit(task, source, Level.COMPILE) for _ in range(6)]
    assert all(future is futures[0] for future in futures[1:]) or all(future.result().passed for future in futures)


def test_a_verdict_that_is_known_at_once_does_not_stop_the_judge(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task(TASKS / "affine")
    known = judge.judge(task, KERNEL + FUNCTION, Level.COMPILE)
    done: Future[Verdict] = Future()
    done.set_result(known)
    monkeypatch.setattr(judge._pool, "submit", lambda *_: done)
    assert judge.submit(task, KERNEL + FUNCTION, Level.COMPILE).result(timeout=5) == known
    assert judge.submit(task, KERNEL + FUNCTION, Level.COMPILE).result(timeout=5) == known


def test_a_missing_nvcc_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="pip install"):
        find_toolkit(VerifySettings(nvcc=tmp_path / "nvcc"))
    with pytest.raises(EnvironmentFault, match="g\\+\\+"):
        find_toolkit(VerifySettings(host_compiler="no-such-compiler"))


def test_a_cache_evicts_the_longest_unused(tmp_path: Path) -> None:
    held = Cache(tmp_path, cap=250)
    for number, key in enumerate(("aa1", "bb2", "cc3")):
        os.utime(held.put(key, b"x" * 100), (1000 + number, 1000 + number))
    assert held.get("aa1") is not None  # used just now
    assert held.sweep() == 100
    assert held.read("bb2") is None and held.read("aa1") == b"x" * 100 and held.read("cc3") is not None


def test_a_file_that_another_process_stored_meanwhile_stays_the_very_same(tmp_path: Path) -> None:
    held = Cache(tmp_path / "cache", cap=1 << 20)
    product = tmp_path / "product"
    product.write_bytes(b"made twice")
    inode = held.put("aa1", product).stat().st_ino
    assert held.put("aa1", product).stat().st_ino == inode, "a sandbox may hold it open by this inode"
    assert held.put("aa1", b"judged again").read_bytes() == b"judged again"


def test_what_many_want_at_once_is_made_once(tmp_path: Path) -> None:
    held, made = Cache(tmp_path, cap=1 << 20), []

    def want(number: int) -> bytes | None:
        with held.making("aa1"):
            if held.get("aa1") is None:
                made.append(number)
                held.put("aa1", b"%d" % number)
        return held.read("aa1")

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(want, range(32)))
    assert len(made) == 1 and found == {b"%d" % made[0]}
    assert held.sweep() == 0 and (tmp_path / "aa" / ".lock").exists(), "locks are no entries"


def test_a_task_that_does_not_fit_in_memory_is_refused_with_its_line_and_field(monkeypatch: pytest.MonkeyPatch) -> None:
    task = load_task(TASKS / "affine")
    line = (task.folder / "task.toml").read_text().splitlines().index("timed  = [{n = 4194304}]") + 1
    monkeypatch.setattr(inputs, "available_memory", lambda: 90 << 20)
    with pytest.raises(InputError, match=rf"task\.toml:{line}, field `sizes\.timed\[0\]`: 96 MiB are needed"):
        inputs.make_call(task, {"n": 4194304}, 0)
    with pytest.raises(InputError, match=r"task\.toml, field `sizes`"):
        inputs.make_call(task, {"n": 4194305}, 0)


def test_the_command_line_ends_with_the_right_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGRAPH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "right.cu").write_text(KERNEL + FUNCTION)
    (tmp_path / "wrong.cu").write_text(KERNEL)
    runner = CliRunner()
    task = str(TASKS / "affine")
    right = runner.invoke(regraph, ["verify", task, str(tmp_path / "right.cu"), "--level", "compile", "--json"])
    assert right.exit_code == 0, right.output
    document = json.loads(right.stdout)
    keys = {"task", "verdict", "reason", "level", "log", "speedup", "candidate_seconds", "baseline_seconds", "evidence"}
    assert keys <= document.keys()
    assert {"gpu", "driver", "nvcc", "flags", "sizes", "samples"} <= document["evidence"].keys()
    assert (document["verdict"], document["speedup"]) == ("passed", None)
    wrong = runner.invoke(regraph, ["verify", task, str(tmp_path / "wrong.cu"), "--level", "compile"])
    assert wrong.exit_code == 1 and "compile_error" in wrong.output
    assert "nvcc refuses it, or its signature is not the task's" in wrong.output


def test_the_compilers_words_are_the_candidates_own(judge: Judge) -> None:
    """nvcc shows preprocessed lines: `__global__` stands there as it was written, and the caret under the fault."""
    source = KERNEL.replace("3.0f * x[i]", "missing * x[i]") + FUNCTION
    line = "__global__ void one_line(float* y) { y[0] = missing; }"
    log = judge.judge(load_task(TASKS / "affine"), line + "\n" + source, Level.COMPILE).log
    shown, caret = (text[2:] for text in log.splitlines()[1:3])
    assert shown.endswith(line) and shown[caret.index("^") :].startswith("missing;")


def test_every_verdict_has_a_meaning() -> None:
    from verify.command import _MEANING, _PASSED

    assert set(_MEANING) == {kind.value for kind in VerdictKind} - {"passed"}
    assert set(_PASSED) == {level.value for level in Level} - {"none"}
