"""The records that every part speaks: frozen, validated, with the same JSON form in files, stores and reports.

Ids are content hashes (trajectories, steps) or given by the writer (searches, rollouts, attempts, runners), so that
writing the same thing twice is one write. Times are UTC. Durations are seconds. Speedups are ratios, baseline time over
candidate time, so that larger is better.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

#: The name of the graph's root technique: the sequential code, before any step.
ROOT = "init"

Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
Speedup = Annotated[float, Field(gt=0)]


class Record(BaseModel):
    """The base of every record: frozen, unknown fields refused, NaN and infinities refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def content_id(*parts: object) -> str:
    """The SHA-256 of ``parts`` in canonical JSON, as 32 hexadecimal digits."""
    text = json.dumps(parts, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def now() -> datetime:
    """This moment in UTC."""
    return datetime.now(UTC)


# -- what the judge says -------------------------------------------------------------------------------------


class VerdictKind(StrEnum):
    """What is true of a candidate."""

    PASSED = "passed"  #: right at the level named, on every check and hidden size
    COMPILE_ERROR = "compile_error"  #: nvcc refuses it, or its signature is not the task's
    LAUNCH_ERROR = "launch_error"  #: a kernel launch or a CUDA call returned an error
    RUNTIME_ERROR = "runtime_error"  #: it crashed, read or wrote out of bounds, raced, or diverged at a barrier
    TIMEOUT = "timeout"  #: it was killed at its deadline
    WRONG_RESULT = "wrong_result"  #: an output differs from the reference by more than the tolerance
    NONDETERMINISTIC = "nondeterministic"  #: the same inputs gave outputs that differ by more than the tolerance
    REWARD_HACK = "reward_hack"  #: it tried to look right or fast without being so
    UNSUPPORTED = "unsupported"  #: this level cannot run such code; nothing is said about it
    HARNESS_ERROR = "harness_error"  #: our fault; never a reward


class Level(StrEnum):
    """How a verdict was reached, weakest first."""

    NONE = "none"  #: nothing was verified
    COMPILE = "compile"  #: nvcc accepts it
    FUNCTIONAL = "functional"  #: run on the CPU, results and races checked; speed not measured
    MODELLED = "modelled"  #: functional, and a time *modelled* for a named GPU
    GPU = "gpu"  #: run, checked and timed on a GPU


class Interval(Record):
    """A figure with its 95 % bootstrap interval."""

    median: float
    low: float
    high: float


class Evidence(Record):
    """What a verdict rests on; empty where a level does not use it."""

    gpu: str = ""  #: the GPU's name as its driver gives it; at level ``modelled`` the profile's name
    driver: str = ""  #: the driver's version
    nvcc: str = ""  #: the compiler's release, e.g. ``13.0.88``
    flags: tuple[str, ...] = ()  #: the compiler's flags
    host: str = ""  #: the host compiler and processor
    sizes: tuple[dict[str, int], ...] = ()  #: the named sizes that were run, in order
    samples: int = 0  #: timed samples a side
    date: datetime | None = None  #: when it was judged


class Verdict(Record):
    """The judge's answer about one candidate."""

    verdict: VerdictKind
    reason: str = ""  #: one line for a person; for ``reward_hack`` and ``unsupported`` what was seen
    level: Level = Level.NONE  #: the level that the verdict was reached at
    log: str = ""  #: the compiler's or runner's words, cut to a sane length
    speedup: Interval | None = None  #: measured, baseline over candidate; ``None`` where speed was not measured
    candidate_seconds: Seconds | None = None  #: measured seconds of one call at the timed size
    baseline_seconds: Seconds | None = None  #: measured seconds of the baseline's call at the timed size
    baseline: str = ""  #: what the baseline was: ``reference`` (sequential, one core) or a kernel's content id
    bound_share: float | None = None  #: share of the GPU's limit reached, 0 to 1, measured
    unstable: bool = False  #: the timing did not settle within its time limit
    modelled_seconds: Seconds | None = None  #: *modelled* seconds of one call at the timed size, never measured
    #: the baseline's *modelled* (GPU) or CPU-timed seconds, as ``model_terms`` says
    modelled_baseline_seconds: Seconds | None = None
    modelled_speedup: Speedup | None = None  #: *modelled*, baseline over candidate
    #: the model's explanation: time by term, what binds it, …
    model_terms: dict[str, Any] = Field(default_factory=dict)
    evidence: Evidence = Evidence()

    @property
    def passed(self) -> bool:
        return self.verdict is VerdictKind.PASSED


# -- knowledge: trajectories, techniques, transitions --------------------------------------------------------


class Technique(Record):
    """A node of the reasoning graph: an optimisation's name, without code."""

    name: str = Field(min_length=1)  #: its identity, as a person reads it, e.g. ``shared memory tiling``
    description: str = ""  #: one line
    shipped: bool = False  #: it stands in the shipped table, and needs no trajectory to exist


class Alias(Record):
    """A decision that the free text ``alias`` names ``technique``."""

    alias: str = Field(min_length=1)  #: the normalised free text, see :func:`normalise`
    technique: str = Field(min_length=1)  #: the technique's name; it may itself be an alias, chains are followed
    author: str = Field(min_length=1)  #: ``table``, ``similar``, ``model:NAME``, ``person:NAME`` or ``new``
    score: float | None = None  #: the similarity or confidence that decided, 0 to 1
    decided_at: datetime = Field(default_factory=now)
    review: bool = False  #: doubtful: listed by ``technique review``


class Step(Record):
    """One step of a trajectory: a technique applied, with the whole code after it. It is the example of its
    transition."""

    think: str = ""  #: why
    method: str = Field(min_length=1)  #: the technique in the author's own words; aliases map it to a technique
    detail: str = ""  #: how it is applied
    code: str = Field(min_length=1)  #: the whole code after the step
    verdict: Verdict | None = None  #: what the judge said of ``code``; ``None`` when nothing was verified


class Trajectory(Record):
    """One kernel optimised step by step."""

    task: str = ""  #: the task's name; empty when unknown
    author: str = ""  #: the model or person who wrote it
    function: str = ""  #: the kernel's name, the same in every step
    source: str = ""  #: the code before the first step (the sequential code); empty when unknown
    steps: tuple[Step, ...] = Field(min_length=1)
    search: str = ""  #: the search that found it, when one did
    whole: str = ""  #: the id of what the author wrote, where that was cut behind a step that failed

    @property
    def id(self) -> str:
        """A hash of what the author wrote; verdicts, cuts and aliases do not change it."""
        if self.whole:
            return self.whole
        steps = [[s.think, s.method, s.detail, s.code] for s in self.steps]
        return content_id("trajectory", self.task, self.author, self.function, self.source, steps)

    def step_id(self, index: int) -> str:
        """The id of step ``index``."""
        return f"{self.id}:{index}"


class TransitionStatistics(Record):
    """Counts and sums over the examples and searches of one transition; means are derived, never stored.

    A *gain* is log2 of (time before the step / time after it), both measured on the same GPU by the judge. *Returns*
    are search returns of edges along this transition; measured and modelled ones are never mixed.
    """

    examples: Count = 0
    gain_count: Count = 0
    gain_sum: float = 0.0
    return_count: Count = 0
    return_sum: float = 0.0
    modelled_count: Count = 0
    modelled_sum: float = 0.0

    @property
    def mean_gain(self) -> float | None:
        return self.gain_sum / self.gain_count if self.gain_count else None


class Transition(Record):
    """A directed edge of the reasoning graph: after ``before``, ``after`` was applied. Self-loops and cycles are
    legal."""

    before: str
    after: str
    statistics: TransitionStatistics = TransitionStatistics()


class Example(Record):
    """One step seen as an example of its transition."""

    id: str  #: the step's id
    task: str = ""
    function: str = ""
    transition: tuple[str, str]  #: names of the techniques before and after
    method: str = ""  #: the author's words
    think: str = ""
    detail: str = ""
    before: str = ""  #: the code before the step; empty when unknown
    after: str  #: the code after it
    verdict: Verdict | None = None
    gain: float | None = None  #: log2 of the measured time ratio, see :class:`TransitionStatistics`
    similarity: float | None = None  #: cosine to what was asked for, when something was


class TaskReference(Record):
    """Which task a search works on, held by its content and not by a path."""

    name: str
    hash: str  #: content hash of the task folder


# -- search --------------------------------------------------------------------------------------------------


class SearchStatus(StrEnum):
    OPEN = "open"
    FINISHED = "finished"


class Search(Record):
    """One Monte Carlo graph search (or a baseline's run) over one task, shared by any number of runners."""

    id: str
    task: TaskReference
    strategy: str = "mcgs"
    level: Level  #: what its rewards rest on: ``gpu``, ``modelled`` or ``functional``
    settings: dict[str, Any] = Field(default_factory=dict)  #: every setting of the strategy, enough to rerun it
    model: str = ""  #: who generated, e.g. the GGUF file's name and hash
    seed: int = 0
    budget: Count  #: generator calls that may be spent in all
    start_code: str = ""  #: the code at the root: the sequential reference, or the user's kernel
    status: SearchStatus = SearchStatus.OPEN
    created_at: datetime = Field(default_factory=now)
    calls: Count = 0  #: generator calls spent; kept by the store
    reserved: Count = 0  #: calls granted to rollouts that have not ended; kept by the store
    best_attempt: str | None = None  #: the answer's attempt id, set when the search finishes
    summary: dict[str, Any] = Field(default_factory=dict)  #: what the runner reports at the end (seconds by part, …)


class State(Record):
    """A node of a search: a technique reached in it, with the best verified code that arrived there."""

    id: str
    technique: str
    expanded: bool = False  #: its successors stand in the search
    visits: Count = 0  #: rollouts that passed through it; for ``paper`` mode's node counters
    value_sum: float = 0.0
    best_speedup: Speedup | None = None  #: of its best verified code, in the search's own kind of speed
    best_attempt: str | None = None  #: the attempt that wrote that code


class ExploredEdge(Record):
    """A directed edge of a search, with sums; Q is derived as ``value_sum / visits``."""

    source: str  #: state id
    target: str  #: state id
    prior: float = 0.0  #: order of first visits; larger first
    visits: Count = 0  #: finished rollouts through it
    value_sum: float = 0.0  #: sum of their returns
    value_sq_sum: float = 0.0  #: sum of their squared returns
    best: float | None = None  #: the largest return
    in_flight: Count = 0  #: begun and not yet finished rollouts through it
    refusals: Count = 0  #: answers ``suitable: no``; masked after two

    @property
    def q(self) -> float | None:
        return self.value_sum / self.visits if self.visits else None


class SearchSnapshot(Record):
    """What selection reads, in one round trip; no code."""

    search: Search
    root: str  #: the root state's id
    states: tuple[State, ...]
    edges: tuple[ExploredEdge, ...]


class Runner(Record):
    """A process that works on a search."""

    id: str
    search: str
    host: str = ""
    pid: int = 0
    lease: float = Field(60.0, gt=0)  #: seconds without a heartbeat after which its unfinished rollouts are taken back
    heartbeat_at: datetime = Field(default_factory=now)  #: kept by the store's clock


class Rollout(Record):
    """A rollout that begins: what it holds in flight until it finishes or its runner's lease ends."""

    id: str
    search: str
    runner: str
    path: tuple[tuple[str, str], ...]  #: the selected edges (source, target), from the root; may be empty
    calls: Count  #: generator calls it asks for


class Attempt(Record):
    """One generator call and what the judge said of its answer."""

    id: str
    search: str
    rollout: str
    index: Count = 0  #: its place within the rollout
    source: str | None = None  #: state id that the code came from
    target: str | None = None  #: state id that it was to reach
    technique: str = ""
    example: str | None = None  #: the example's id, when one was in the prompt
    parent: str | None = None  #: the attempt whose code was rewritten; ``None`` is the start code
    #: ``answered``, or the generator's failure: no_code, truncated, unsuitable, unchanged, failed
    outcome: str = "answered"
    code: str = ""
    verdict: Verdict | None = None
    reward: float | None = None
    speedup: Speedup | None = None  #: in the search's own kind of speed (measured or modelled)
    generate_seconds: Seconds = 0.0
    verify_seconds: Seconds = 0.0
    created_at: datetime = Field(default_factory=now)


class EdgeReturn(Record):
    """What one finished rollout adds to one edge."""

    source: str
    target: str
    value: float | None = None  #: the return; ``None`` counts no visit (an unsuitable edge)
    refusals: Count = 0


class RolloutResult(Record):
    """What a finished rollout writes, in one atomic step."""

    rollout: str  #: the rollout's id: finishing it again changes nothing
    search: str
    returns: tuple[EdgeReturn, ...] = ()
    states: tuple[State, ...] = ()  #: states first reached by it (with edges), in any order
    edges: tuple[ExploredEdge, ...] = ()  #: edges first walked by it; sums are ignored
    attempts: tuple[Attempt, ...] = ()
    calls: Count = 0  #: generator calls really spent
    returned_at_nodes: tuple[tuple[str, float], ...] = ()  #: (state, return) for ``paper`` mode's node counters


class Counts(Record):
    """How much a graph holds."""

    techniques: Count = 0
    aliases: Count = 0
    trajectories: Count = 0
    steps: Count = 0
    transitions: Count = 0
    examples: Count = 0
    searches: Count = 0
    attempts: Count = 0


class MergeReport(Record):
    """What a batch of trajectories changed."""

    merged: Count = 0
    verified: Count = 0  #: known ones whose verdicts reach further than those that stood there, and replaced them
    duplicates: Count = 0
    steps: Count = 0
    new_techniques: tuple[str, ...] = ()
    known_techniques: Count = 0
    new_transitions: Count = 0
    known_transitions: Count = 0


class Problem(Record):
    """A broken invariant that ``db check`` found."""

    invariant: str  #: its name, e.g. ``transition_counts``
    where: str  #: the node or edge
    detail: str  #: what is and what should be
    repairable: bool = False
