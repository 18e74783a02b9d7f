"""The frame of the ``regraph`` command: finds its commands by entry points, prints errors as one paragraph.

Commands import their heavy parts inside their bodies, so that ``regraph --help`` stays quick.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import entry_points, version
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

INTERRUPTED = 130


class Commands(click.Group):
    """A group whose commands are the entry points of ``regraph.commands``, each imported only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(point.name for point in entry_points(group="regraph.commands"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for point in entry_points(group="regraph.commands", name=cmd_name):
            command: click.Command = point.load()
            return command
        return None


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(version("regraph"), prog_name="regraph")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def regraph(ctx: click.Context, debug: bool) -> None:
    """Make small local language models write fast CUDA, with a graph that remembers what pays.

    \b
    Example:
      regraph doctor
      regraph ingest add trajectories.jsonl
      regraph search run saxpy --model model.gguf
    """
    ctx.obj = {"debug": debug}


def main() -> None:
    """Run the command line; every error ends in its exit code and one paragraph on stderr."""
    from regraph_db.errors import RegraphError

    debug = "--debug" in sys.argv
    try:
        sys.exit(regraph.main(standalone_mode=False) or 0)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("Interrupted; what was acknowledged is kept.", err=True)
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except RegraphError as error:
        if debug:
            raise
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        if debug:
            raise
        click.echo(
            f"Error: a fault of regraph itself ({type(error).__name__}: {error}). "
            "Run again with --debug and report it.",
            err=True,
        )
        sys.exit(4)


def json_option(command: F) -> F:
    """``--json``: one JSON document on stdout instead of text for people."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")(command)


def store_option(command: F) -> F:
    """``--store URL``: which graph; settings say the default."""
    return click.option(
        "--store",
        metavar="URL",
        help="The graph: sqlite:///FILE, neo4j://HOST or bolt://HOST.  [default: the setting `store`]",
    )(command)


def print_json(document: object) -> None:
    """One JSON document on stdout; pydantic records and paths inside it are written as their JSON forms."""
    click.echo(json.dumps(document, default=_jsonable, ensure_ascii=False, indent=2))


def _jsonable(value: Any) -> object:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    return str(value)
