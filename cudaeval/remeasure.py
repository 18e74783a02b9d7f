"""`regraph eval remeasure`: what a GPU says of the kernels that searches by modelled speed found.

Such a search picks its answer by a time that was never measured. Here every right kernel that it generated is timed
against the picked one on a GPU, the two in turn, so that one share tells what trusting the model has cost: the time of
the best kernel over the time of the picked one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cudaeval.metrics import geometric_mean
from cudaeval.results import Sample, Terms
from cudaeval.shipped import code_hash
from regraph_db.errors import InputError, NotFound
from regraph_db.opening import open_store
from regraph_db.records import Attempt, Evidence, Level, Record, Seconds, Verdict, now
from regraph_db.settings import load
from verify import load_task

if TYPE_CHECKING:
    from verify import Judge, Task


@dataclass(frozen=True)
class Found:
    """The right kernels of one search, each once, and the one that it picked."""

    sample: Sample
    task: Task
    picked: Attempt
    others: tuple[Attempt, ...]


class Remeasured(Record):
    """One search, measured. Times are in seconds of one call at the timed size."""

    task: str
    strategy: str
    sample: int
    search: str
    kernels: int  #: different kernels that the search held for right
    right: int  #: of them, those that the GPU holds for right too
    modelled: Seconds | None = None  #: of the picked kernel
    picked: Seconds | None = None  #: measured; ``None`` where the GPU does not hold the picked kernel for right
    best: Seconds | None = None  #: of the fastest right kernel, measured beside the picked one
    share: float | None = None  #: best over picked, at most 1
    reason: str = ""  #: why there is no share


class Remeasurement(Record):
    """The whole record, as it is written."""

    level: Level
    budget: int
    model: str
    gpu: str
    driver: str
    nvcc: str
    date: datetime
    geometric_mean: float | None  #: of the shares
    one_kernel: int  #: searches that had found one right kernel, which is the best of itself
    searches: tuple[Remeasured, ...]


def found(file: Path, samples: Iterable[Sample]) -> list[Found]:
    """The solved searches of the campaign in ``file``, read from the graphs beside it.

    Raises :class:`NotFound` when a graph is missing.
    """
    graphs = file.with_suffix(".graphs")
    searches = []
    for sample in samples:
        graph = graphs / f"{sample.search}.db"
        if not sample.solved:
            continue
        if not graph.is_file():
            raise NotFound(
                "the graph of a search is missing.", where=str(graph), fix="Keep FILE and its .graphs together."
            )
        with open_store(load(), url=f"sqlite:///{graph.absolute()}") as store:
            chosen = store.search(sample.search).best_attempt
            passed = [a for a in store.attempts(sample.search) if a.verdict is not None and a.verdict.passed]
        picked = next((attempt for attempt in passed if attempt.id == chosen), None)
        if picked is None:
            raise InputError("the search has no answer among its attempts.", where=f"{graph}, search {sample.search}")
        others = {code_hash(each.code): each for each in passed if each.code != picked.code}
        searches.append(Found(sample, load_task(sample.task), picked, tuple(others.values())))
    return searches


def remeasure(searches: Sequence[Found], judges: Sequence[Judge]) -> Iterator[tuple[Remeasured, Evidence]]:
    """Time the kernels of ``searches``, spread over ``judges`` (one a GPU); each as it is done, in their order."""
    waiting: list[tuple[Found, list[Future[Verdict]]]] = []
    for number, each in enumerate(searches):
        judge = judges[number % len(judges)]
        codes = [each.picked.code, *(other.code for other in each.others)]
        baseline = each.picked.code
        waiting.append((each, [judge.submit(each.task, code, Level.GPU, baseline=baseline) for code in codes]))
    for each, futures in waiting:
        verdicts = [future.result() for future in futures]
        yield _row(each, verdicts), max((v.evidence for v in verdicts), key=lambda evidence: bool(evidence.gpu))


def record_of(terms: Terms, model: str, rows: Sequence[Remeasured], evidence: Evidence) -> Remeasurement:
    """The record of the searches measured so far."""
    return Remeasurement(
        level=terms.level,
        budget=terms.budget,
        model=model,
        gpu=evidence.gpu,
        driver=evidence.driver,
        nvcc=evidence.nvcc,
        date=now(),
        geometric_mean=geometric_mean([row.share for row in rows if row.share is not None]),
        one_kernel=sum(row.share is not None and row.right == 1 for row in rows),
        searches=tuple(rows),
    )


def _row(each: Found, verdicts: Sequence[Verdict]) -> Remeasured:
    picked = verdicts[0]
    right = [verdict for verdict in verdicts if verdict.passed]
    row = Remeasured(
        task=each.task.name,
        strategy=each.sample.strategy,
        sample=each.sample.sample,
        search=each.sample.search,
        kernels=len(verdicts),
        right=len(right),
        modelled=each.picked.verdict.modelled_seconds if each.picked.verdict else None,
    )
    if not picked.passed or picked.candidate_seconds is None:
        return row.model_copy(update={"reason": f"the picked kernel: {picked.verdict}: {picked.reason}"})
    # Each verdict's speedup is over the picked kernel, timed in turn with it: drifts of the clock cancel.
    fastest = max([1.0, *(verdict.speedup.median for verdict in right[1:] if verdict.speedup is not None)])
    return row.model_copy(
        update={
            "picked": picked.candidate_seconds,
            "best": picked.candidate_seconds / fastest,
            "share": 1 / fastest,
        }
    )


def markdown(record: Remeasurement) -> str:
    """The record as a table with a sentence under it."""

    def microseconds(seconds: float | None) -> str:
        return f"{seconds * 1e6:,.1f}" if seconds is not None else "–"

    lines = [
        "| task | strategy | right kernels | modelled µs | measured µs | best measured µs | share |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in record.searches:
        share = f"{row.share:.2f}" if row.share is not None else row.reason
        lines.append(
            f"| {row.task} | {row.strategy} | {row.right} of {row.kernels} | {microseconds(row.modelled)} "
            f"| {microseconds(row.picked)} | {microseconds(row.best)} | {share} |"
        )
    shares = [row.share for row in record.searches if row.share is not None]
    mean = f"{record.geometric_mean:.3f}" if record.geometric_mean is not None else "unknown"
    lines += [
        "",
        f"The kernel that a search by {record.level} speed picked reaches {mean} (geometric mean over {len(shares)} "
        "searches) of the speed of the best right kernel that the same search had generated; in "
        f"{record.one_kernel} of them it was the only one. {record.gpu}, driver {record.driver}, nvcc {record.nvcc}, "
        f"{record.date:%Y-%m-%d}; budget {record.budget} calls, model {record.model}.",
    ]
    return "\n".join(lines) + "\n"
