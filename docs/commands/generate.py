"""Write the pages of this folder from the commands' own help; ``--check`` only compares."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from regraph_db.cli import regraph

HERE = Path(__file__).parent


def helps(command: click.Command, words: list[str], parent: click.Context | None) -> Iterator[tuple[str, str]]:
    """``(command line, help text)`` of a command and everything below it."""
    context = click.Context(command, info_name=words[-1], parent=parent, max_content_width=100, terminal_width=100)
    yield " ".join(words), command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from helps(child, [*words, name], context)


def page(name: str, command: click.Command) -> str:
    """One page: the group's help and that of each command in it."""
    root = click.Context(regraph, info_name="regraph")
    parts = [f"# regraph {name}\n\n*Generated from the commands' own help by `docs/commands/generate.py`.*\n"]
    for line, text in helps(command, ["regraph", name], root):
        heading = "" if line == f"regraph {name}" else f"\n## {line}\n"
        parts.append(f"{heading}\n```text\n{text}\n```\n")
    return "".join(parts)


def pages() -> dict[Path, str]:
    """Every page's path and text."""
    context = click.Context(regraph, info_name="regraph")
    result = {}
    for name in regraph.list_commands(context):
        command = regraph.get_command(context, name)
        assert command is not None
        result[HERE / f"{name}.md"] = page(name, command)
    return result


def main() -> int:
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.name} is stale: run docs/commands/generate.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages()[path], encoding="utf-8")
        print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
