"""`regraph eval`: the benchmark's commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from regraph_db.cli import json_option, print_json, store_option

_STRATEGIES = ["mcgs", "random", "rag", "standard", "cot", "fsr"]
_TIERS = click.Choice(["easy", "medium", "hard"])
_SPLITS = click.Choice(["train", "test"])
_FOLDER = click.Path(path_type=Path, file_okay=False)
_PAGE = click.Path(path_type=Path, exists=True, dir_okay=False)
_TRAJECTORIES = click.option(
    "--folder", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Read trajectories from here."
)


@click.group("eval")
def evaluate() -> None:
    """Run benchmark campaigns and report them; measure and test the shipped trajectories.

    \b
    Example:
      regraph eval run --split test --strategy mcgs --strategy random --model model.gguf --budget 40 --out runs.jsonl
      regraph eval report runs.jsonl --html report.html
    """


@evaluate.command("run")
@click.argument("tasks", nargs=-1, metavar="[TASK…]")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The results, JSON lines.")
@click.option(
    "--strategy", "strategies", type=click.Choice(_STRATEGIES), multiple=True, default=("mcgs",), show_default=True
)
@click.option("--model", "models", multiple=True, metavar="MODEL", help="FILE.gguf or langchain:PROVIDER/NAME.")
@click.option("--samples", type=click.IntRange(1), default=1, show_default=True, help="Searches for each task.")
@click.option("--budget", type=click.IntRange(1), help="Calls of each search.  [default: search.budget, 200]")
@click.option("--level", type=click.Choice(["functional", "modelled", "gpu"]), help="[default: the machine's best]")
@click.option("--tier", type=_TIERS, help="Only tasks of this tier.")
@click.option("--split", type=_SPLITS, default="test", show_default=True, help="Which tasks, when none is named.")
@click.option("--mode", type=click.Choice(["graph", "paper"]), help="Our decisions, or the paper's literal ones.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Sample i has seed + i.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Searches at a time.")
@click.option("--gpu", "gpus", type=click.IntRange(0), multiple=True, help="Which GPUs; jobs are spread over them.")
@store_option
@json_option
def run_(tasks: tuple[str, ...], out: Path, as_json: bool, **chosen: Any) -> None:
    """Run every TASK with every strategy and model at one budget, and append what comes of it to a file.

    Run it again with the same options to go on after a kill: finished samples are skipped, unfinished searches are
    resumed. The store is only read: every search works on its own copy of it, beside the results, so that none profits
    from another's.

    \b
    Example:
      regraph eval run saxpy relu --strategy mcgs --strategy rag --model model.gguf --budget 40 --out runs.jsonl
    """
    from cudaeval.launch import launch
    from cudaeval.results import Sample

    def show(sample: Sample, place: int, total: int) -> None:
        speed = f"{sample.speedup:.2f}x" if sample.speedup is not None else "correct" if sample.solved else "–"
        click.echo(f"[{place}/{total}] {sample.task} {sample.strategy} sample {sample.sample}: {speed}", err=True)

    ran, total = launch(tasks, out, chosen, show)
    if as_json:
        print_json({"out": out, "ran": ran, "known": total - ran, "samples": total})
    else:
        click.echo(f"{ran} samples run, {total - ran} known before; {out} holds them.")


@evaluate.command("report")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--k", type=click.IntRange(1), default=1, show_default=True, help="Of pass@k and speedup@k.")
@click.option("--tier", type=_TIERS, help="Only this tier.")
@click.option("--split", type=_SPLITS, help="Only this split.")
@click.option("--markdown", type=click.Path(path_type=Path, dir_okay=False), help="Write the tables as Markdown.")
@click.option("--html", "page", type=click.Path(path_type=Path, dir_okay=False), help="Write a page with plots.")
@json_option
def report_(
    files: tuple[Path, ...],
    k: int,
    tier: str | None,
    split: str | None,
    markdown: Path | None,
    page: Path | None,
    as_json: bool,
) -> None:
    """Tables of what the campaigns in FILES found, by strategy, model and tier.

    \b
    Example:
      regraph eval report runs.jsonl --k 1 --markdown report.md --html report.html
    """
    from cudaeval import report

    terms, samples = report.load(files)
    found = report.build(terms, samples, k, tier=tier, split=split)
    if markdown is not None:
        markdown.write_text(report.markdown(found), encoding="utf-8")
    if page is not None:
        from cudaeval.page import html

        page.write_text(html(found), encoding="utf-8")
    if as_json:
        print_json(report.document(found))
        return
    from rich.console import Console

    console = Console(width=None if Console().is_terminal else 160)
    for table in report.tables(found):
        console.print(table)
    for note in report.notes(found):
        click.echo(note)


@evaluate.command("measure")
@click.argument("names", nargs=-1, metavar="[TASK…]")
@click.option("--gpu", type=click.IntRange(min=0), help="Which GPU to measure on.")
@click.option("--out", type=_FOLDER, help="Write here instead of beside the trajectories.")
@_TRAJECTORIES
@click.option("--again", is_flag=True, help="Measure what is measured already, too.")
@json_option
def measure_(
    names: tuple[str, ...], gpu: int | None, out: Path | None, folder: Path | None, again: bool, as_json: bool
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
    from regraph_db.errors import InternalFault
    from regraph_db.records import Verdict
    from regraph_db.settings import section
    from verify import Judge
    from verify.settings import VerifySettings

    folder = folder or TRAJECTORIES
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)

    def show(name: str, index: int, verdict: Verdict) -> None:
        seconds = f"{verdict.candidate_seconds * 1e6:.1f} us" if verdict.candidate_seconds else verdict.reason
        click.echo(f"{name} step {index + 1}: {verdict.verdict} {seconds}", err=True)

    with Judge(section("verify", VerifySettings, {"gpu": gpu, "level": "gpu"})) as judge:
        chosen = names or shipped.names(folder)
        outcome = measure(chosen, judge, folder=folder, out=out, again=again, progress=show)
    if as_json:
        print_json({"written": outcome.written, "kept": outcome.kept, "broken": outcome.broken})
    else:
        click.echo(f"{len(outcome.written)} measured, {len(outcome.kept)} kept, {len(outcome.broken)} not measured.")
    if outcome.broken:
        name, reason = next(iter(outcome.broken.items()))
        raise InternalFault(f"the judge failed on {len(outcome.broken)} tasks; first {reason}", where=name)


@evaluate.command("remeasure")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--gpu", "gpus", type=click.IntRange(0), multiple=True, help="Which GPUs; searches are spread over them.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the record, JSON.")
@click.option(
    "--markdown", "page", type=click.Path(path_type=Path, dir_okay=False), help="Write the table as Markdown."
)
@json_option
def remeasure_(file: Path, gpus: tuple[int, ...], out: Path | None, page: Path | None, as_json: bool) -> None:
    """Time on a GPU what the searches of the campaign in FILE picked without one.

    Every right kernel that a search generated is timed beside the one that it picked by modelled speed. Ends with 1
    when the GPU does not hold a picked kernel for right.

    \b
    Example:
      regraph eval run --level modelled --model model.gguf --budget 60 --out modelled.jsonl
      regraph eval remeasure modelled.jsonl --out remeasured.json
    """
    from contextlib import ExitStack

    from cudaeval import remeasure, results
    from regraph_db.errors import InputError
    from regraph_db.settings import section
    from verify import Judge
    from verify.settings import VerifySettings

    terms, samples = results.read(file)
    searches = remeasure.found(file, samples)
    if not searches:
        raise InputError("no search in it found a right kernel.", where=str(file), fix="Run more, or a better model.")
    rows: list[remeasure.Remeasured] = []
    with ExitStack() as stack:
        judges = [
            stack.enter_context(Judge(section("verify", VerifySettings, {"gpu": gpu, "level": "gpu"})))
            for gpu in gpus or (None,)
        ]
        for row, evidence in remeasure.remeasure(searches, judges):
            rows.append(row)
            record = remeasure.record_of(terms, searches[0].sample.model, rows, evidence)
            # After each search, so that a run that is cut short leaves what it measured.
            if out is not None:
                out.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
            if page is not None:
                page.write_text(remeasure.markdown(record), encoding="utf-8")
            share = f"{row.share:.2f} of the best of {row.right}" if row.share is not None else row.reason
            click.echo(
                f"[{len(rows)}/{len(searches)}] {row.task} {row.strategy} sample {row.sample}: {share}", err=True
            )
    if as_json:
        print_json(record.model_dump(mode="json"))
    else:
        click.echo(remeasure.markdown(record), nl=False)
    if any(row.reason for row in rows):
        raise SystemExit(1)


@evaluate.command("trajectories")
@_TRAJECTORIES
@click.option("--update", type=_PAGE, help="Put the table into this page.")
@json_option
@click.pass_context
def trajectories_(ctx: click.Context, folder: Path | None, update: Path | None, as_json: bool) -> None:
    """List the shipped trajectories with the best measured speedup and share of the bound.

    --update replaces what stands between the page's trajectories marks. Ends with 1 when a measurement does not speak
    of the code that stands there.

    \b
    Example:
      regraph eval trajectories --update docs/cudaeval.md
    """
    from cudaeval import TRAJECTORIES, catalogue
    from regraph_db import page_marks

    entries = catalogue.entries(folder or TRAJECTORIES)
    if update is not None:
        page_marks.replace(update, "trajectories", catalogue.markdown(entries))
    if as_json:
        print_json([entry.document() for entry in entries])
    else:
        for entry in entries:
            click.echo(entry.line())
        click.echo(f"{len(entries)} trajectories, {sum(entry.steps for entry in entries)} steps.")
    if any(entry.stale for entry in entries):
        ctx.exit(1)


@evaluate.command("mutate")
@click.argument("names", nargs=-1, metavar="[TASK…]")
@click.option("--count", type=click.IntRange(1), default=10, show_default=True, help="Mutants of each task.")
@click.option("--seed", type=click.IntRange(0), default=3, show_default=True, help="Which mutants are drawn.")
@click.option("--least", type=click.FloatRange(0, 1), default=0.98, show_default=True, help="Share to be caught.")
@click.option("--level", type=click.Choice(["functional", "gpu"]), default="functional", show_default=True)
@click.option("--keep", is_flag=True, help="Keep the results in cudaeval/mutants.json, and skip what is kept there.")
@click.option("--update", type=_PAGE, help="Put what is kept into this page.")
@json_option
@click.pass_context
def mutate_(
    ctx: click.Context,
    names: tuple[str, ...],
    count: int,
    seed: int,
    least: float,
    level: str,
    keep: bool,
    update: Path | None,
    as_json: bool,
) -> None:
    """Break right kernels on purpose and see whether the tests of TASK… (all by default) notice.

    Survivors are listed with step and line: a hole in the task's tests, or a change that does no harm. Those that a
    person found harmless stand in cudaeval/harmless.toml and are not counted. Ends with 1 when fewer than --least are
    caught. With --keep a run that was cut short goes on where it ended.

    \b
    Example:
      regraph eval mutate saxpy histogram --count 8
      regraph eval mutate --keep --update docs/cudaeval.md
    """
    from cudaeval import caught, shipped
    from cudaeval.mutate import Mutant, check, read_harmless
    from regraph_db import page_marks
    from regraph_db.records import Level, Verdict
    from verify import Judge

    def show(mutant: Mutant, verdict: Verdict) -> None:
        where = f"{mutant.task} step {mutant.step} line {mutant.line}"
        click.echo(f"{where}: {mutant.operator}: {verdict.verdict}", err=True)

    harmless = read_harmless()
    entries: dict[str, caught.Entry] = {}
    with Judge() as judge:
        for name in names or shipped.names():
            task, trajectory = shipped.load_one(name)
            codes = [step.code for step in trajectory.steps]
            known = caught.read().tasks.get(name) if keep else None
            if known is None or not known.answers(task, codes, count, Level(level), seed):
                found = check(
                    task, codes, judge, count=count, seed=seed, level=Level(level), harmless=harmless, progress=show
                )
                known = caught.entry(task, codes, found, level=Level(level), seed=seed)
                if keep:
                    caught.keep(name, known)
            entries[name] = known
    if update is not None:
        page_marks.replace(update, "mutants", caught.markdown(caught.read().tasks, harmless))
    right, wrong = caught.tally(entries, harmless)
    share = right / (right + wrong) if right + wrong else 1.0
    survivors = [
        {"task": name, **survivor.model_dump()} for name in entries for survivor in entries[name].without(harmless)
    ]
    if as_json:
        uncounted = sum(each.uncounted for each in entries.values())
        print_json({"caught": right, "share": share, "uncounted": uncounted, "survivors": survivors})
    else:
        for each in survivors:
            click.echo(f"survived: {each['task']} step {each['step']} line {each['line']}: {each['operator']}")
        click.echo(f"{right} of {right + wrong} mutants caught ({share:.1%}).")
    if share < least:
        ctx.exit(1)
