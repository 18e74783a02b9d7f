"""``regraph task``: what there is to solve, and whether a task is sound."""

from __future__ import annotations

from typing import Any

import click

from regraph_db.cli import json_option, print_json


class _WithNew(click.Group):
    """``new`` lives in a module of its own, imported only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "new"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "new":
            from verify.new_task import new

            return new
        return super().get_command(ctx, cmd_name)


@click.group(cls=_WithNew)
def task() -> None:
    """Tasks: the shipped ones and your own folders.

    \b
    Example:
      regraph task list --tier easy
      regraph task show saxpy
      regraph task check my/tasks/blur
    """


@task.command("list")
@click.option("--tier", type=click.Choice(["easy", "medium", "hard"]), help="Only tasks of this tier.")
@click.option("--split", type=click.Choice(["train", "test"]), help="Only tasks of this split.")
@json_option
def list_(tier: str | None, split: str | None, as_json: bool) -> None:
    """List the tasks: yours (setting `tasks`) and the shipped ones.

    \b
    Example:
      regraph task list --split test
    """
    from verify.task import list_tasks

    found = [t for t in list_tasks() if tier in (None, t.tier) and split in (None, t.split)]
    if as_json:
        print_json([{"name": t.name, "title": t.title, "tier": t.tier, "split": t.split, "abi": t.abi} for t in found])
        return
    width = max((len(t.name) for t in found), default=0)
    for t in found:
        click.echo(f"{t.name:{width}}  {t.tier:6}  {t.split:5}  {t.title}")
    click.echo(f"{len(found)} tasks.", err=True)


@task.command()
@click.argument("name")
@click.option("--reference", is_flag=True, help="Print only the sequential reference.")
@json_option
def show(name: str, reference: bool, as_json: bool) -> None:
    """Show a task: its signature, sizes and sequential reference. NAME is a task or a folder.

    \b
    Example:
      regraph task show saxpy
    """
    from verify.task import load_task

    found = load_task(name)
    if as_json:
        print_json(_document(found))
    elif reference:
        click.echo(found.reference, nl=False)
    else:
        click.echo(f"{found.name}: {found.title} ({found.tier}, {found.split}, abi {found.abi})")
        click.echo(f"  {found.signature}")
        if found.allow:
            click.echo(f"  allowed besides CUDA C++: {', '.join(found.allow)}")
        for parameter in found.parameters:
            shape = f" [{', '.join(map(str, parameter.shape))}]" if parameter.is_array else ""
            accepted = parameter.accepted
            tolerance = (
                f", within {accepted.absolute:g} + {accepted.relative:g}·|expected|" if parameter.writable else ""
            )
            click.echo(f"    {parameter.name}: {parameter.kind}, {parameter.dtype.name}{shape}{tolerance}")
        click.echo(f"  check sizes: {_sizes(found.sizes.check)}")
        click.echo(f"  timed sizes: {_sizes(found.sizes.timed) or 'none'}")
        click.echo(f"  folder: {found.folder}\n")
        click.echo(found.reference, nl=False)


def _sizes(sets: tuple[dict[str, int], ...]) -> str:
    return "; ".join(", ".join(f"{name} = {value}" for name, value in sizes.items()) for sizes in sets)


def _document(found: Any) -> dict[str, Any]:
    return {
        **{
            key: getattr(found, key)
            for key in ("name", "title", "tier", "split", "origin", "function", "abi", "hash", "signature")
        },
        "allow": list(found.allow),
        "parameters": [
            {"name": p.name, "kind": p.kind, "dtype": p.dtype.name, "shape": [str(extent) for extent in p.shape]}
            for p in found.parameters
        ],
        "sizes": {"check": list(found.sizes.check), "timed": list(found.sizes.timed)},
        "reference": found.reference,
        "folder": str(found.folder),
    }


@task.command()
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Check every task that `task list` shows.")
@json_option
def check(names: tuple[str, ...], every: bool, as_json: bool) -> None:
    """Prove tasks sound: the reference ends under sanitizers, every input matters, nothing cheap passes.

    \b
    Example:
      regraph task check saxpy my/tasks/blur
    """
    from regraph_db.errors import InputError
    from regraph_db.settings import load, section
    from verify.reference import References
    from verify.settings import VerifySettings
    from verify.soundness import Soundness, check_task
    from verify.task import list_tasks, load_task

    if every == bool(names):
        raise click.UsageError("Name some tasks, or say --all.")
    settings = section("verify", VerifySettings)
    references = References(settings, load().cache_folder / "verify")
    results = []
    for found in list_tasks() if every else [load_task(name) for name in names]:
        try:
            result = check_task(found, references, settings)
        except InputError as error:
            result = Soundness(found.name, (str(error),), ())
        results.append(result)
        if not as_json:
            click.echo(f"{result.task}: {'sound' if result.sound else 'not sound'}")
            for text in (*result.problems, *result.notes):
                click.echo(f"  {'note' if text in result.notes else 'problem'}: {text}")
    if as_json:
        print_json(
            [{"task": r.task, "sound": r.sound, "problems": list(r.problems), "notes": list(r.notes)} for r in results]
        )
    if not all(result.sound for result in results):
        click.get_current_context().exit(1)
