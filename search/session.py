"""What ``search run`` and ``search resume`` do: open store, judge and model, work, conclude, print."""

from __future__ import annotations

import contextlib
import signal
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any

import click

from regraph_db.cli import print_json
from regraph_db.errors import InputError, StoreError
from regraph_db.opening import open_store
from regraph_db.records import Level, Search, SearchStatus, Verdict
from regraph_db.settings import load, section
from search.crew import Post, hired
from search.display import watching
from search.export import export
from search.generators import Generator, open_generator
from search.hardware import gpu_text
from search.outcome import SearchOutcome, outcome_of
from search.report import summary_lines
from search.run import check_graph, check_task, finish, open_search, work
from search.seconds import Stopwatch
from search.settings import SearchSettings
from verify.judge import Judge
from verify.settings import VerifySettings
from verify.task import Task, load_task


class Session:
    """One run of the command. Everything that it opens is closed when it ends, also by Ctrl-C or SIGTERM."""

    def __init__(self, chosen: dict[str, Any], *, as_json: bool) -> None:
        self.chosen = chosen
        self.as_json = as_json
        self.runners: int = chosen["runners"]
        self.shared = load({"store": chosen.get("store"), "model": chosen.get("model")})
        flags = {key: chosen.get(key) for key in ("budget", "mode")}
        self.settings = section("search", SearchSettings, flags)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Session:
        self.store = self._stack.enter_context(open_store(self.shared))
        former = signal.signal(signal.SIGTERM, _interrupt)
        self._stack.callback(signal.signal, signal.SIGTERM, former)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    # -- the three ways in -------------------------------------------------------------------------

    def start(self, name: str) -> SearchOutcome:
        """A new search."""
        task = load_task(name)
        self.store.expect_search()
        check_graph(self.store, task, self.chosen["strategy"])  # before the model is loaded
        watch = Stopwatch()
        kernel = self._kernel()
        model = self._open_model()
        judge = self._open_judge()
        level = Level(self.chosen.get("level") or judge.best_level)
        where = f" ({judge.gpu.name})" if level is Level.GPU else ""  # where there is no GPU no search is opened
        verdict = self._check_kernel(judge, task, kernel, level) if kernel is not None else None
        search = open_search(
            self.store,
            task,
            strategy=self.chosen["strategy"],
            model=model.name,
            level=level,
            settings=self.settings,
            seed=self.chosen["seed"],
            start_code=kernel,
            gpu=gpu_text(judge),
            baseline_seconds=verdict.modelled_seconds if verdict else None,
        )
        calls = f"{search.budget} calls"
        self._say(f"search {search.id[:8]}: {task.name}, {search.strategy}, {calls}, level {level}{where}")
        return self._work(search, task, name, model, judge, watch)

    def join(self, search_id: str) -> SearchOutcome:
        """One or more further runners for a search that runs already."""
        return self._go_on(self.store.search(search_id), None, streams=[uuid.uuid4().hex for _ in range(self.runners)])

    def resume(self, search_id: str, folder: str | None) -> SearchOutcome:
        """The same search, from what the store holds."""
        search = self.store.search(search_id)
        budget = self.chosen.get("budget")
        if budget is not None:
            self.store.extend_search(search.id, budget)
            search = self.store.search(search.id)
        if search.status is SearchStatus.FINISHED:
            self._say(f"search {search.id[:8]} is finished; a larger --budget goes on with it")
            return outcome_of(self.store, search.id)
        self.store.reclaim()
        return self._go_on(search, folder)

    # -- parts -------------------------------------------------------------------------------------

    def _go_on(self, search: Search, folder: str | None, streams: list[str] | None = None) -> SearchOutcome:
        name = folder or search.task.name
        task = load_task(name)
        check_task(search, task)
        self.store.expect_search()
        watch = Stopwatch()
        model = self._open_model()
        if model.name != search.model:
            self._say(f"note: this search began with the model {search.model}, and goes on with {model.name}")
        judge = self._open_judge()
        self._say(f"search {search.id[:8]}: {task.name}, {search.calls} of {search.budget} calls spent")
        return self._work(search, task, name, model, judge, watch, streams)

    def _work(
        self,
        search: Search,
        task: Task,
        name: str,
        model: Generator,
        judge: Judge,
        watch: Stopwatch,
        streams: list[str] | None = None,
    ) -> SearchOutcome:
        streams = streams or [str(number) for number in range(self.runners)]
        post = Post(
            self.shared.store,
            search.id,
            name,
            str(self.shared.model),
            {"gpu": self.chosen.get("gpu")},
            self.settings.threads_each(self.runners),
        )
        try:
            with (
                watching(f"{task.name} ({search.strategy})", search.level, quiet=self.as_json) as watcher,
                hired(post, streams[1:]),
            ):
                runner = work(self.store, search, task, model, judge, stream=streams[0], watch=watch, watcher=watcher)
            return finish(self.store, search.id, task, judge, watch, runner)
        except KeyboardInterrupt:
            self._say(f"interrupted; go on with {self._resume(search)}")
            raise
        except StoreError:
            self._say(f"what the store has acknowledged is kept; when it is back, go on with {self._resume(search)}")
            raise

    def _resume(self, search: Search) -> str:
        return f"`regraph search resume {search.id[:8]} --model {self.shared.model}`"

    def _open_model(self) -> Generator:
        settings = self.settings.model_copy(update={"threads": self.settings.threads_each(self.runners)})
        return self._stack.enter_context(contextlib.closing(open_generator(self.shared.model, settings)))

    def _open_judge(self) -> Judge:
        return self._stack.enter_context(Judge(section("verify", VerifySettings, {"gpu": self.chosen.get("gpu")})))

    def _kernel(self) -> str | None:
        path: Path | None = self.chosen.get("kernel")
        if path is None:
            return None
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read as UTF-8 text: {error}.", where=str(path)) from None

    def _check_kernel(self, judge: Judge, task: Task, kernel: str, level: Level) -> Verdict:
        verdict = judge.judge(task, kernel, level)
        if not verdict.passed:
            raise InputError(
                f"your kernel does not pass: {verdict.verdict}, {verdict.reason}.",
                where=str(self.chosen["kernel"]),
                fix=f"See `regraph verify {task.name} {self.chosen['kernel']}`.",
            )
        return verdict

    def _say(self, text: str) -> None:
        click.echo(text, err=True)

    def show(self, outcome: SearchOutcome, out: Path | None) -> None:
        """Print the outcome, and export it when a folder is named."""
        if out is not None:
            export(outcome, self.store.search(outcome.search), out)
        if self.as_json:
            print_json(outcome.document())
            return
        for line in summary_lines(outcome):
            click.echo(line)
        if out is not None:
            click.echo(f"Written to {out}.")
        elif outcome.best is not None:
            click.echo(f"The kernel: `regraph search best {outcome.search[:8]}`.")


def _interrupt(_number: int, _frame: Any) -> None:
    """SIGTERM ends a search as Ctrl-C does."""
    raise KeyboardInterrupt
