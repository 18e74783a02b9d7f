"""Tasks for the judge, made from a sample's signature: whether an answer is right is the verifier's word."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from verify import Task, load_task

DTYPES = {
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "uint8_t": "uint8",
    "unsigned char": "uint8",
    "int8_t": "int8",
    "uint16_t": "uint16",
    "uint32_t": "uint32",
    "size_t": "uint64",
    "long long": "int64",
}
Argument = tuple[str, str, str, str, str]  # kind, C type, name, extent (an expression over the sizes), values
OFFSETS = '''"""Offsets of segments: they rise from 0 to the number of entries."""

import numpy


def offsets(rng, sizes):
    inner = rng.integers(0, sizes["{bound}"], {extent} - 2)
    return {{"{name}": numpy.sort(numpy.concatenate([[0], inner, [sizes["{bound}"]]])).astype(numpy.int32)}}
'''
TOLERANCE = {"float": "{relative = 3e-3, absolute = 3e-3}", "double": "{relative = 1e-8, absolute = 1e-8}"}


def task_for(folder: Path, function: str, arguments: Sequence[Argument], dims: dict[str, int], reference: str) -> Task:
    """Write a task into ``folder`` (made here, named after it) and load it; ``dims`` may hold constants too."""
    folder.mkdir(parents=True)
    (folder / "reference.cpp").write_text(judged(reference), encoding="utf-8")
    sizes = [name for kind, _, name, _, _ in arguments if kind == "size"]
    constants = {name: value for name, value in dims.items() if name not in sizes}
    lines = [
        "schema = 1",
        f'name = "{folder.name}"',
        f'title = "{function}"',
        'tier = "easy"',
        'split = "train"',
        'origin = "slm"',
        f'function = "{function}"',
        "[limits]",
        "seconds = 20",
        "[sizes]",
    ]
    at = ", ".join(f"{name} = {dims[name]}" for name in sizes)
    lines += [f"{kind} = [{{{at}}}]" for kind in ("check", "hidden", "timed")]
    for kind, ctype, name, extent, values in arguments:
        lines += ["[[parameters]]", f'name = "{name}"', f'kind = "{kind}"', f'dtype = "{DTYPES[ctype]}"']
        if kind == "size":
            continue
        if kind != "scalar":
            lines.append(f'shape = ["{_filled(extent, constants)}"]')
        if kind in ("output", "inout") and ctype in TOLERANCE:
            lines.append(f"tolerance = {TOLERANCE[ctype]}")
        if kind != "output":
            lines.append(f"generator = {_generator(folder, kind, ctype, name, extent, values, dims)}")
            lines += ["vary = false"] if kind != "scalar" else []
    (folder / "task.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return load_task(folder)


def judged(code: str) -> str:
    """``code`` with the judge's name of a 64-bit integer; ``long long`` is another type there on Linux."""
    if "long long" not in code:
        return code
    return "#include <cstdint>\n" + code.replace("long long", "int64_t")


def _filled(extent: str, constants: dict[str, int]) -> str:
    """``extent`` with the program's own constants as numbers."""
    for name, value in constants.items():
        extent = extent if name.isdigit() else _replace(extent, name, str(value))
    return extent


def _replace(text: str, word: str, value: str) -> str:
    import re

    return re.sub(rf"\b{re.escape(word)}\b", value, text)


def _generator(folder: Path, kind: str, ctype: str, name: str, extent: str, values: str, dims: dict[str, int]) -> str:
    if values.startswith("permutation"):
        return '{kind = "permutation"}'
    if values.startswith("sorted"):
        return '{kind = "sorted", low = 0, high = 100}'
    if values.startswith("offsets:"):
        bound = values.partition(":")[2]
        count = eval(extent, {"__builtins__": {}}, dict(dims))
        (folder / "offsets.py").write_text(OFFSETS.format(bound=bound, extent=count, name=name), encoding="utf-8")
        return '{kind = "python", file = "offsets.py", function = "offsets"}'
    if values:
        return f'{{kind = "integers", low = 0, high = {dims[values]}}}'
    if ctype in ("float", "double"):
        low, high = (0.5, 1.5) if kind == "scalar" else (0.25, 1.75)
        return f'{{kind = "uniform", low = {low}, high = {high}}}'
    low_int, high_int = (2, 6) if kind == "scalar" else (0, 100)
    return f'{{kind = "integers", low = {low_int}, high = {high_int}}}'
