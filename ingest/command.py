"""``regraph ingest``: trajectories into the graph, and a teacher that makes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from regraph_db.cli import json_option, print_json, store_option

if TYPE_CHECKING:
    from contextlib import ExitStack

    from ingest.merging import Run, Summary

_LEVELS = ("none", "compile", "functional", "gpu")


@click.group()
def ingest() -> None:
    """Trajectories into the graph: read, checked, judged, relabelled, merged."""


def _ingesting(command: Any) -> Any:
    """The options that `add` and `teach` share."""
    options = [
        click.option(
            "--verify",
            type=click.Choice(_LEVELS),
            help="Level that every step is judged at.  [default: the setting `ingest.verify`]",
        ),
        click.option(
            "--relabel",
            type=click.Choice(["exact", "similar", "model"]),
            help="How names become techniques.  [default: `ingest.relabel`]",
        ),
        click.option("--model", metavar="MODEL", help="For --relabel model: FILE.gguf or langchain:PROVIDER/NAME."),
        store_option,
        json_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@ingest.command()
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option(
    "--task", default="", metavar="TASK", help="The task of trajectories that name none: a shipped task or a folder."
)
@click.option("--author", default="", metavar="NAME", help="The author of trajectories that name none.")
@click.option(
    "--search",
    "searches",
    multiple=True,
    metavar="ID",
    help="The path that a search found, instead of or beside files; may be repeated.",
)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["auto", "lines", "graph", "answer"]),
    default="auto",
    help="How a file is read.",
)
@click.option("--dry-run", is_flag=True, help="Do everything but write: neither graph nor rejected lines.")
@click.option("--resume", is_flag=True, help="Go on with a run that was killed: what it judged is not judged again.")
@click.option(
    "--measured/--no-measured",
    default=True,
    help="Attach the verdicts of NAME.measured.json beside a file instead of judging.",
)
@_ingesting
@click.pass_context
def add(
    ctx: click.Context,
    files: tuple[str, ...],
    task: str,
    author: str,
    searches: tuple[str, ...],
    file_format: str,
    dry_run: bool,
    resume: bool,
    measured: bool,
    verify: str | None,
    relabel: str | None,
    model: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Put trajectories into the graph. FILE may be gzip; `-` is standard input.

    A line is one trajectory, {"task", "author", "steps": [{"think", "method", "detail", "code"}]}. The ReGraphT
    authors'
    files and a model's raw answer are read too. What is not accepted goes to FILE.rejected.jsonl, the rest goes on.

    \b
    Exit code: 0 all accepted · 1 some rejected · 2 a file that cannot be read · 3 no store, no nvcc · 130 interrupted

    \b
    Example:
      regraph ingest add mine.jsonl --verify functional
      zcat many.jsonl.gz | regraph ingest add - --verify none --json
      regraph ingest add answer.md --task saxpy --author gpt-5
    """
    from contextlib import ExitStack

    if not files and not searches:
        raise click.UsageError("Name at least one FILE, or --search ID.")
    with ExitStack() as stack:
        run = _prepare(stack, verify=verify, relabel=relabel, model=model, store=store, dry_run=dry_run)
        run.task, run.author, run.file_format, run.resume, run.attach_measured = (
            task,
            author,
            file_format,
            resume,
            measured,
        )
        run.progress = None if as_json else _bar(stack, files)
        empty = [search for search in searches if not _add_search(run, search)]
        if files:
            run.files(files)
    for search in empty:
        click.echo(f"Search {search} found no faster kernel that passed; there is nothing to learn from it.", err=True)
    _finish(ctx, run.summary, as_json, negative=bool(empty))


def _add_search(run: Run, search: str) -> bool:
    from ingest.searches import found_trajectory

    trajectory = found_trajectory(run.store, search)
    if trajectory is None:
        return False
    function = run.task_function(trajectory.task)
    run.trajectories([trajectory.model_copy(update={"function": function})], search)
    return True


def _prepare(
    stack: ExitStack,
    *,
    verify: str | None,
    relabel: str | None,
    model: str | None,
    store: str | None,
    dry_run: bool,
) -> Run:
    """Open the store, the judge and the relabeller; ``stack`` closes them."""
    from ingest.merging import Run
    from ingest.relabel import Relabeller
    from ingest.settings import IngestSettings
    from regraph_db.errors import InputError
    from regraph_db.opening import open_store
    from regraph_db.records import Level
    from regraph_db.settings import load, section

    shared = load({"store": store})
    settings = section("ingest", IngestSettings, {"verify": verify, "relabel": relabel, "model": model})
    chooser = None
    if settings.relabel == "model":
        from ingest.chat import open_chat
        from ingest.relabel.choice import ModelChooser

        spec = settings.model or shared.model
        if spec is None:
            raise InputError(
                "--relabel model needs a model.",
                fix="Give --model FILE.gguf or langchain:PROVIDER/NAME, or set `ingest.model`.",
            )
        chooser = ModelChooser(open_chat(spec, timeout=settings.timeout))
    graph = stack.enter_context(_readable(shared, stack) if dry_run else open_store(shared, create=True))
    judge = None
    if settings.verify != "none":
        from verify import Judge

        judge = stack.enter_context(Judge())
    relabeller = Relabeller(
        settings,
        decided=[alias.alias for alias in graph.aliases()],
        techniques=[technique.name for technique, _, _ in graph.techniques()],
        chooser=chooser,
    )
    return Run(
        graph,
        settings,
        relabeller,
        level=Level(settings.verify),
        judge=judge,
        cache=shared.cache_folder,
        dry_run=dry_run,
    )


def _readable(shared: Any, stack: ExitStack) -> Any:
    """The store for a dry run: the real one, or where there is none an empty one that vanishes: nothing is made."""
    import tempfile

    from regraph_db.opening import open_store

    url: str = shared.store
    if not url.startswith("sqlite:///") or Path(url.removeprefix("sqlite:///")).expanduser().exists():
        return open_store(shared)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="regraph-dry-"))
    return open_store(shared, url=f"sqlite:///{folder}/empty.db", create=True)


def _bar(stack: ExitStack, files: tuple[str, ...]) -> Any:
    """One progress bar for all files on stderr, on a terminal only: share of their bytes, trajectories a second, time
    left."""
    import sys
    import time

    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    paths = [Path(file) for file in files]
    total = sum(path.stat().st_size for path in paths) if all(path.is_file() for path in paths) else None
    columns = [TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}"), TimeElapsedColumn()]
    if total:
        columns += [TimeRemainingColumn(), TextColumn("left")]
    progress = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    task = progress.add_task("", total=total, rate="")
    started = time.monotonic()
    read: dict[str, int] = {}

    def report(name: str, done: int, size: int | None, count: int) -> None:
        read[name] = done
        rate = f"{count:,} trajectories, {count / max(time.monotonic() - started, 1e-9):,.0f}/s"
        shown = "standard input" if name == "-" else Path(name).name
        progress.update(task, description=shown, completed=sum(read.values()), rate=rate)

    return report


def _finish(
    ctx: click.Context,
    summary: Summary,
    as_json: bool,
    *,
    negative: bool = False,
    teacher: dict[str, Any] | None = None,
) -> None:
    """Print the summary; exit with 1 when something was not accepted."""
    if as_json:
        print_json(summary.document() | ({"teacher": teacher} if teacher else {}))
    else:
        from ingest.report import text_of

        click.echo(text_of(summary))
        if teacher:
            click.echo(
                f"Teacher: {teacher['questions']:,} questions, {teacher['tokens_in']:,} tokens in, "
                f"{teacher['tokens_out']:,} out, "
                f"{teacher['retries']:,} further tries, cost {teacher['cost']:.4f}."
            )
    if summary.rejected or negative:
        ctx.exit(1)


@ingest.command()
@click.argument("tasks", metavar="TASK...", nargs=-1, required=True)
@click.option(
    "--teacher", metavar="MODEL", help="langchain:PROVIDER/NAME or FILE.gguf.  [default: the setting `ingest.teacher`]"
)
@click.option("--samples", default=1, show_default=True, type=click.IntRange(1), help="Trajectories of each task.")
@click.option("--workers", type=click.IntRange(1), help="Questions asked at once.")
@click.option(
    "--max-total-tokens", type=click.IntRange(1), help="Ask nothing more when so many tokens, in and out, were spent."
)
@click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    help="Ask nothing more when so much was spent; needs the prices.",
)
@click.option("--price-in", default=0.0, type=click.FloatRange(0), help="Price of a million tokens of prompt.")
@click.option("--price-out", default=0.0, type=click.FloatRange(0), help="Price of a million tokens of answer.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also append the trajectories, as taught, to this file.",
)
@_ingesting
@click.pass_context
def teach(
    ctx: click.Context,
    tasks: tuple[str, ...],
    teacher: str | None,
    samples: int,
    workers: int | None,
    max_total_tokens: int | None,
    max_cost: float | None,
    price_in: float,
    price_out: float,
    out: Path | None,
    verify: str | None,
    relabel: str | None,
    model: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Ask a strong model for step-by-step trajectories of TASKs, then ingest them as `add` does.

    Keys come from the provider's own environment variable only. Answers are kept in the cache: run the same command
    again
    after a kill, and nothing is asked twice.

    \b
    Example:
      OPENAI_API_KEY=… regraph ingest teach matmul softmax --teacher langchain:openai/gpt-5 --samples 4
      --max-total-tokens 500000
      regraph ingest teach saxpy --teacher langchain:ollama/qwen3-coder
    """
    from contextlib import ExitStack

    from ingest.teacher.run import teach as ask

    if max_cost is not None and not (price_in or price_out):
        raise click.UsageError("--max-cost needs --price-in or --price-out.")
    with ExitStack() as stack:
        run = _prepare(stack, verify=verify, relabel=relabel, model=model, store=store, dry_run=False)
        limits = {"tokens": max_total_tokens, "cost": max_cost, "price_in": price_in, "price_out": price_out}
        spent = ask(run, tasks, teacher=teacher, samples=samples, workers=workers, limits=limits, out=out)
    document = {
        "questions": spent.questions,
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "retries": spent.retries,
        "cost": spent.cost,
    }
    _finish(ctx, run.summary, as_json, teacher=document)


@ingest.command("relabel-quality")
@json_option
@click.pass_context
def relabel_quality(ctx: click.Context, as_json: bool) -> None:
    """How well names are relabelled without a model, on labelled pairs; the held-back ones decide the exit code.

    The tuning pairs are decided set by set, by an index that learnt from the other sets only.

    \b
    Exit code: 0 precision ≥ 0.97 and recall ≥ 0.85 on the held-back pairs · 1 below
    """
    from ingest.relabel.quality import evaluate
    from ingest.settings import IngestSettings
    from regraph_db.settings import section

    found = evaluate(section("ingest", IngestSettings))
    if as_json:
        print_json({name: each.document() for name, each in found.items()})
    else:
        for name, each in found.items():
            words = name.replace("_", " ")
            click.echo(f"{words:24}{each.pairs:4} pairs   precision {each.precision:.3f}   recall {each.recall:.3f}")
        for name in ("tuning", "held_back"):
            for mistake in found[name].mistakes:
                means = f", means {mistake.means}" if mistake.means else ""
                click.echo(f"wrong in {name.replace('_', ' ')}: {mistake.name} → {mistake.taken_for}{means}")
    if not found["held_back"].suffices:
        ctx.exit(1)
