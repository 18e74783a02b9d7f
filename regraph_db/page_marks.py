"""Parts of a hand-written page that a command writes: what stands between ``<!-- NAME: begin -->`` and its end."""

from __future__ import annotations

from pathlib import Path

from regraph_db.errors import InputError


def replace(page: Path, name: str, text: str) -> None:
    """Put ``text`` between the marks of ``name`` in ``page``. Raises :class:`InputError` when it has none."""
    page.write_text(replaced(page.read_text(encoding="utf-8"), name, text, str(page)), encoding="utf-8")


def replaced(page: str, name: str, text: str, where: str = "") -> str:
    """``page`` with ``text`` between the marks of ``name``."""
    first, last = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not (begin and end):
        raise InputError(f"no marks in it ({first} … {last}).", where=where)
    return f"{before}{first}\n\n{text}\n{last}{after}"
