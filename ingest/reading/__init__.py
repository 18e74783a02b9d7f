"""Readers: trajectory files of every format as drafts, one at a time. Nothing is believed here; see
``ingest.checks``."""

from ingest.reading.draft import Draft, Rejection
from ingest.reading.formats import FORMATS, read
from ingest.reading.lines import STDIN

__all__ = ["FORMATS", "STDIN", "Draft", "Rejection", "read"]
