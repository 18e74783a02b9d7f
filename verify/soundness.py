"""Proves a task sound: a task that writing nothing solves, or that no float kernel can solve, teaches nothing.

The rules are listed in ``docs/task-format.md``. Every one of them is tried by running the reference, never assumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regraph_db.errors import InputError
from verify.compare import arrays_of, difference, same_bits, within
from verify.dtypes import Array
from verify.execution import Call
from verify.inputs import VARIANTS
from verify.manifest import Constant, Parameter, Python
from verify.private import PrivateFolder
from verify.reference import SANITIZERS, Case, References, compile_reference, run_reference
from verify.settings import VerifySettings
from verify.task import Task

#: Another order of summation, in the declared precision.
REORDERED = ("-std=c++17", "-O3", "-ffast-math", "-fno-finite-math-only", "-march=native")
_ELEMENTS_TRIED = 8


@dataclass(frozen=True)
class Soundness:
    """What is wrong with a task; sound when ``problems`` is empty. ``notes`` are worth knowing and no fault."""

    task: str
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not self.problems


def check_task(task: Task, references: References, settings: VerifySettings) -> Soundness:
    """Try every rule. Raises :class:`InputError` only where the reference does not even compile."""
    problems: list[str] = []
    notes: list[str] = []
    with ThreadPoolExecutor(3) as pool:
        plain = pool.submit(references.program, task)
        sanitized = pool.submit(_run_sanitized, task, settings)
        reordered = pool.submit(_run_reordered, task, references, settings)
        plain.result()
        trial = _Trial(task, references, settings)
        problems += trial.outputs_are_written()
        problems += trial.outputs_vary()
        problems += trial.nothing_written_is_refused()
        problems += trial.near_answers_are_refused()
        problems += trial.inputs_matter()
        notes += trial.passed_through()
        problems += sanitized.result()
        problems += reordered.result()
    return Soundness(task.name, tuple(dict.fromkeys(problems)), tuple(notes))


def all_cases(task: Task, seed: int) -> list[Case]:
    """The check and hidden sizes with their own distribution, and the largest check size with every other."""
    cases = [Case.of(sizes, seed + index) for index, sizes in enumerate(task.sizes.check + task.sizes.hidden)]
    largest = largest_check(task)
    return cases + [Case.of(largest, seed + 100 + index, variant) for index, variant in enumerate(VARIANTS[1:])]


def largest_check(task: Task) -> dict[str, int]:
    """The check size with the largest working set."""
    return max(task.sizes.check, key=task.working_set)


def _run_sanitized(task: Task, settings: VerifySettings) -> list[str]:
    with PrivateFolder() as folder:
        program = compile_reference(task, Path(folder), settings, SANITIZERS)
        try:
            run_reference(
                task, [case.call(task) for case in all_cases(task, settings.seed)], program, settings, sanitized=True
            )
        except InputError as error:
            return [f"under sanitizers: {error}"]
    return []


def _run_reordered(task: Task, references: References, settings: VerifySettings) -> list[str]:
    """Is the tolerance wide enough for the same sums in float and in another order?"""
    source = task.reference
    if not any(parameter.dtype.name == "float64" for parameter in task.parameters):
        source = re.sub(r"\bdouble\b", "float", source)
    cases = all_cases(task, settings.seed)
    with PrivateFolder() as folder:
        program = compile_reference(task, Path(folder), settings, REORDERED, source=source)
        calls = [case.call(task) for case in cases]
        got, _ = run_reference(task, calls, program, settings)
    expected = references.outputs(task, cases)
    for case, call, wanted, found in zip(cases, calls, expected, got, strict=True):
        if wrong := _outputs_differ(task, call, wanted, found):
            return [f"the tolerance refuses a float32 reordering of the reference with {case.variant} inputs: {wrong}"]
    return []


def _outputs_differ(task: Task, call: Call, expected: Sequence[Array], got: Sequence[Array]) -> str:
    """As :func:`~verify.compare.difference`, for arrays that are widened already."""
    for parameter, wanted, found in zip(task.arrays, expected, got, strict=True):
        if not parameter.writable:
            continue
        good = within(wanted, found, parameter.accepted)
        if not good.all():
            first = int(np.flatnonzero(~good.reshape(-1))[0])
            values = f"{found.reshape(-1)[first]:.9g}, expected {wanted.reshape(-1)[first]:.9g}"
            return f"{parameter.name}[{first}] = {values} at {dict(call.sizes)}"
    return ""


class _Trial:
    """The rules that need the reference's outputs at the largest check size."""

    def __init__(self, task: Task, references: References, settings: VerifySettings) -> None:
        self.task = task
        self.settings = settings
        self.program = references.program(task)
        self.sizes = largest_check(task)
        self.calls = [Case.of(self.sizes, seed).call(task, poison_seed=seed + 50) for seed in (1, 2, 3)]
        again = Case.of(self.sizes, 1).call(task, poison_seed=77)
        outputs, _ = run_reference(task, [*self.calls, again], self.program, settings)
        self.outputs, self.repeated = outputs[:3], outputs[3]

    def _writable(self) -> Iterator[tuple[int, Parameter]]:
        return ((index, parameter) for index, parameter in enumerate(self.task.arrays) if parameter.writable)

    def outputs_are_written(self) -> Iterator[str]:
        """Other poison must not change the answer."""
        for index, parameter in self._writable():
            if not same_bits(self.outputs[0][index], self.repeated[index]):
                yield (
                    f"`{parameter.name}` is not written whole: what stood there before shows through "
                    "(declare it inout, or write every element)"
                )
            elif parameter.dtype.floating and np.isnan(self.outputs[0][index]).any():
                yield f"`{parameter.name}` holds NaN with plain inputs"

    def outputs_vary(self) -> Iterator[str]:
        for index, parameter in self._writable():
            values = np.concatenate([np.unique(outputs[index]) for outputs in self.outputs])
            if values.size == 0 or np.all(values == values[0]):
                yield f"`{parameter.name}` is constant over elements and seeds"

    def nothing_written_is_refused(self) -> Iterator[str]:
        for call, outputs in zip(self.calls, self.outputs, strict=True):
            if not difference(self.task, call, outputs, arrays_of(self.task, call)):
                yield "writing nothing passes: every output is within the tolerance of what stands there before"
                return

    def near_answers_are_refused(self) -> Iterator[str]:
        """Zeros everywhere, one value everywhere, and one element off by a little."""
        for index, parameter in self._writable():
            wanted = self.outputs[0][index]
            if not wanted.size:
                continue
            flat = np.where(np.isfinite(wanted), np.abs(wanted.astype(np.float64)), 0).reshape(-1)
            place = int(np.argmax(flat))
            share = 0.06 if parameter.dtype.half else 0.01
            close = wanted.copy().reshape(-1)
            # A float that is rounded to an integer may go either way, by one; no other integer may be wrong.
            bit = 2 if re.search(r"\b(float|double)\b", self.task.reference) else 1
            close[place] = close[place] * (1 + share) if parameter.dtype.floating else close[place] ^ bit
            if within(wanted.reshape(-1), close, parameter.accepted).all():
                yield (
                    f"the tolerance of `{parameter.name}` accepts its largest element off by {share:.0%}"
                    if parameter.dtype.floating
                    else (f"the tolerance of `{parameter.name}` accepts a wrong integer")
                )
            if (
                np.any(wanted != wanted.reshape(-1)[0])
                and within(wanted, np.zeros_like(wanted), parameter.accepted).all()
            ):
                yield f"the tolerance of `{parameter.name}` accepts zeros everywhere"

    def inputs_matter(self) -> Iterator[str]:
        """Change elements of one input at a time; some output must change by more than its tolerance."""
        for index, parameter in enumerate(self.task.parameters):
            if parameter.kind not in ("scalar", "input", "inout") or isinstance(parameter.generator, Constant):
                continue
            changed = list(self._changed(index, parameter))
            if not changed:
                continue
            outputs, _ = run_reference(self.task, changed, self.program, self.settings)
            if not any(
                _outputs_differ(self.task, call, self.outputs[0], found)
                for call, found in zip(changed, outputs, strict=True)
            ):
                yield f"`{parameter.name}` does not matter: changing it changes no output by more than its tolerance"

    def _changed(self, index: int, parameter: Parameter) -> Iterator[Call]:
        """The first call with ``parameter`` changed: single elements, then all, taken from other seeds."""
        base, others = self.calls[0], self.calls[1:]
        if isinstance(parameter.generator, Python):
            # Belongs together with other parameters (row pointers and columns): the whole group changes, or a float
            # alone.
            group = [k for k, p in enumerate(self.task.parameters) if p.generator == parameter.generator]
            if not parameter.dtype.floating or not parameter.is_array:
                yield _replaced(base, {k: others[0].arguments[k] for k in group})
                return
        original = base.arguments[index]
        if not isinstance(original, np.ndarray):
            for other in others:
                yield _replaced(base, {index: other.arguments[index]})
            return
        rng = np.random.default_rng(5)
        for place in rng.integers(original.size, size=min(_ELEMENTS_TRIED, original.size)) if original.size else ():
            values = original.copy()
            drawn = others[0].arguments[index]
            assert isinstance(drawn, np.ndarray)
            values.reshape(-1)[place] = drawn.reshape(-1)[place]
            yield _replaced(base, {index: values})
        for whole in others:
            yield _replaced(base, {index: whole.arguments[index]})

    def passed_through(self) -> Iterator[str]:
        inputs = [(p, a) for p, a in zip(self.task.arrays, self.outputs[0], strict=True) if p.kind == "input"]
        for index, parameter in self._writable():
            for other, array in inputs:
                if same_bits(self.outputs[0][index], array):
                    yield f"`{parameter.name}` equals the input `{other.name}`: a plain copy solves it"


def _replaced(call: Call, values: dict[int, object]) -> Call:
    arguments = [values.get(index, argument) for index, argument in enumerate(call.arguments)]
    return Call(call.sizes, arguments)  # type: ignore[arg-type]
