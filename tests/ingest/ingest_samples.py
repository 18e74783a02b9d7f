"""Trajectories and graphs that the ingest tests compare."""

from __future__ import annotations

from typing import Any

from regraph_db.store import GraphStore


def step(method: str, body: str, function: str = "f") -> dict[str, str]:
    """A step whose code compiles and differs by ``body``."""
    code = f'extern "C" void {function}(float* x, int n) {{ {body} }}\n'
    return {"think": "it pays", "method": method, "detail": "applied", "code": code}


def line(*steps: dict[str, str], **fields: Any) -> dict[str, Any]:
    """A trajectory as it stands in a file."""
    return {"author": "a test", **fields, "steps": list(steps)}


def knowledge(store: GraphStore) -> dict[str, Any]:
    """The whole knowledge half of a graph, without the times of decisions."""
    return {
        "techniques": [(t.model_dump(), examples, trajectories) for t, examples, trajectories in store.techniques()],
        "aliases": [a.model_dump(exclude={"decided_at"}) for a in store.aliases()],
        "transitions": [t.model_dump() for t in store.transitions()],
        "trajectories": sorted(t.model_dump_json() for t in store.trajectories()),
    }
