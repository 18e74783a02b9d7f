"""Relabelling: free-text methods onto techniques, cheapest way first, every decision recorded as an alias."""

from ingest.relabel.decide import Relabeller
from ingest.relabel.nearest import Candidate, Nearest

__all__ = ["Candidate", "Nearest", "Relabeller"]
