"""Inputs from seeds: the generators of a manifest, the adversarial distributions, and the poison of outputs.

Generation is a pure function of (task, sizes, seed, variant), so that a reference output can be cached by these.
"""

from __future__ import annotations

import importlib.util
import sys
import zlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from regraph_db.errors import InputError
from verify import manifest
from verify.dtypes import Array, Dtype, cast
from verify.execution import Argument, Call
from verify.manifest import Parameter
from verify.task import Task

#: ``plain`` is the manifest's own generator; the others replace it where a parameter may vary.
VARIANTS: Final = ("plain", "equal", "sorted", "spike", "whole", "tails")
SPECIAL: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-30, -1e-30, 1e6, -1e6)


def make_call(
    task: Task, sizes: dict[str, int], seed: int, variant: str = "plain", *, poison_seed: int | None = None
) -> Call:
    """One call: inputs from ``seed``, outputs poisoned (differently for each ``poison_seed``).

    Raises :class:`InputError` when a generator fails or the arrays do not fit in this machine's memory.
    """
    _refuse_what_does_not_fit(task, sizes)
    made: dict[tuple[str, str], dict[str, Array]] = {}
    arguments: list[Argument] = []
    poison = np.random.default_rng((seed if poison_seed is None else poison_seed, 0xBAD))
    for parameter in task.parameters:
        if parameter.kind == "size":
            arguments.append(int(sizes[parameter.name]))
        elif parameter.kind == "output":
            arguments.append(poisoned(parameter, parameter.shape_at(sizes), poison))
        else:
            values = _values(task, parameter, sizes, seed, variant, made)
            arguments.append(values if parameter.is_array else values.reshape(-1)[0].item())
    return Call(dict(sizes), arguments)


def _refuse_what_does_not_fit(task: Task, sizes: dict[str, int]) -> None:
    needed, free = 3 * task.working_set(sizes), available_memory()
    if needed > free:
        raise InputError(
            f"{needed >> 20} MiB are needed to judge at {dict(sizes)}, {free >> 20} MiB are free.",
            where=_place_of(task, sizes),
            fix="Take a smaller size or a larger machine.",
        )


def _place_of(task: Task, sizes: dict[str, int]) -> str:
    """File, line and field of ``sizes`` in the manifest; the field alone for sizes that do not stand there."""
    file = task.folder / manifest.MANIFEST
    for group in ("check", "hidden", "timed"):
        given = getattr(task.sizes, group)
        if sizes in given:
            path = ("sizes", group, given.index(sizes))
            return manifest.field_error(file, file.read_text("utf-8"), path, "").where
    return f"{file}, field `sizes`"


def available_memory() -> int:
    """Bytes of memory that this machine can still give."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    return 1 << 62


def _values(
    task: Task,
    parameter: Parameter,
    sizes: dict[str, int],
    seed: int,
    variant: str,
    made: dict[tuple[str, str], dict[str, Array]],
) -> Array:
    generator = parameter.generator
    shape = parameter.shape_at(sizes) if parameter.is_array else (1,)
    if isinstance(generator, manifest.Python):
        key = (generator.file, generator.function)
        if key not in made:
            made[key] = _call_python(task, generator, sizes, seed)
        return _from_python(task, parameter, shape, made[key], generator)
    rng = np.random.default_rng((seed, zlib.crc32(parameter.name.encode()), *sizes.values()))
    # A CUDA-free scalar keeps its own distribution: an adversarial exponent or radius would change the task itself.
    vary = (
        variant != "plain"
        and parameter.vary
        and parameter.is_array
        and isinstance(generator, manifest.Uniform | manifest.Normal | manifest.Integers)
    )
    values = (
        _adversarial(variant, generator, parameter.dtype, shape, sizes, rng)
        if vary
        else _plain(generator, parameter.dtype, shape, sizes, rng)
    )
    return cast(values, parameter.dtype)


def _plain(
    generator: Any, dtype: Dtype, shape: tuple[int, ...], sizes: dict[str, int], rng: np.random.Generator
) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    match generator:
        case manifest.Normal(mean=mean, std=std):
            return rng.standard_normal(count, np.float64 if dtype.name == "float64" else np.float32).reshape(
                shape
            ) * np.float32(std) + np.float32(mean)
        case manifest.Uniform() | manifest.Integers():
            return _uniform(generator, dtype, count, sizes, rng).reshape(shape)
        case manifest.Sorted():
            return np.sort(_uniform(generator, dtype, count, sizes, rng)).reshape(shape)
        case manifest.Constant(value=value):
            return np.full(shape, value.value(sizes))
        case manifest.Plain(kind="one_hot"):
            values = np.zeros(count)
            if count:
                values[rng.integers(count)] = 1
            return values.reshape(shape)
        case manifest.Plain(kind="permutation"):
            return rng.permutation(count).reshape(shape)
        case manifest.Plain(kind="heavy_tailed"):
            return np.clip(rng.standard_t(2, count), -1e4, 1e4).reshape(shape)
        case _:
            return rng.choice(np.array(SPECIAL), count).reshape(shape)


def _uniform(generator: Any, dtype: Dtype, count: int, sizes: dict[str, int], rng: np.random.Generator) -> Array:
    low, high = generator.low.value(sizes), generator.high.value(sizes)
    if isinstance(generator, manifest.Integers) or not dtype.floating:
        drawn = dtype.numpy if not dtype.floating else np.int64
        return rng.integers(int(low), max(int(high), int(low) + 1), count, dtype=drawn)
    if dtype.name == "float64":
        return rng.uniform(low, high, count)
    return rng.random(count, np.float32) * np.float32(high - low) + np.float32(low)


def _bounds(generator: Any, sizes: dict[str, int]) -> tuple[float, float]:
    if isinstance(generator, manifest.Normal):
        return generator.mean - 2 * generator.std, generator.mean + 2 * generator.std
    return float(generator.low.value(sizes)), float(generator.high.value(sizes))


def _adversarial(
    variant: str, generator: Any, dtype: Dtype, shape: tuple[int, ...], sizes: dict[str, int], rng: np.random.Generator
) -> Array:
    """Inputs on which code that assumes "typical" values goes wrong; values stay within the generator's bounds."""
    low, high = _bounds(generator, sizes)
    integral = isinstance(generator, manifest.Integers) or not dtype.floating
    count = int(np.prod(shape, dtype=np.int64))
    plain = _plain(generator, dtype, shape, sizes, rng)
    match variant:
        case "equal":
            return np.full(shape, plain.reshape(-1)[0]) if count else plain
        case "sorted":
            return np.sort(plain.reshape(-1)).reshape(shape)
        case "spike":  # one value alone differs: a sum or a search that skips elements misses it
            values = np.full(count, int(low) if integral else low)
            if count:
                values[rng.integers(count)] = max(int(high) - 1, int(low)) if integral else low + 0.75 * (high - low)
            return values.reshape(shape)
        case "whole":  # whole numbers: float results are exact, so that rounding is no excuse
            first, last = int(np.ceil(low)), int(np.ceil(high))
            return (
                rng.integers(first, last, count).reshape(shape) if last > first and last - first <= 1 << 24 else plain
            )
        case _:  # "tails": a few values near the ends, for code that branches on magnitude
            values = plain.reshape(-1).copy()
            if count:
                places = rng.integers(count, size=max(1, count // 64))
                values[places] = np.where(
                    rng.random(len(places)) < 0.5, int(low) if integral else low, _near_high(low, high, integral)
                )
            return values.reshape(shape)


def _near_high(low: float, high: float, integral: bool) -> float:
    return max(int(high) - 1, int(low)) if integral else low + 0.999 * (high - low)


def _call_python(task: Task, generator: manifest.Python, sizes: dict[str, int], seed: int) -> dict[str, Array]:
    where = str(task.folder / generator.file)
    try:
        function = _python_function(task.folder / generator.file, generator.function, task.hash)
        made = function(np.random.default_rng((seed, *sizes.values())), dict(sizes))
    except Exception as error:
        raise InputError(
            f"`{generator.function}` failed at {sizes}: {type(error).__name__}: {error}.", where=where
        ) from error
    if not isinstance(made, dict):
        raise InputError(f"`{generator.function}` must return a dict of arrays.", where=where)
    return made


@lru_cache(maxsize=256)
def _python_function(
    file: Path, function: str, _version: str
) -> Callable[[np.random.Generator, dict[str, int]], dict[str, Array]]:
    """The generator's function; a changed file (another task hash) is read anew."""
    name = f"_regraph_task_{file.parent.name}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not Python")
    module = importlib.util.module_from_spec(spec)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    return getattr(module, function)  # type: ignore[no-any-return]


def _from_python(
    task: Task, parameter: Parameter, shape: tuple[int, ...], made: dict[str, Array], generator: manifest.Python
) -> Array:
    where = str(task.folder / generator.file)
    if parameter.name not in made:
        raise InputError(f"`{generator.function}` returned nothing for `{parameter.name}`.", where=where)
    values = np.asarray(made[parameter.name])
    if not parameter.is_array:
        values = values.reshape(1) if values.size == 1 else values
    if values.shape != shape:
        raise InputError(
            f"`{generator.function}` returned shape {values.shape} for `{parameter.name}`, {shape} is wanted.",
            where=where,
        )
    return cast(values, parameter.dtype)


def poisoned(parameter: Parameter, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """An output's contents before a call: NaN mixed with huge values for floats, random bits for integers.

    Never bytes that read as almost zero: 0xA5A5A5A5 is -2.9e-16 and passes for 0 under any absolute tolerance.
    """
    count = int(np.prod(shape, dtype=np.int64))
    dtype = parameter.dtype
    block = min(count, 4096)
    if dtype.floating:
        largest = 6e4 if dtype.name == "float16" else 1e30
        values = np.where(
            rng.random(block) < 0.5, np.nan, rng.choice([-1.0, 1.0], block) * largest * rng.uniform(0.5, 1.0, block)
        )
        pattern = cast(values.astype(np.float64 if dtype.name == "float64" else np.float32), dtype)
    else:
        bounds = np.iinfo(dtype.numpy)
        pattern = rng.integers(bounds.min, bounds.max, block, dtype=dtype.numpy, endpoint=True)
    # A tile is enough: it differs from call to call, and filling 128 MiB from a generator would cost a second.
    return np.resize(pattern, shape) if count else np.empty(shape, dtype.numpy)
