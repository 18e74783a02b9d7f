"""The documents tell the truth: help pages are fresh, every command line in them exists, links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from regraph_db.cli import regraph

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docker").glob("*.md"), *(ROOT / "slm").glob("*.md")]
)
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))


def fenced_lines(page: Path) -> list[str]:
    """The command lines of a page's shell blocks; continued lines joined, prompts and comments taken off."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(?:sh|console|bash)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip().removeprefix("$ ") for line in lines]


def commands(page: Path, program: str) -> list[str]:
    lines = fenced_lines(page) + re.findall(rf"`({program} [^`]+)`", page.read_text(encoding="utf-8"))
    found = [re.search(rf"(?:^|\s|\|)({program} .*)$", line) for line in lines]
    return [match[1] for match in found if match]


def test_help_pages_are_fresh() -> None:
    result = subprocess.run(
        [sys.executable, "docs/commands/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def resolve(words: list[str]) -> None:
    """Walk to the command and check each option's name; raises on an unknown one."""
    command: click.Command = regraph
    context = click.Context(regraph, info_name="regraph")
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        child = command.get_command(context, words[0])
        assert child is not None, f"no command {words[0]!r} in {command.name}"
        command, words = child, words[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    known = {
        option for parameter in command.get_params(context) for option in (*parameter.opts, *parameter.secondary_opts)
    }
    known |= {"--debug", "--version"}
    for word in words:
        if word.startswith("--") and len(word) > 2:
            assert word.partition("=")[0] in known, f"{word} is no option of {command.name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_page_exist(page: Path) -> None:
    for line in commands(page, "regraph"):
        line = re.split(r"\s(?:\||>|&&|#|;)", line.replace("…", "").replace("[", "").replace("]", ""))[0]
        resolve(shlex.split(line)[1:])
    for line in commands(page, "make"):
        target = next((word for word in line.split()[1:] if "=" not in word), "help")
        assert target.strip(".,;)") in TARGETS, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target
