"""The table ``[search]`` of the settings: every decision of the search, its default and where it comes from.

"paper" is ReGraphT (arXiv 2510.19873); "ours" marks what the paper leaves open. ``mode = "paper"`` sets every
decision of ours that changes a result to the literal reading, unless it is given by name; :data:`PAPER` is that
reading.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from regraph_db.settings import Section, cores

#: The literal reading of the paper: what ``mode = "paper"`` means.
PAPER: dict[str, Any] = {
    "statistics": "nodes",
    "exploration": 1.0,
    "scale": "raw",
    "prior": "count",
    "returns": "rollout",
    "visit_penalty": 1.0,
    "edge_repeats": 0,
    "node_repeats": 0,
    "example": "first",
    "answer": "seen",
    "reward_scale": "paper",
    "backup": "mean",
    "state": "technique",
    "repair": False,
    "early_stop": 0,
}


class SearchSettings(Section):
    """How kernels are searched."""

    mode: Literal["graph", "paper"] = Field(
        "graph", description="graph: our decisions; paper: the literal reading of arXiv 2510.19873"
    )
    budget: int = Field(200, ge=1, description="generator calls that a search may spend (paper: 200)")
    step_cap: int = Field(10, ge=1, description="steps of one rollout (paper, read from its ablation 5/10/20)")
    statistics: Literal["edges", "nodes"] = Field(
        "edges", description="where N and Q live: on edges (ours, after KataGo) or on nodes (paper)"
    )
    exploration: float = Field(
        2.0, ge=0, description="c of the selection bound; in units of `scale` (paper: 1 raw; ours: 2 sigma)"
    )
    scale: Literal["sigma", "raw"] = Field(
        "sigma",
        description="unit of c and lambda: the standard deviation of this search's returns, or 1 (ours; paper: raw)",
    )
    sigma_floor: float = Field(0.5, gt=0, description="the least sigma (ours)")
    prior: Literal["gain", "count", "none"] = Field(
        "gain", description="order of first visits: measured gain and examples, examples alone (paper), or by name"
    )
    returns: Literal["suffix", "rollout"] = Field(
        "suffix", description="an edge's return: the best reward from its step on (ours), or the rollout's best (paper)"
    )
    backup: Literal["mean", "max", "recursive"] = Field(
        "mean", description="Q from returns: mean (paper), the best one, or over the edges below as well (ours)"
    )
    visit_penalty: float = Field(
        0.5,
        ge=0,
        description="lambda of the rollout policy Q - lambda N, in units of `scale` (paper: 1 raw; ours: 0.5 sigma)",
    )
    epsilon: float = Field(0.1, ge=0, le=1, description="share of random steps in a rollout (paper: epsilon, 0.1 ours)")
    edge_repeats: int = Field(
        1, ge=0, description="times that a rollout may walk one edge; 0: no limit (ours; paper: 0)"
    )
    node_repeats: int = Field(
        2, ge=0, description="times that a rollout may stand at one node; 0: no limit (ours; paper: 0)"
    )
    state: Literal["technique", "applied"] = Field(
        "technique", description="a state is a technique (paper), or a technique and the set of those applied (ours)"
    )
    refusals: int = Field(2, ge=1, description="answers `suitable: no` after which an edge is masked (ours)")
    attempts_at_node: int = Field(
        5, ge=1, description="refused answers in a row at one node of a rollout (paper: at most 5)"
    )
    example: Literal["nearest", "first"] = Field(
        "nearest",
        description="example of an edge: the one whose code before is most like ours (ours), or the first (paper)",
    )
    reward_scale: Literal["paper", "log2"] = Field(
        "paper", description="reward of a faster kernel: its speedup (paper), or the speedup's log2 (ours)"
    )
    repair: bool = Field(False, description="one more call with the compiler's words after a failed step (ours)")
    early_stop: int = Field(0, ge=0, description="calls without a gain after which the search stops; 0: never (ours)")
    early_stop_gain: float = Field(0.02, ge=0, description="the gain that counts for `early_stop`, as a share (ours)")
    answer: Literal["retime", "seen"] = Field(
        "retime", description="the answer: the best candidates timed again (ours), or the fastest seen (paper)"
    )
    retime: int = Field(3, ge=1, description="candidates timed again at the end (ours)")
    fsr_candidates: int = Field(5, ge=1, description="N of FSR: candidates a round (arXiv 2506.09092 gives none; ours)")
    fsr_rounds: int = Field(
        5, ge=1, description="D of FSR: rounds before it starts afresh (arXiv 2506.09092 gives none; ours)"
    )
    overlap: int = Field(
        2, ge=1, le=64, description="rollouts that one runner interleaves, so that judging and writing overlap (ours)"
    )
    lease: float = Field(
        60.0, gt=0, description="seconds without a heartbeat after which a runner's rollouts are taken back (ours)"
    )
    temperature: float = Field(0.7, ge=0, le=2, description="sampling temperature (paper: 0.7 for its teacher)")
    top_p: float = Field(0.9, gt=0, le=1, description="nucleus of the sampling (paper: 0.9 for its teacher)")
    max_tokens: int = Field(2048, ge=16, description="tokens of one answer (ours)")
    answer_limit: int = Field(
        200_000, ge=1_000, description="characters of an answer that are read; a longer one is truncated (ours)"
    )
    context: int = Field(
        0, ge=0, description="tokens of context; 0: as many as the model was trained for, at most 16384 (ours)"
    )
    threads: int = Field(
        0, ge=0, description="threads of llama.cpp; 0: half the cores, for the other half compiles (ours)"
    )
    gpu_layers: int = Field(
        -1, ge=-1, description="layers of the model on the GPU where llama.cpp was built for one; -1: all (ours)"
    )
    generator_seconds: float = Field(300.0, gt=0, description="deadline of one answer (ours)")
    retries: int = Field(2, ge=0, description="further tries of a generator or judge that failed (ours)")
    failures: int = Field(
        5, ge=1, description="failed calls in a row after which the search stops with its state kept (ours)"
    )

    def threads_each(self, models: int) -> int:
        """Threads of each of ``models`` on this machine, which share half of the cores."""
        return self.threads or max(1, cores() // 2 // models)

    @model_validator(mode="before")
    @classmethod
    def _literal_reading(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("mode") == "paper":
            return {**PAPER, **given}
        return given
