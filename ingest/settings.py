"""The table ``[ingest]`` of the settings."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from regraph_db.settings import Section

Verification = Literal["none", "compile", "functional", "gpu"]
Relabelling = Literal["exact", "similar", "model"]


class IngestSettings(Section):
    """How trajectories come in. "Ours" marks a figure that no paper gives."""

    verify: Verification = Field("functional", description="level that every step is judged at before the merge (ours)")
    relabel: Relabelling = Field(
        "similar", description="exact: table and aliases; similar: and embedding; model: and a model in between (ours)"
    )
    onto: Literal["table", "graph"] = Field(
        "table",
        description="what similarity alone may relabel onto: the shipped table, so that no order of ingestion matters, "
        "or also techniques first seen in trajectories, as the paper does (arXiv 2510.19873)",
    )
    accept: float = Field(
        0.81,
        ge=0,
        le=1,
        description="confidence from which a name is relabelled without asking: the smallest from which on precision "
        "is 0.975 on ingest/relabel/calibration.toml",
    )
    doubt: float = Field(
        0.10,
        ge=0,
        le=1,
        description="confidence below which a name is new without doubt; tuned on ingest/relabel/pairs.toml",
    )
    candidates: int = Field(
        10, ge=1, le=10, description="techniques that a model chooses from, whatever the graph's size (ours)"
    )
    model: str | None = Field(
        None,
        description="decides doubtful names: FILE.gguf or langchain:PROVIDER/NAME; default: the setting `model`",
    )
    batch: int = Field(200, ge=1, description="trajectories merged in one transaction (ours)")
    in_flight: int = Field(8, ge=1, description="trajectories being judged at once (ours)")
    line_limit: int = Field(
        16_000_000, ge=1_000, description="bytes of one line; a longer one is rejected unread (ours)"
    )
    document_limit: int = Field(
        64_000_000, ge=1_000, description="bytes of a file that is one document and no JSON lines (ours)"
    )
    code_limit: int = Field(200_000, ge=1_000, description="characters of one step's code (ours)")
    text_limit: int = Field(20_000, ge=100, description="characters of one think or detail (ours)")
    step_limit: int = Field(100, ge=1, description="steps of one trajectory (ours)")
    teacher: str | None = Field(
        None, description="model that `regraph ingest teach` asks: langchain:PROVIDER/NAME or FILE.gguf"
    )
    temperature: float = Field(0.7, ge=0, le=2, description="the teacher's sampling temperature (arXiv 2510.19873)")
    top_p: float = Field(0.9, gt=0, le=1, description="the teacher's nucleus (arXiv 2510.19873)")
    max_tokens: int = Field(8192, ge=1, description="tokens of one answer of the teacher (arXiv 2510.19873)")
    retries: int = Field(5, ge=0, description="further tries of one question after an error that may pass (ours)")
    backoff: float = Field(
        1.0, ge=0, description="seconds before the first further try, doubled each time, at most 60 (ours)"
    )
    timeout: float = Field(300.0, gt=0, description="seconds that one answer may take (ours)")
    workers: int = Field(4, ge=1, description="questions asked at once (ours)")
