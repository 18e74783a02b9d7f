"""Level gpu over a double of CUDA: verdicts, the quarantine, a GPU that is lost, and runners that are used once."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from gpu_double import EASY, RIGHT, SETTINGS, SIGNATURE, SLOW, Double

from regraph_db.errors import EnvironmentFault, InternalFault
from regraph_db.records import Level, VerdictKind
from verify.compiler import Compiled
from verify.judge import Judge
from verify.measure import kind_of
from verify.session import CandidateFault
from verify.task import Task, load_task
from verify.warm import Warm

pytestmark = pytest.mark.nvcc
TASKS = Path(__file__).parent / "tasks"


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Double:
    try:
        return Double(tmp_path_factory.mktemp("double"))
    except EnvironmentFault as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def task() -> Task:
    """The task with a timed size that a CPU goes through in no time."""
    affine = load_task(TASKS / "affine")
    return dataclasses.replace(affine, sizes=affine.sizes.model_copy(update={"timed": ({"n": 3000},)}))


def test_a_right_kernel_passes_with_samples_and_a_speedup(double: Double, task: Task) -> None:
    verdict = double.judge(task, RIGHT)
    assert verdict.passed and verdict.level is Level.GPU, verdict.reason
    assert verdict.evidence.samples >= 3 and verdict.speedup is not None and verdict.reason == ""
    assert verdict.evidence.sizes[-1] == {"n": 3000}


#: name: (candidate, verdict, words)
FAULTS = {
    "wrong": (f"{SIGNATURE} {{ launch_right(x, out, n); if (n) out[n - 1] = 7; }}", "wrong_result", "out"),
    "untouched": ("static void nothing(void**) {}\n" + SIGNATURE + " { LAUNCH(nothing, 0); }", "wrong_result", "out"),
    "overwrites": (f"{SIGNATURE} {{ launch_right(x, out, n); ((float*)x)[0] = 9; }}", "reward_hack", "overwritten"),
    "out of bounds": (f"{SIGNATURE} {{ launch_right(x, out, n); out[n] = 1; }}", "runtime_error", "out of bounds"),
    "no launch": (f"{SIGNATURE} {{ for (int i = 0; i < n; ++i) out[i] = 3 * x[i] + 1; }}", "reward_hack", "no kernel"),
    "ends": (f"{SIGNATURE} {{ _exit(0); }}", "reward_hack", "exit code 0"),
    "every descriptor": (
        SIGNATURE + ' { for (int d = 3; d < 1024; ++d) (void)!write(d, "0 ran\\n", 6); launch_right(x, out, n); }',
        "reward_hack",
        "result channel",
    ),
    "illegal address": (
        f"#include <cuda.h>\n{SIGNATURE} {{ launch_right(x, out, n); double_break(CUDA_ERROR_ILLEGAL_ADDRESS); }}",
        "runtime_error",
        "ILLEGAL_ADDRESS",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_candidate_gets_its_verdict_and_the_next_one_passes(double: Double, task: Task, name: str) -> None:
    text, kind, words = FAULTS[name]
    verdict = double.judge(task, text)
    assert (verdict.verdict, words in verdict.reason) == (kind, True), verdict.reason
    assert verdict.speedup is None
    assert double.judge(task, RIGHT).passed


@pytest.mark.parametrize("call", [1, 7, 16])
def test_a_lost_gpu_is_our_fault_and_never_a_verdict_of_the_candidate(double: Double, task: Task, call: int) -> None:
    """In the checks, and in the timing: the driver answers with an error that no kernel causes."""
    lost = f"""#include <cstdio>
    {SIGNATURE} {{
        launch_right(x, out, n);
        FILE* calls = fopen("calls", "a");
        fputc('x', calls), fflush(calls);
        if (ftell(calls) == {call}) double_break(CUDA_ERROR_ECC_UNCORRECTABLE);
        fclose(calls);
    }}"""
    with pytest.raises(InternalFault, match="GPU was lost"):
        double.judge(task, "#include <cuda.h>\n" + lost)


def test_a_runner_that_is_killed_is_no_verdict_in_favour(double: Double, task: Task) -> None:
    verdict = double.judge(task, "#include <signal.h>\n" + SIGNATURE + " { raise(SIGKILL); }")
    assert verdict.verdict is VerdictKind.RUNTIME_ERROR and "SIGKILL" in verdict.reason


def test_host_pointers_are_judged_too(double: Double, task: Task) -> None:
    copies = f"""{SIGNATURE} {{
        float *dx, *dout;
        cudaMalloc((void**)&dx, 4 * n + 4), cudaMalloc((void**)&dout, 4 * n + 4);
        cudaMemcpy(dx, x, 4 * n, cudaMemcpyHostToDevice);
        launch_right(dx, dout, n);
        cudaMemcpy(out, dout, 4 * n, cudaMemcpyDeviceToHost);
        cudaFree(dx), cudaFree(dout);
    }}"""
    host = dataclasses.replace(task, abi="host")
    assert double.judge(host, copies).passed
    forgets = copies.replace("cudaMemcpy(out, dout, 4 * n,", "cudaMemcpy(out, dout, 4 * (n - 1),")
    assert double.judge(host, forgets).verdict is VerdictKind.WRONG_RESULT


# The quarantine: on a device that is said to be slow, every time is beyond belief.
def test_beyond_the_bound_a_right_kernel_is_believed_after_the_sanitizer_agrees(double: Double, task: Task) -> None:
    verdict = double.judge(task, RIGHT, double.bench(SLOW, "ERROR SUMMARY: 0 errors"))
    assert verdict.passed and "verified again" in verdict.reason
    assert verdict.bound_share is not None and verdict.bound_share > 1


def test_beyond_the_bound_nothing_is_believed_that_the_sanitizer_refuses(double: Double, task: Task) -> None:
    verdict = double.judge(task, RIGHT, double.bench(SLOW, "ERROR SUMMARY: 3 errors"))
    assert verdict.verdict is VerdictKind.REWARD_HACK and "3 errors" in verdict.reason and verdict.speedup is None


def test_beyond_the_bound_new_inputs_find_out_what_only_knew_the_old_ones(double: Double, task: Task) -> None:
    """Right in every call of the judgement, wrong in the fresh process: it knows that it is watched."""
    two_faced = f"""{SIGNATURE} {{
        launch_right(x, out, n);
        if (!access("sanitizer.log", F_OK) || !access("watched", F_OK)) out[0] += 1;
    }}"""
    bench = double.bench(SLOW, "ERROR SUMMARY: 0 errors")
    tool = bench.compiler.toolkit.root / "bin" / "compute-sanitizer"
    tool.write_text(tool.read_text().replace('"$@"\n', 'touch watched\n"$@"\n'))
    verdict = double.judge(task, two_faced, bench)
    assert verdict.verdict is VerdictKind.REWARD_HACK and "wrong under compute-sanitizer" in verdict.reason


@pytest.mark.parametrize("summary", [None, "no summary at all"])
def test_beyond_the_bound_without_a_sanitizer_there_is_no_verdict(
    double: Double, task: Task, summary: str | None
) -> None:
    bench = double.bench(SLOW, summary)
    if summary is not None:
        tool = bench.compiler.toolkit.root / "bin" / "compute-sanitizer"
        tool.write_text(tool.read_text().replace("exit 66", "exit 1"))
    with pytest.raises(InternalFault, match="compute-sanitizer"):
        double.judge(task, RIGHT, bench)


def test_beyond_the_bound_a_sanitizer_that_ends_is_not_the_kernels_fault(double: Double, task: Task) -> None:
    bench = double.bench(SLOW, "ERROR SUMMARY: 0 errors")
    tool = bench.compiler.toolkit.root / "bin" / "compute-sanitizer"
    tool.write_text(f"{tool.read_text().split('while')[0]}echo '========= Internal error' > sanitizer.log; exit 255\n")
    with pytest.raises(InternalFault, match=r"could not run it.*Internal error"):
        double.judge(task, RIGHT, bench)


def test_a_batch_goes_through_the_judge(
    double: Double, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More candidates than cores, of every kind, at once; two of them equal. Nothing of them is left."""
    texts = {f"static int k{n};\n{RIGHT}": VerdictKind.PASSED for n in range(3)}
    texts |= {f"static int k{n};\n{FAULTS['wrong'][0]}": VerdictKind.WRONG_RESULT for n in range(3)}
    texts |= {f"broken {n}": VerdictKind.COMPILE_ERROR for n in range(3)}
    texts[FAULTS["ends"][0]] = VerdictKind.REWARD_HACK
    bench = double.bench()

    def compiled(_: Task, source: str) -> Compiled:
        broken = source.startswith("broken")
        return Compiled(None, VerdictKind.COMPILE_ERROR, "broken") if broken else double.candidate(source)

    with Judge(SETTINGS.model_copy(update={"jobs": 2}), cache_folder=tmp_path) as judge:
        monkeypatch.setattr(judge, "_gpu", double.gpu)
        monkeypatch.setattr(judge, "_known_bench", bench)
        monkeypatch.setattr(judge.compiler, "compile", compiled)
        futures = {text: judge.submit(task, text, Level.GPU) for text in (*texts, *texts)}
        verdicts = {text: future.result(timeout=120).verdict for text, future in futures.items()}
    assert verdicts == texts
    assert not bench.warm._idle


# Runners that start ahead
@pytest.fixture
def taken(double: Double, task: Task) -> Iterator[list[Warm]]:
    bench, warm = double.bench(EASY), []
    kind = kind_of(task, SETTINGS)
    with bench.warm.expecting(kind, 3) as ticket:
        warm += [ticket.take() for _ in range(3)]
        yield warm
    for each in warm:
        each.close()
    bench.warm.close()


def test_a_runner_serves_one_candidate_only(taken: list[Warm]) -> None:
    assert len({each.folder for each in taken}) == 3
    assert all(each.usable and each.sizes["total"] for each in taken)


def test_a_runner_that_died_while_it_waited_is_replaced(double: Double, task: Task) -> None:
    bench = double.bench(EASY)
    kind = kind_of(task, SETTINGS)
    with bench.warm.expecting(kind) as ticket:
        idle = bench.warm._idle[0][1].result()
        idle.session._cancel.set()
        idle.session._thread.join()
        with ticket.take() as warm:
            assert warm is not idle and warm.usable
            warm.session.quit()
    bench.warm.close()
    assert not idle.folder.exists() and not warm.folder.exists()


def test_what_was_started_for_candidates_that_did_not_compile_is_ended(double: Double, task: Task) -> None:
    bench = double.bench(EASY)
    kind = kind_of(task, SETTINGS)
    with bench.warm.expecting(kind, 2):
        started = [future.result() for _, future in bench.warm._idle]
    assert len(started) == 2
    bench.warm.close()
    assert not any(each.folder.exists() or each.session.alive for each in started)


def test_candidates_of_different_tasks_start_a_runner_each(double: Double, task: Task) -> None:
    """What is started for one kind must not drive out what the others wait for."""
    bench = double.bench(EASY)
    begin, started = bench.warm._start, []
    bench.warm._start = lambda folder, limits: (started.append(limits), begin(folder, limits))[1]
    first = kind_of(task, SETTINGS)
    limits = [dataclasses.replace(first.limits, seconds=first.limits.seconds + extra) for extra in range(4)]
    with ExitStack() as stack:
        tickets = [
            stack.enter_context(bench.warm.expecting(dataclasses.replace(first, limits=each))) for each in limits
        ]
        for ticket in reversed(tickets):
            stack.enter_context(ticket.take()).session.quit()
    bench.warm.close()
    assert Counter(started) == Counter(limits)


def test_a_runner_that_cannot_start_is_our_fault(double: Double, task: Task) -> None:
    broken = dataclasses.replace(double.runner, runtime=double.parts / "absent.so")
    bench = dataclasses.replace(double.bench(EASY), runner=broken)
    bench.warm._start = lambda folder, limits: broken.session(double.gpu, folder, limits)
    with bench.warm.expecting(kind_of(task, SETTINGS)) as ticket, pytest.raises(InternalFault, match="no CUDA runtime"):
        ticket.take()
    bench.warm.close()


def test_a_judge_that_goes_away_takes_its_runners_with_it(double: Double, task: Task) -> None:
    """The runner sees the end of its command channel, and ends by itself."""
    bench = double.bench(EASY)
    with bench.warm.expecting(kind_of(task, SETTINGS)) as ticket, ticket.take() as warm:
        os.dup2(os.open(os.devnull, os.O_WRONLY), warm.session._control)
        warm.session._thread.join(20)
        assert not warm.session.alive
        with pytest.raises((InternalFault, CandidateFault)):
            warm.session.quit()
    bench.warm.close()
