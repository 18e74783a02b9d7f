"""Which tasks teach and which test: a seeded choice that each task's name decides alone.

A name's place does not depend on the other tasks, so that adding a task never moves another one across the line.
"""

from __future__ import annotations

import hashlib

#: The choice is made by this number and nothing else; `docs/cudaeval.md` says how it was picked.
SEED = 1
#: One task in so many tests.
EVERY = 3


def split_of(name: str, seed: int = SEED) -> str:
    """``test`` for one task in three, ``train`` for the others."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return "test" if int.from_bytes(digest[:8], "big") % EVERY == 0 else "train"
