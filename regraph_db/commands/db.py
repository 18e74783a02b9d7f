"""``regraph db``: make, look at, copy, check and carry a graph."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from regraph_db.cli import json_option, print_json, store_option

if TYPE_CHECKING:
    from regraph_db.records import Counts
    from regraph_db.store import GraphStore

T = TypeVar("T")


@click.group()
def db() -> None:
    """Make, look at, copy, check and carry a graph.

    \b
    Example:
      regraph db init
      regraph db copy sqlite:///regraph.db bolt://localhost:7687
    """


@db.command()
@store_option
@json_option
def init(store: str | None, as_json: bool) -> None:
    """Make the graph's schema, or bring an older one up to this program's.

    \b
    Example:
      regraph db init --store sqlite:///regraph.db
    """
    with _open(store, create=True) as graph:
        document = {"store": graph.url, "schema": graph.schema_version()}
    if as_json:
        print_json(document)
    else:
        click.echo(f"{document['store']}: schema {document['schema']}, ready.")


@db.command()
@store_option
@json_option
def status(store: str | None, as_json: bool) -> None:
    """Say how much the graph holds.

    \b
    Example:
      regraph db status --json
    """
    with _open(store) as graph:
        document = {"store": graph.url, "schema": graph.schema_version(), **graph.counts().model_dump()}
    if as_json:
        print_json(document)
        return
    for key, value in document.items():
        click.echo(f"{key:13} {value if isinstance(value, str) else format(value, ',')}")


@db.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
@click.pass_context
def copy(ctx: click.Context, source: str, target: str, as_json: bool) -> None:
    """Copy a whole graph into another store. After an interruption run it again: it goes on, nothing comes twice.

    \b
    Example:
      regraph db copy sqlite:///regraph.db bolt://localhost:7687
    """
    with _open(source) as old, _open(target, create=True) as new:
        due = old.counts().model_dump()
        before = new.counts()
        written = new.load(_progress(old.dump(), _objects(old), "copy"))
        after = new.counts()
    _report(ctx, as_json, {"objects": written, "from": source, "to": target}, due, before, after)


@db.command()
@click.argument("file", type=click.Path(dir_okay=False, writable=True, allow_dash=True))
@store_option
@json_option
def export(file: str, store: str | None, as_json: bool) -> None:
    """Write the whole graph to FILE as JSON lines (- is stdout).

    \b
    Example:
      regraph db export regraph.jsonl
    """
    import json
    from pathlib import Path

    from regraph_db.errors import InputError

    folder = Path(file).parent
    if file != "-" and not os.access(folder, os.W_OK):
        what = "not writable" if folder.exists() else "no such folder"
        raise InputError(f"{what}.", where=str(folder), fix="Name a file in a folder that you can write to.")
    # Written beside FILE and renamed at the end, so that an interruption leaves no half of it.
    with _open(store) as graph, click.open_file(file, "w", encoding="utf-8", atomic=file != "-") as stream:
        number = 0
        for fields in _progress(graph.dump(), _objects(graph), "export"):
            stream.write(json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n")
            number += 1
    if as_json and file != "-":
        print_json({"file": file, "objects": number})
    elif file != "-":
        click.echo(f"{number:,} objects written to {file}.")


@db.command(name="import")
@click.argument("file", type=click.File("rb"))
@store_option
@json_option
@click.pass_context
def import_(ctx: click.Context, file: BinaryIO, store: str | None, as_json: bool) -> None:
    """Read what `export` wrote into the graph. After an interruption run it again: nothing comes twice.

    \b
    Example:
      regraph db import regraph.jsonl --store bolt://localhost:7687
    """
    held: dict[str, int] = {}
    with _open(store, create=True) as graph:
        before = graph.counts()
        written = graph.load(_progress(_counted(_lines(file), held), None, "import"))
        after, url = graph.counts(), graph.url
    _report(ctx, as_json, {"objects": written, "file": file.name, "to": url}, held, before, after)


@db.command()
@click.option("--repair", is_flag=True, help="Derive again what can be derived.")
@store_option
@json_option
@click.pass_context
def check(ctx: click.Context, repair: bool, store: str | None, as_json: bool) -> None:
    """Find every broken invariant, by name; exit code 1 when one is (still) broken.

    \b
    Example:
      regraph db check --repair
    """
    with _open(store) as graph:
        mended = graph.repair() if repair else []
        problems = graph.check()
    if as_json:
        print_json({"problems": problems, "mended": mended})
    else:
        for problem in mended:
            click.echo(f"mended {problem.invariant}: {problem.where}: {problem.detail}")
        for problem in problems:
            hint = " (--repair can mend it)" if problem.repairable else ""
            click.echo(f"broken {problem.invariant}: {problem.where}: {problem.detail}{hint}")
        if not problems:
            click.echo("Nothing is broken.")
    if problems:
        ctx.exit(1)


def _open(url: str | None, *, create: bool = False) -> GraphStore:
    from regraph_db.opening import open_store
    from regraph_db.settings import load

    return open_store(load({"store": url}), create=create)


def _objects(graph: GraphStore) -> int:
    """About how many objects a dump gives, for the progress bar."""
    held = graph.counts()
    return held.techniques + held.aliases + held.trajectories + held.searches + held.attempts


def _progress(objects: Iterable[T], total: int | None, what: str) -> Iterator[T]:
    """``objects`` with a progress bar on stderr, where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(what, total=total)
        for one in objects:
            yield one
            bar.advance(task)


def _lines(file: BinaryIO) -> Iterator[dict[str, Any]]:
    import json

    from regraph_db.errors import InputError

    for number, line in enumerate(file, 1):
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"not a line of JSON ({error}); the lines before it are kept.",
                where=f"{file.name}, line {number}",
                fix="Give a file that `regraph db export` wrote whole.",
            ) from None
        yield fields


#: The count that an object of each kind belongs to.
_COUNTED = {"alias": "aliases", "trajectory": "trajectories", "search": "searches", "attempt": "attempts"}


def _counted(objects: Iterable[dict[str, Any]], held: dict[str, int]) -> Iterator[dict[str, Any]]:
    """``objects`` as they are, counted by kind into ``held``."""
    for fields in objects:
        yield fields
        if (name := _COUNTED.get(str(fields["kind"]))) is not None:
            held[name] = held.get(name, 0) + 1
        if fields["kind"] == "trajectory":
            held["steps"] = held.get("steps", 0) + len(fields["steps"])


def _report(
    ctx: click.Context, as_json: bool, document: dict[str, Any], due: dict[str, int], before: Counts, after: Counts
) -> None:
    """The count check that ends a copy: everything of the source is there, and nothing else where nothing was
    before."""
    there = after.model_dump()
    was_empty = not any(before.model_dump().values())
    short = {
        k: {"source": n, "target": there[k]} for k, n in due.items() if there[k] < n or (was_empty and there[k] != n)
    }
    if as_json:
        print_json({**document, "counts": there, "missing": short})
    else:
        click.echo(
            f"{document['objects']:,} objects read; the target holds "
            + ", ".join(f"{n:,} {k}" for k, n in there.items())
            + "."
        )
        for kind, numbers in short.items():
            click.echo(f"{kind}: {numbers['source']:,} in the source, {numbers['target']:,} in the target.", err=True)
    if short:
        ctx.exit(1)
