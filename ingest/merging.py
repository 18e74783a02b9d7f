"""Trajectories in: read, check, judge, relabel and merge, in constant memory, one transaction a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ingest.checks import Rejected, Tasks, check
from ingest.journal import Journal
from ingest.measured import find_measured
from ingest.reading import STDIN, Draft, Rejection, read
from ingest.rejected import Rejections, rejected_path
from ingest.relabel import Relabeller
from ingest.settings import IngestSettings
from ingest.techniques import shipped
from ingest.verification import Item, Submits, Verified, Verifier
from regraph_db.derive import Outline, Trust, reach, trust
from regraph_db.names import resolve
from regraph_db.records import Alias, Level, Trajectory
from regraph_db.store import GraphStore

if TYPE_CHECKING:
    from verify import Task

#: Told (file, bytes read, file's size or None, trajectories so far) as the work goes on.
Progress = Callable[[str, int, int | None, int], None]
_REPAIRS_SHOWN = 50


@dataclass
class Summary:
    """What a run did. ``document`` is its JSON form."""

    level: Level
    read: int = 0
    merged: int = 0
    verified: int = 0  #: known ones that were verified further now
    duplicates: int = 0
    rejected: int = 0
    steps: int = 0
    measured: int = 0  #: steps whose verdict was measured before and was attached
    compiled_only: int = 0  #: trajectories without a task, which a higher level than compile could not judge
    new_techniques: set[str] = field(default_factory=set)
    techniques: set[str] = field(default_factory=set)
    new_transitions: int = 0
    transitions: set[tuple[str, str]] = field(default_factory=set)
    verdicts: Counter[str] = field(default_factory=Counter)
    relabelled: Counter[str] = field(default_factory=Counter)
    review: list[str] = field(default_factory=list)  #: names that nobody could decide
    repairs: list[dict[str, object]] = field(default_factory=list)
    rejected_files: list[str] = field(default_factory=list)
    dry_run: bool = False

    def document(self) -> dict[str, Any]:
        """The summary as `regraph ingest add --json` prints it."""
        return {
            "read": self.read,
            "merged": self.merged,
            "verified": self.verified,
            "duplicates": self.duplicates,
            "rejected": self.rejected,
            "steps": self.steps,
            "techniques": {"new": len(self.new_techniques), "known": len(self.techniques - self.new_techniques)},
            "transitions": {"new": self.new_transitions, "known": len(self.transitions) - self.new_transitions},
            "verdicts": dict(sorted(self.verdicts.items())),
            "level": self.level.value,
            "measured": self.measured,
            "compiled_only": self.compiled_only,
            "relabelled": dict(sorted(self.relabelled.items())),
            "review": self.review,
            "repairs": self.repairs,
            "rejected_files": self.rejected_files,
            "dry_run": self.dry_run,
        }


@dataclass
class Run:
    """One ingestion into ``store``.

    ``judge`` is needed above level ``none``. With ``dry_run`` everything happens but the writing. A store that goes
    away
    half-way ends the run with its error; the batches before it stand, and ``resume`` goes on from there.
    """

    store: GraphStore
    settings: IngestSettings
    relabeller: Relabeller
    level: Level = Level.NONE
    judge: Submits | None = None
    cache: Path = Path("~/.cache/regraph")
    task: str = ""
    author: str = ""
    file_format: str = "auto"
    dry_run: bool = False
    resume: bool = False
    attach_measured: bool = True
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self.summary = Summary(self.level, dry_run=self.dry_run)
        self._tasks = Tasks(required=self.level in (Level.FUNCTIONAL, Level.MODELLED, Level.GPU))
        self._descriptions = {entry.name: entry.technique for entry in shipped()}
        self._aliases = {alias.alias: alias.technique for alias in self.store.aliases()}
        self._known_techniques = (
            {technique.name for technique, _, _ in self.store.techniques()} if self.dry_run else set()
        )
        self._known_transitions = {(t.before, t.after) for t in self.store.transitions()} if self.dry_run else set()
        self._seen: dict[str, Trust] = {}

    def files(self, names: Sequence[str]) -> Summary:
        """Ingest files, one after the other. Raises :class:`InputError` for a file that cannot be read at all."""
        for name in names:
            path = rejected_path(name)
            with ExitStack() as stack:
                rejections = stack.enter_context(Rejections(path, write=not self.dry_run))
                journal = stack.enter_context(self._journal(str(Path(name).absolute()) if name != "-" else name))
                drafts = read(
                    name,
                    line_limit=self.settings.line_limit,
                    document_limit=self.settings.document_limit,
                    file_format=self.file_format,
                    progress=partial(self._report, name),
                )
                self._ingest(self._checked(drafts, rejections, name), rejections, journal)
            if rejections.count and not self.dry_run:
                self.summary.rejected_files.append(str(path))
        self._describe()
        return self.summary

    def drafts(self, drafts: Iterable[Draft | Rejection], rejected: Path, run: Sequence[object]) -> Summary:
        """Ingest drafts that stand in no file: a teacher's. Rejections go to the file ``rejected``."""
        with Rejections(rejected, write=not self.dry_run) as rejections:
            with Journal(
                self.cache, ("drafts", self.store.url, *run), resume=True, write=self.level is not Level.NONE
            ) as journal:
                self._ingest(self._checked(drafts, rejections, STDIN), rejections, journal)
            if rejections.count:
                self.summary.rejected_files.append(str(rejected))
        self._describe()
        return self.summary

    def trajectories(self, trajectories: Iterable[Trajectory], origin: str, task: Task | None = None) -> Summary:
        """Ingest trajectories that stand in no file: what a search found. Verdicts that they carry are kept as they
        are."""
        rejections = Rejections(rejected_path("-"), write=False)
        journal = Journal(self.cache, ("trajectories", origin), resume=False, write=False)
        items = (Item(origin, trajectory, task) for trajectory in self._counted(trajectories))
        self._ingest(items, rejections, journal)
        self._describe()
        return self.summary

    def task_function(self, name: str) -> str:
        """The function of the task ``name``; "" where the task is not here."""
        task = Tasks().find(name)
        return task.function if task else ""

    def _counted(self, trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
        for trajectory in trajectories:
            self.summary.read += 1
            yield trajectory

    def _journal(self, name: str) -> Journal:
        run = (self.store.url, name, self.level, self.task)
        return Journal(self.cache, run, resume=self.resume, write=self.level is not Level.NONE and not self.dry_run)

    def _report(self, name: str, done: int, size: int | None) -> None:
        if self.progress is not None:
            self.progress(name, done, size, self.summary.read)

    def _checked(self, drafts: Iterable[Draft | Rejection], rejections: Rejections, name: str) -> Iterator[Item]:
        measured = find_measured(name) if self.attach_measured else None
        for draft in drafts:
            self.summary.read += 1
            if isinstance(draft, Rejection):
                self._reject(rejections, draft)
                continue
            try:
                trajectory, task = check(draft, self.settings, self._tasks, task=self.task, author=self.author)
            except Rejected as reason:
                self._reject(rejections, Rejection(draft.where, str(reason), dict(draft.fields)))
                continue
            if draft.repairs and len(self.summary.repairs) < _REPAIRS_SHOWN:
                self.summary.repairs.append({"where": draft.where, "repairs": list(draft.repairs)})
            if task is None and self.level not in (Level.NONE, Level.COMPILE):
                self.summary.compiled_only += 1
            yield Item(draft.where, trajectory, cast("Task | None", task), measured)

    def _reject(self, rejections: Rejections, rejection: Rejection) -> None:
        self.summary.rejected += 1
        rejections.add(rejection)

    def _ingest(self, items: Iterator[Item], rejections: Rejections, journal: Journal) -> None:
        verifier = Verifier(self.judge, self.level, journal, in_flight=self.settings.in_flight)
        verified = verifier.verify(self._unknown(items))
        while batch := list(islice(verified, self.settings.batch)):
            self._merge(list(self._sound(batch, rejections)))

    def _unknown(self, items: Iterator[Item]) -> Iterator[Item]:
        """Leave out what the graph holds already, verified as far as it is to be, so that it is not judged again."""
        while batch := list(islice(items, self.settings.in_flight)):
            known = self.store.known_trajectories([item.trajectory.id for item in batch])
            for item in batch:
                standing = known.get(item.trajectory.id)
                wanted = reach(self.level if item.measured is None else Level.GPU)
                if not standing or standing[0] < wanted:
                    yield item
                else:
                    self.summary.duplicates += 1

    def _sound(self, batch: Iterable[Verified], rejections: Rejections) -> Iterator[Trajectory]:
        for each in batch:
            if each.fault:
                content = each.trajectory.model_dump(mode="json", exclude_defaults=True)
                self._reject(rejections, Rejection(each.item.where, each.fault, content))
                continue
            self.summary.measured += each.measured
            self.summary.verdicts.update(
                step.verdict.verdict.value for step in each.trajectory.steps if step.verdict is not None
            )
            yield each.trajectory

    def _merge(self, batch: Sequence[Trajectory]) -> None:
        aliases = self.relabeller.decide(step.method for trajectory in batch for step in trajectory.steps)
        self._note(aliases)
        outlines = [Outline.of(trajectory) for trajectory in batch]
        walks = [outline.walk(lambda phrase: resolve(phrase, self._aliases)) for outline in outlines]
        if self.dry_run:
            self._would_merge(batch, walks)
        elif batch:
            report = self.store.merge_trajectories(batch, aliases)
            self.summary.merged += report.merged
            self.summary.verified += report.verified
            self.summary.duplicates += report.duplicates
            self.summary.steps += report.steps
            self.summary.new_techniques.update(report.new_techniques)
            self.summary.new_transitions += report.new_transitions
        self.summary.techniques.update(after for walk in walks for _, after in walk)
        self.summary.transitions.update(pair for walk in walks for pair in walk)

    def _note(self, aliases: Sequence[Alias]) -> None:
        for alias in aliases:
            self._aliases.setdefault(alias.alias, alias.technique)
            self.summary.relabelled[alias.author.partition(":")[0]] += 1
            if alias.review:
                self.summary.review.append(alias.alias)

    def _would_merge(self, batch: Sequence[Trajectory], walks: Sequence[list[tuple[str, str]]]) -> None:
        stored = self.store.known_trajectories([trajectory.id for trajectory in batch])
        for trajectory, walk in zip(batch, walks, strict=True):
            standing = self._seen.get(trajectory.id, stored.get(trajectory.id))
            reached = trust(step.verdict for step in trajectory.steps)
            if standing is not None and reached <= standing:
                self.summary.duplicates += 1
                continue
            self._seen[trajectory.id] = reached
            if standing is not None:
                self.summary.verified += 1
                continue
            self.summary.merged += 1
            self.summary.steps += len(walk)
            self.summary.new_techniques.update(after for _, after in walk if after not in self._known_techniques)
            new = {pair for pair in walk if pair not in self._known_transitions}
            self._known_transitions |= new
            self.summary.new_transitions += len(new)

    def _describe(self) -> None:
        """Give the shipped techniques that the graph has reached their descriptions; also those of a run that was
        killed."""
        if self.dry_run:
            return
        bare = [t.name for t, _, _ in self.store.techniques() if t.name in self._descriptions and not t.shipped]
        if bare:
            self.store.put_techniques([self._descriptions[name] for name in bare])
