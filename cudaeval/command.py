"""`regraph eval`: the benchmark's commands."""

from __future__ import annotations

from pathlib import Path

import click

from regraph_db.cli import json_option, print_json


@click.group("eval")
def evaluate() -> None:
    """Measure trajectories, run benchmark campaigns and report them.

    \b
    Example:
      regraph eval run saxpy relu --strategy mcgs --strategy random --model model.gguf --budget 40 --out results.jsonl
      regraph eval report results.jsonl --html report.html
    """


@evaluate.command("measure")
@click.argument("names", nargs=-1, metavar="[TASK…]")
@click.option("--gpu", type=click.IntRange(min=0), default=None, help="Which GPU to measure on.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write here instead of beside the trajectories.")
@click.option("--folder", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Read trajectories from here.")
@click.option("--again", is_flag=True, help="Measure what is measured already, too.")
@json_option
@click.pass_context
def measure_(
    ctx: click.Context,
    names: tuple[str, ...],
    gpu: int | None,
    out: Path | None,
    folder: Path | None,
    again: bool,
    as_json: bool,
) -> None:
    """Time every step of the trajectories of TASK… (all of them by default) on a GPU.

    Writes TASK.measured.json with the hash of each step's code, its verdict, seconds and interval. What is measured and
    unchanged is skipped, so that a run that was cut short goes on where it ended.

    \b
    Example:
      regraph eval measure saxpy transpose --gpu 0
    """
    from cudaeval import TRAJECTORIES, shipped
    from cudaeval.measure import measure
    from regraph_db import settings
    from regraph_db.errors import InternalFault
    from regraph_db.records import Verdict
    from verify import Judge
    from verify.settings import VerifySettings

    folder = folder or TRAJECTORIES
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)

    def show(name: str, index: int, verdict: Verdict) -> None:
        seconds = f"{verdict.candidate_seconds * 1e6:.1f} us" if verdict.candidate_seconds else verdict.reason
        click.echo(f"{name} step {index + 1}: {verdict.verdict} {seconds}", err=True)

    with Judge(settings.section("verify", VerifySettings, {"gpu": gpu, "level": "gpu"})) as judge:
        outcome = measure(
            names or shipped.names(folder), judge, folder=folder, out=out, again=again, progress=show
        )
    if as_json:
        print_json({"written": outcome.written, "kept": outcome.kept, "broken": outcome.broken})
    else:
        click.echo(f"{len(outcome.written)} measured, {len(outcome.kept)} unchanged, {len(outcome.broken)} not measured.")
    if outcome.broken:
        name, reason = next(iter(outcome.broken.items()))
        raise InternalFault(f"the judge failed on {len(outcome.broken)} tasks; first {reason}", where=name)
