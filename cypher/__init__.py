"""Every Cypher statement the service runs, one file each, sorted by purpose."""

from functools import cache
from importlib.resources import files


@cache
def statement(name: str) -> str:
    """The text of ``cypher/NAME.cypher``, e.g. ``statement("search/finish_rollout")``."""
    return files(__name__).joinpath(f"{name}.cypher").read_text(encoding="utf-8")
