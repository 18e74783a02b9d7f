"""What the structure promises: imports run downward, commands are light, locks name no registry."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: What each package may import of the others (docs/architecture.md).
MAY_IMPORT = {
    "cypher": set[str](),
    "regraph_db": {"cypher"},
    "verify": {"regraph_db"},
    "ingest": {"regraph_db", "verify"},
    "search": {"regraph_db", "verify"},
    "cudaeval": {"regraph_db", "verify", "ingest", "search"},
    "slm": {"regraph_db", "verify", "ingest", "search", "cudaeval"},
}
#: Seams that stand above their place, each with its reason.
ALLOWED = {
    ("ingest", "search"): "the relabeler's model and the teacher are the same generators that a search uses",
}
HEAVY = ("pydantic", "numpy", "neo4j", "rich", "llama_cpp", "langchain", "tree_sitter", "plotly")


def imported_packages(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_downward(package: str) -> None:
    allowed = MAY_IMPORT[package] | {package} | {upper for (lower, upper) in ALLOWED if lower == package}
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    upward = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imported_packages(path) & MAY_IMPORT.keys() - allowed
    }
    assert not upward


def test_every_command_loads_and_has_help() -> None:
    points = entry_points(group="regraph.commands")
    assert {"db", "ingest", "technique", "task", "verify", "search", "eval", "doctor"} <= {
        point.name for point in points
    }
    for point in points:
        assert point.load().help, point.name


def test_help_imports_nothing_heavy() -> None:
    probe = (
        "import sys\nfrom regraph_db.cli import regraph\n"
        "try: regraph.main(['--help'], standalone_mode=False)\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"
    assert "search" in result.stdout


def test_locks_are_hashed_and_name_no_registry() -> None:
    for lock in (ROOT / "requirements").glob("*.txt"):
        text = lock.read_text(encoding="utf-8")
        pinned = re.findall(r"^[\w.\-]+==", text, flags=re.MULTILINE)
        assert len(pinned) > 10
        assert text.count("--hash=sha256:") >= len(pinned)
        assert "://" not in text
