"""What a reader gives: drafts and rejections, each with its place in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Draft:
    """A trajectory as it was found: unchecked fields, and what had to be repaired to read them."""

    where: str  #: file and line, or file and part
    fields: Mapping[str, Any]
    repairs: tuple[str, ...] = ()
    strict: bool = True  #: unknown fields are an error; a model's answer may hold more than it was asked for


@dataclass(frozen=True)
class Rejection:
    """Something that is no trajectory, with the reason and what was found there."""

    where: str
    reason: str
    content: object = ""
