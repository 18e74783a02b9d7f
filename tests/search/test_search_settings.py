"""Every setting stands in the documents, with its default and what paper mode makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from search.settings import PAPER, SearchSettings

PAGE = (Path(__file__).parents[2] / "docs" / "search.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SearchSettings.model_fields)
def test_the_page_tells_the_truth(name: str) -> None:
    field = SearchSettings.model_fields[name]
    default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    assert f"| `{name}` | {default} | {PAPER.get(name, '')} | {field.description} |" in PAGE
