"""Stand-ins for the two expensive parts, deterministic in what they are asked."""

from __future__ import annotations

import threading
import time
import zlib
from concurrent.futures import Future

from regraph_db.records import Interval, Level, Step, Trajectory, Verdict, VerdictKind
from search.generators import Answer, Generator, GeneratorFault, Prompt, Sampling
from verify import Task


class Scripted(Generator):
    """Writes a kernel whose text depends on the prompt and the seed; some answers refuse, some hold no code."""

    def __init__(self, *, seconds: float = 0.0, refusals: int = 7) -> None:
        self.name = "scripted"
        self.calls: list[tuple[str, int]] = []
        self._seconds = seconds
        self._refusals = refusals

    def generate(self, prompt: Prompt, sampling: Sampling) -> Answer:
        self.calls.append((prompt.text, sampling.seed))
        if self._seconds:
            time.sleep(self._seconds)
        digest = zlib.crc32(f"{prompt.text}{sampling.seed}".encode())
        if self._refusals and digest % self._refusals == 0 and "## Technique" in prompt.text:
            return Answer("suitable: no")
        if digest % 11 == 0:
            return Answer("I cannot do that.")
        return Answer(f"suitable: yes\n```cuda\n__global__ void candidate_{digest}() {{}}\n```\n")


class Faulty(Generator):
    """Fails in one way, always."""

    def __init__(self, how: str) -> None:
        self.name = f"faulty: {how}"
        self.calls = 0
        self._how = how

    def generate(self, prompt: Prompt, sampling: Sampling) -> Answer:
        self.calls += 1
        if self._how == "hangs":
            threading.Event().wait(30)
        if self._how == "raises":
            raise ValueError("out of order")
        if self._how == "faults":
            raise GeneratorFault("no answer")
        if self._how == "huge":
            return Answer("suitable: yes\n```cuda\n" + "x" * 1_000_000)
        return Answer("")


class FakeJudge:
    """Verdicts from the text of a candidate alone: two in three pass, at speedups from 0.5 to 20."""

    def __init__(self, *, level: Level = Level.GPU, harness_errors: int = 0) -> None:
        self.best_level = level
        self.fresh: list[str] = []
        self._errors = harness_errors

    def submit(
        self,
        task: Task | None,
        source: str,
        level: Level | None = None,
        *,
        baseline: str | None = None,
        fresh: bool = False,
    ) -> Future[Verdict]:
        future: Future[Verdict] = Future()
        if fresh:
            self.fresh.append(source)
        if self._errors:
            self._errors -= 1
            future.set_result(Verdict(verdict=VerdictKind.HARNESS_ERROR, reason="no GPU answers"))
            return future
        digest = zlib.crc32(source.encode())
        if digest % 3 == 0:
            future.set_result(Verdict(verdict=VerdictKind.WRONG_RESULT, reason="y[3] is 1, expected 2"))
            return future
        speed = 0.5 + (digest % 1000) / 51
        wanted = level or self.best_level
        future.set_result(
            Verdict(
                verdict=VerdictKind.PASSED,
                level=wanted,
                speedup=Interval(median=speed, low=speed, high=speed) if wanted is Level.GPU else None,
                modelled_speedup=speed if wanted is Level.MODELLED else None,
            )
        )
        return future


def trajectories() -> list[Trajectory]:
    """Six kernels of other tasks; the techniques form a small cyclic graph."""
    chains = [
        ("one thread per element", "vectorized load", "loop unrolling"),
        ("one thread per element", "shared memory tiling", "vectorized load"),
        ("one thread per element", "loop unrolling", "vectorized load", "loop unrolling"),
        ("grid stride loop", "vectorized load", "shared memory tiling"),
        ("grid stride loop", "shared memory tiling", "grid stride loop"),
        ("one thread per element", "grid stride loop"),
    ]
    return [
        Trajectory(
            task=f"other {number}",
            author="test",
            function=f"kernel_{number}",
            source=f"void kernel_{number}() {{ loop(); }}",
            steps=tuple(
                Step(method=name, detail=f"apply {name}", code=f"void kernel_{number}() {{ step_{k}(); }}")
                for k, name in enumerate(chain)
            ),
        )
        for number, chain in enumerate(chains)
    ]
