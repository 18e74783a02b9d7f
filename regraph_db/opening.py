"""Opening the store that a URL names."""

from __future__ import annotations

from regraph_db.errors import InputError
from regraph_db.settings import Settings
from regraph_db.store import GraphStore


def open_store(settings: Settings, *, url: str | None = None, create: bool = False) -> GraphStore:
    """Open the store that ``url`` (else the settings) names.

    With ``create`` a missing schema is made. Raises :class:`InputError` for an unknown scheme.
    """
    url = url or settings.store
    scheme = url.partition("://")[0]
    if scheme == "sqlite":
        # Only the store that is asked for is imported: the Neo4j driver alone takes as long as a whole command.
        from regraph_db.sqlite import SqliteStore

        return SqliteStore.open(url, settings, create=create)
    if scheme.partition("+")[0] in ("neo4j", "bolt"):
        from regraph_db.neo4j import Neo4jStore

        return Neo4jStore.open(url, settings, create=create)
    raise InputError(
        f"unknown store scheme `{scheme}`.",
        where=url,
        fix="Use sqlite:///FILE, neo4j://HOST or bolt://HOST (with +s or +ssc for TLS).",
    )
