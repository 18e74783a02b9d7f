"""``regraph search``: kernels out, and a look at searches that ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from regraph_db.cli import json_option, print_json, store_option

_MODEL_HELP = "FILE.gguf or langchain:PROVIDER/NAME.  [default: the setting `model`]"
_RUNNERS_HELP = "Processes on this machine that share the search."
_LEVELS = ["functional", "modelled", "gpu"]
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def search() -> None:
    """Search fast kernels with a small model and the graph; look at searches; go on with them."""


@search.command()
@click.argument("task", required=False)
@click.option("--model", metavar="MODEL", help=_MODEL_HELP)
@click.option(
    "--strategy",
    type=click.Choice(["mcgs", "random", "rag", "standard", "cot", "fsr"]),
    default="mcgs",
    show_default=True,
    help="How the calls are spent.",
)
@click.option(
    "--mode",
    type=click.Choice(["graph", "paper"]),
    help="Our decisions, or the paper's literal ones.  [default: graph]",
)
@click.option(
    "--budget", type=click.IntRange(1), help="Generator calls in all.  [default: the setting search.budget, 200]"
)
@click.option("--runners", type=click.IntRange(1, 256), default=1, show_default=True, help=_RUNNERS_HELP)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same model, one runner: same path."
)
@click.option("--from", "kernel", type=_FILE, help="Start from this kernel of yours; it is then the baseline as well.")
@click.option("--level", type=click.Choice(_LEVELS), help="What rewards rest on.  [default: the best this machine has]")
@click.option("--gpu", type=click.IntRange(0), help="Which GPU.  [default: the setting verify.gpu]")
@click.option("--join", metavar="ID", help="Work on a search that runs already, perhaps on other machines.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write kernel, path, evidence and settings there."
)
@store_option
@json_option
def run(task: str | None, join: str | None, out: Path | None, as_json: bool, **chosen: Any) -> None:
    """Search a fast kernel for TASK, a task's name or folder. Ends with 1 when no correct kernel was found.

    \b
    Example:
      regraph search run saxpy --model model.gguf --budget 60 --out saxpy-kernel
      regraph search run matmul --model langchain:openai/gpt-4o-mini --runners 4
      regraph search run --join 3f2a
    """
    from search.session import Session

    if (task is None) == (join is None):
        raise click.UsageError("Name a TASK, or a search with --join.")
    with Session(chosen, as_json=as_json) as session:
        outcome = session.join(join) if join is not None else session.start(str(task))
        session.show(outcome, out)
    _end(outcome.best is None)


@search.command()
@click.argument("search_id", metavar="ID")
@click.option("--task", metavar="FOLDER", help="Where the task is, when it is none of the known ones.")
@click.option("--model", metavar="MODEL", help=_MODEL_HELP)
@click.option("--budget", type=click.IntRange(1), help="A larger budget than before.")
@click.option("--runners", type=click.IntRange(1, 256), default=1, show_default=True, help=_RUNNERS_HELP)
@click.option("--gpu", type=click.IntRange(0), help="Which GPU.  [default: the setting verify.gpu]")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write kernel, path, evidence and settings there."
)
@store_option
@json_option
def resume(search_id: str, task: str | None, out: Path | None, as_json: bool, **chosen: Any) -> None:
    """Go on with a search after a kill or an interruption, or with a larger budget. A part of the ID is enough.

    \b
    Example:
      regraph search resume 3f2a --model model.gguf --budget 400
    """
    from search.session import Session

    with Session(chosen, as_json=as_json) as session:
        outcome = session.resume(search_id, task)
        session.show(outcome, out)
    _end(outcome.best is None)


@search.command("list")
@store_option
@json_option
def list_(store: str | None, as_json: bool) -> None:
    """List the searches of the graph, the newest first.

    \b
    Example:
      regraph search list
    """
    from regraph_db.figures import figure
    from regraph_db.opening import open_store
    from regraph_db.settings import load

    with open_store(load({"store": store})) as graph:
        found = graph.searches()
        best = {one.id: _best_speedup(graph.snapshot(one.id)) for one in found}
    if as_json:
        keys = {"id", "strategy", "level", "status", "model", "seed", "budget", "calls", "created_at", "best_attempt"}
        print_json(
            [
                {**one.model_dump(mode="json", include=keys), "task": one.task.name, "best_speedup": best[one.id]}
                for one in found
            ]
        )
        return
    wide = max([len("task"), *(len(one.task.name) for one in found)])
    if found:
        click.echo(
            f"{'id':8}  {'task':{wide}}  {'strategy':8}  {'level':10}  {'status':8}  {'calls':>11}  {'best':>8}  begun"
        )
    for one in found:
        speed = f"{figure(best[one.id])}x" if best[one.id] else "correct" if one.best_attempt else "–"
        click.echo(
            f"{one.id[:8]}  {one.task.name:{wide}}  {one.strategy:8}  {one.level:10}  {one.status:8}  "
            f"{one.calls:>5}/{one.budget:<5}  {speed:>8}  {one.created_at:%Y-%m-%d %H:%M}"
        )
    click.echo("1 search." if len(found) == 1 else f"{len(found)} searches.", err=True)


def _best_speedup(snapshot: Any) -> float | None:
    return max((state.best_speedup for state in snapshot.states if state.best_speedup), default=None)


@search.command()
@click.argument("search_id", metavar="ID")
@store_option
@json_option
def show(search_id: str, store: str | None, as_json: bool) -> None:
    """Show a search: its tree with N (visits), Q (mean return), the best return and verdicts, and the path to the
    best kernel.

    \b
    Example:
      regraph search show 3f2a
    """
    from regraph_db.opening import open_store
    from regraph_db.settings import load
    from search.drawing import legend, path_keys, tree_document, tree_lines
    from search.outcome import outcome_of
    from search.report import summary_lines

    with open_store(load({"store": store})) as graph:
        record = graph.search(search_id)
        snapshot = graph.snapshot(record.id)
        outcome = outcome_of(graph, record.id)
    if as_json:
        print_json({**outcome.document(), "status": record.status, "tree": tree_document(snapshot, outcome.attempts)})
        return
    steps = outcome.best.steps if outcome.best else ()
    tree = tree_lines(snapshot, outcome.attempts, best=path_keys(steps))
    for line in (*summary_lines(outcome), "", *tree, "", *legend(record.level)):
        click.echo(line)


@search.command()
@click.argument("search_id", metavar="ID")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Write kernel, path, evidence and settings there."
)
@store_option
@json_option
def best(search_id: str, out: Path | None, store: str | None, as_json: bool) -> None:
    """Print the best kernel of a search on stdout. Ends with 1 when none was found.

    \b
    Example:
      regraph search best 3f2a > kernel.cu
    """
    from regraph_db.opening import open_store
    from regraph_db.settings import load
    from search.export import export
    from search.outcome import outcome_of

    with open_store(load({"store": store})) as graph:
        record = graph.search(search_id)
        outcome = outcome_of(graph, record.id)
    if out is not None:
        export(outcome, record, out)
    if as_json:
        print_json(outcome.document()["best"])
    elif outcome.best is not None:
        click.echo(outcome.best.code, nl=False)
    else:
        click.echo("No correct kernel was found.", err=True)
    _end(outcome.best is None)


def _end(negative: bool) -> None:
    if negative:
        click.get_current_context().exit(1)
