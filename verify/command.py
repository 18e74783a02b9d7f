"""``regraph verify``: the judge at the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regraph_db.cli import json_option, print_json
from regraph_db.figures import figure

if TYPE_CHECKING:
    from regraph_db.records import Verdict


@click.command()
@click.argument("task")
@click.argument("candidate", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--level",
    type=click.Choice(["compile", "functional", "modelled", "gpu"]),
    help="How far to go.  [default: the best this machine has]",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Judge so many times anew, without the cache.",
)
@click.option("--gpu", type=click.IntRange(0), help="Which GPU.  [default: the setting verify.gpu]")
@click.option(
    "--baseline",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Another kernel to compare with.  [default: the sequential reference on one CPU core]",
)
@json_option
@click.pass_context
def verify(
    ctx: click.Context,
    task: str,
    candidate: Path,
    level: str | None,
    repeat: int,
    gpu: int | None,
    baseline: Path | None,
    as_json: bool,
) -> None:
    """Judge a CUDA kernel: does it compile, is it right, how fast is it. TASK is a name or a folder.

    Ends with 0 when it passed, 1 when it did not, 4 when the judge itself failed.

    \b
    Example:
      regraph task show saxpy
      regraph verify saxpy mine.cu
      regraph verify saxpy mine.cu --level gpu --baseline theirs.cu
    """
    from regraph_db.records import Level, VerdictKind
    from regraph_db.settings import section
    from verify.judge import Judge
    from verify.settings import VerifySettings
    from verify.task import load_task

    found = load_task(task)
    source = _read(candidate)
    other = _read(baseline) if baseline else None
    settings = section("verify", VerifySettings, {"gpu": gpu})
    verdicts = []
    with Judge(settings) as judge:
        for _ in range(repeat):
            verdicts.append(
                judge.judge(found, source, Level(level) if level else None, baseline=other, fresh=repeat > 1)
            )
    documents = [document(found.name, verdict) for verdict in verdicts]
    if as_json:
        print_json(documents[0] if repeat == 1 else documents)
    else:
        for verdict in verdicts:
            _show(found.name, verdict)
    if any(verdict.verdict is VerdictKind.HARNESS_ERROR for verdict in verdicts):
        ctx.exit(4)
    if not all(verdict.passed for verdict in verdicts):
        ctx.exit(1)


def _read(file: Path) -> str:
    from regraph_db.errors import InputError

    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise InputError("not UTF-8.", where=f"{file}:{line}", fix="Save the file as UTF-8.") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}.", where=str(file)) from None


def document(task: str, verdict: Verdict) -> dict[str, Any]:
    """A verdict as ``regraph verify --json`` prints it."""
    fields = verdict.model_dump(mode="json")
    return {"task": task, **fields}


#: What each verdict says, in a line; ``passed`` depends on the level.
_MEANING = {
    "compile_error": "nvcc refuses it, or its signature is not the task's",
    "launch_error": "a launch or a CUDA call returned an error",
    "runtime_error": "it crashed, left its bounds, raced, or its threads did not meet at a barrier",
    "timeout": "it was ended at its deadline",
    "wrong_result": "an output differs from the sequential reference's by more than the task's tolerance",
    "nondeterministic": "the same inputs gave a right answer once and a wrong one later",
    "reward_hack": "it tries to look right or fast without being so; it counts for nothing",
    "unsupported": "this level cannot run such code; nothing is said about it",
    "harness_error": "the judge itself failed; nothing is said about the kernel",
}
_PASSED = {
    "compile": "it compiles and has the task's signature; nothing was run",
    "functional": "right on the CPU at every check and hidden size, without races; speed not measured (no GPU used)",
    "modelled": "right on the CPU at every check and hidden size, without races; GPU time modelled, not measured",
    "gpu": "right on the GPU at every check, hidden and timed size",
}


def _ratio(speedup: float) -> str:
    """A speedup in words: below 1 it is a slowdown."""
    return f"{figure(speedup)} times as fast as" if speedup >= 1 else f"{figure(1 / speedup)} times slower than"


def _show(task: str, verdict: Verdict) -> None:
    """A verdict for people: the answer first, then what it rests on."""
    seconds = verdict.candidate_seconds
    click.echo(f"{task}: {verdict.verdict} (level {verdict.level})")
    click.echo(f"  {_PASSED[verdict.level] if verdict.passed else _MEANING[verdict.verdict]}")
    if verdict.reason:
        click.echo(f"  {verdict.reason}")
    if verdict.speedup and seconds is not None and verdict.baseline_seconds is not None:
        interval = verdict.speedup
        other = "the sequential reference on one CPU core" if verdict.baseline == "reference" else "the other kernel"
        click.echo(
            f"  measured {_time(seconds)} a call: {_ratio(interval.median)} {other} ({_time(verdict.baseline_seconds)})"
        )
        click.echo(
            f"  speedup {figure(interval.median)}, 95 % interval {figure(interval.low)} to {figure(interval.high)}"
        )
        if verdict.bound_share is not None:
            click.echo(f"  {verdict.bound_share:.0%} of this GPU's limit for the task")
        if verdict.unstable:
            click.echo("  unstable: the timing did not settle within its time limit")
    if verdict.modelled_seconds is not None:
        from verify.model import explanation_lines

        if verdict.modelled_speedup and verdict.modelled_baseline_seconds is not None:
            against = f"the sequential reference on one CPU core ({_time(verdict.modelled_baseline_seconds)})"
            click.echo(f"  modelled {_ratio(verdict.modelled_speedup)} {against}")
        click.echo("\n".join(f"  {line}".rstrip() for line in explanation_lines(verdict.model_terms)))
    if verdict.log and not verdict.passed:
        click.echo("\n".join(f"  | {line}" for line in verdict.log.splitlines()[:30]))
    evidence = verdict.evidence
    on = f"modelled for {evidence.gpu}" if verdict.level == "modelled" and evidence.gpu else evidence.gpu
    words = [
        on,
        evidence.driver and f"driver {evidence.driver}",
        evidence.nvcc and f"nvcc {evidence.nvcc}",
        evidence.sizes and f"{len(evidence.sizes)} runs",
        evidence.samples and f"{evidence.samples} timed samples a side",
    ]
    click.echo(f"  evidence: {', '.join(str(word) for word in words if word)}")


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"
