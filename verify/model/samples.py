"""Steps of measured trajectories beside their counts: what a profile is fitted to, and what it is held against."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regraph_db.settings import section
from verify.model.calibrate import Measured
from verify.model.explain import refuse_what_is_unsteady
from verify.model.launches import Cost, NoModel, count
from verify.model.profiles import Hardware
from verify.sandbox import Limits
from verify.settings import VerifySettings
from verify.task import load_task
from verify.toolchain import find_toolkit

_SUFFIX = ".measured.json"


@dataclass(frozen=True)
class Skipped:
    """A measured step that gets no modelled time."""

    task: str
    step: int
    reason: str

    @property
    def kind(self) -> str:
        """The reason without what is particular to this step."""
        return re.split(r": |`| \(", self.reason)[0].strip()


@dataclass
class Samples:
    """What a set of measured files gives."""

    measured: list[Measured] = field(default_factory=list)
    split: dict[str, str] = field(default_factory=dict)  #: train or test, by task
    skipped: list[Skipped] = field(default_factory=list)  #: steps that get no model
    costs: list[Cost] = field(default_factory=list)  #: of every step that was counted
    machines: set[str] = field(default_factory=set)  #: GPU and driver that the steps were measured on
    dates: set[str] = field(default_factory=set)  #: of the measurements, ISO days

    def add(self, other: Samples) -> None:
        """Take what ``other`` has as well."""
        self.measured += other.measured
        self.split |= other.split
        self.skipped += other.skipped
        self.costs += other.costs
        self.machines |= other.machines
        self.dates |= other.dates

    def cost_quantiles(self) -> tuple[float, float]:
        """Seconds that counting a step took, at the median and at the 90th percentile."""
        ordered = sorted(cost.seconds for cost in self.costs)
        return ordered[len(ordered) // 2], ordered[int(0.9 * len(ordered))]

    def refusals(self) -> dict[str, int]:
        """How many steps get no model, by kind of reason, most frequent first."""
        return dict(Counter(one.kind for one in self.skipped).most_common())

    def of(self, split: str) -> list[Measured]:
        """The steps of one split's tasks."""
        return [sample for sample in self.measured if self.split[sample.family] == split]


def read_samples(files: Sequence[Path], gpu: Hardware, only: str | None = None) -> Samples:
    """Count every step of ``files`` (NAME.measured.json beside NAME.jsonl) that passed on a GPU.

    What was counted before is read from the cache, so that a second pass takes seconds and a stopped one goes on.
    """
    toolkit = find_toolkit(section("verify", VerifySettings)).root
    samples = Samples()
    for file in files:
        name = file.name.removesuffix(_SUFFIX)
        task = load_task(name)
        if only and task.split != only:
            continue
        document = json.loads(file.read_text("utf-8"))
        samples.split[name] = task.split
        samples.machines.add(
            f"{document.get('gpu') or 'an unnamed GPU'} (driver {document.get('driver') or 'unknown'})"
        )
        samples.dates.add(str(document.get("date", ""))[:10])
        steps = json.loads((file.parent / f"{name}.jsonl").read_text("utf-8").splitlines()[0])["steps"]
        for index, seconds in _measured(document):
            with tempfile.TemporaryDirectory(prefix="regraph-") as folder:
                try:
                    counted = count(
                        task,
                        steps[index]["code"],
                        toolkit=toolkit,
                        folder=Path(folder),
                        limits=Limits(seconds=60),
                        gpu=gpu,
                    )
                    samples.costs.append(counted.cost)
                    refuse_what_is_unsteady(counted)
                except NoModel as error:
                    samples.skipped.append(Skipped(name, index, error.what))
                    continue
            samples.measured.append(Measured(name, str(steps[index]["method"]), counted, seconds))
    return samples


def _measured(document: dict[str, Any]) -> Iterator[tuple[int, float]]:
    """(step, measured seconds) of every step that passed on a GPU."""
    for index, step in enumerate(document["steps"]):
        if step.get("verdict") == "passed" and step.get("level") == "gpu" and step.get("seconds"):
            yield index, float(step["seconds"])
