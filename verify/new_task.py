"""``regraph task new``: a task folder from a sequential C++ function."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regraph_db.cli import json_option, print_json

if TYPE_CHECKING:
    from verify.cpp_function import CppFunction, CppParameter

#: Marks the lines of a new manifest that a person must look at.
DECIDE = "# DECIDE:"
#: Values of the sizes by how many loops are nested: tiny, odd and prime for the checks, one more hidden, a large one
#: to time.
_CHECKS = {
    1: ((1, 1, 1), (31, 17, 13), (1000, 257, 129)),
    2: ((1, 1, 1), (31, 17, 5), (100, 67, 33)),
    3: ((1, 1, 1), (31, 17, 5), (67, 66, 37)),
}
_HIDDEN = {1: (4099, 1021, 131), 2: (129, 61, 33), 3: (71, 45, 33)}
_TIMED = {1: 1 << 24, 2: 4096, 3: 512}
#: The same for a size that is an exponent in an array's length, as in ``2**bits``.
_EXPONENTS = ((1, 5, 8), 7, 12)
_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--function",
    required=True,
    metavar="NAME",
    help="The function in FILE, returning void, with scalars and pointers as parameters.",
)
@click.option("--name", metavar="TASK", help="The task's name.  [default: the function's]")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("tasks"),
    show_default=True,
    help="Where the folder is made.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="ARRAY=LENGTH",
    help="An array's length over the sizes, e.g. x=n*m; may be repeated.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="PARAMETER=KIND",
    help="scalar, size, input, output or inout; may be repeated.",
)
@click.option(
    "--tier",
    type=click.Choice(["easy", "medium", "hard"]),
    default="medium",
    show_default=True,
    help="Useful steps: 1–2, 3–5, more.",
)
@click.option("--check/--no-check", default=True, help="Prove the task sound at once, as `regraph task check` does.")
@json_option
@click.pass_context
def new(
    ctx: click.Context,
    file: Path,
    function: str,
    name: str | None,
    out: Path,
    shapes: tuple[str, ...],
    kinds: tuple[str, ...],
    tier: str,
    check: bool,
    as_json: bool,
) -> None:
    """Write a task from the sequential C++ function NAME in FILE.

    Kinds, sizes, generators and tolerances are told from the signature and the loops. Lines of the manifest that a
    person
    must decide are marked with DECIDE. An array whose length cannot be told is asked for with --shape.

    \b
    Exit code: 0 written, and sound · 1 written, and not sound yet · 2 it cannot be a task as it stands

    \b
    Example:
      regraph task new blur.cpp --function blur
      regraph task new gather.cpp --function gather --shape table=rows*width
    """
    from regraph_db.errors import InputError

    task = name or function
    folder = out / task
    if folder.exists():
        raise InputError("is there already.", where=str(folder), fix="Choose another --name or --out.")
    try:
        source = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}.", where=str(file)
        ) from None
    from verify.cpp_function import read_function

    described = read_function(source, function, str(file))
    manifest = write_manifest(described, task, tier, file.name, _pairs(shapes, "--shape"), _pairs(kinds, "--kind"))
    _write(folder, manifest, _with_linkage(source, described))
    decide = [
        line.strip().removeprefix(DECIDE).strip() for line in manifest.splitlines() if line.strip().startswith(DECIDE)
    ]
    problems = _problems(folder) if check else []
    if as_json:
        print_json(
            {
                "task": task,
                "folder": folder,
                "decide": decide,
                "checked": check,
                "sound": not problems if check else None,
                "problems": problems,
            }
        )
    else:
        click.echo(f"Wrote {folder}/task.toml and reference.cpp.")
        for each in decide:
            click.echo(f"  decide: {each}")
        for each in problems:
            click.echo(f"  problem: {each}")
        if check:
            click.echo("Not sound yet: mend task.toml, then `regraph task check`." if problems else "Sound.")
    if problems:
        ctx.exit(1)


def _pairs(given: tuple[str, ...], option: str) -> dict[str, str]:
    from regraph_db.errors import InputError

    result = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise InputError(
                f"`{each}` is not NAME=VALUE.", where=option, fix="Write e.g. --shape x=n*m or --kind y=inout."
            )
        result[key.strip()] = value.strip()
    return result


def write_manifest(
    function: CppFunction, task: str, tier: str, origin: str, shapes: dict[str, str], kinds: dict[str, str]
) -> str:
    """The text of ``task.toml``. Raises :class:`InputError` naming every array whose length is not known, and how to
    give it."""
    from regraph_db.errors import InputError

    names = [parameter.name for parameter in function.parameters]
    for option, given in (("--shape", shapes), ("--kind", kinds)):
        for unknown in given.keys() - set(names):
            raise InputError(
                f"`{unknown}` is no parameter.", where=option, fix=f"The parameters are {', '.join(names)}."
            )
    kind = {
        parameter.name: kinds.get(parameter.name) or _kind(parameter, function) for parameter in function.parameters
    }
    sizes = [name for name in names if kind[name] == "size"]
    lengths = {p.name: shapes.get(p.name) or function.length(p.name, sizes) for p in function.parameters if p.pointer}
    missing = [name for name, length in lengths.items() if length is None]
    if missing:
        raise InputError(
            f"the loops of `{function.name}` do not tell the length of {', '.join(f'`{name}`' for name in missing)}.",
            where="--shape",
            fix=f"Give it over the sizes ({', '.join(sizes) or 'none: mark one with --kind n=size'}), e.g. "
            + " ".join(f"--shape {name}={'*'.join(sizes[:2]) or 'n'}" for name in missing)
            + ".",
        )
    if not any(kind[p.name] in ("output", "inout") for p in function.parameters):
        raise InputError(
            f"`{function.name}` writes through no pointer.",
            where="--kind",
            fix="Mark what it writes, e.g. --kind y=output.",
        )
    told = {name: length for name, length in lengths.items() if length is not None}
    head = [
        "schema = 1",
        f'name = "{task}"',
        f"{DECIDE} say in one line what it computes.",
        f'title = "{function.name}"',
        f'tier = "{tier}"',
        'split = "train"',
        f'origin = "{origin}"',
        f'function = "{function.name}"',
        'abi = "device"',
        "allow = []",
        f'bytes = "{_traffic(function, kind, told)}"',
        f"{DECIDE} the floating-point operations of one call, for the bound.",
        '# flops = "2*n"',
        "",
    ]
    return "\n".join(
        head
        + _sizes(sizes, function.depth, {name for name in sizes if _is_exponent(name, told.values())})
        + [line for p in function.parameters for line in _parameter(p, kind[p.name], told, function)]
    )


def _kind(parameter: CppParameter, function: CppFunction) -> str:
    if parameter.pointer:
        if parameter.const:
            return "input"
        return "output" if parameter.name in function.written_first else "inout"
    integer = parameter.dtype.startswith(("int", "uint"))
    return "size" if integer and parameter.name in function.bounds else "scalar"


def _traffic(function: CppFunction, kind: dict[str, str], lengths: dict[str, str]) -> str:
    terms = []
    for parameter in function.parameters:
        if parameter.pointer:
            width = _BYTES[parameter.dtype.lstrip("abcdefghijklmnopqrstuvwxyz")] * (
                2 if kind[parameter.name] == "inout" else 1
            )
            terms.append(
                f"{width}*({lengths[parameter.name]})"
                if "+" in lengths[parameter.name]
                else f"{width}*{lengths[parameter.name]}"
            )
    return " + ".join(terms)


def _is_exponent(size: str, lengths: Iterable[str]) -> bool:
    return any(re.search(rf"\*\*\s*\(?\s*{size}\b", length) for length in lengths)


def _sizes(sizes: list[str], depth: int, exponents: set[str]) -> list[str]:
    level = min(max(depth, len(sizes), 1), 3)

    def table(values: tuple[int, ...], exponent: int) -> str:
        chosen = (exponent if name in exponents else values[i % len(values)] for i, name in enumerate(sizes))
        return "{" + ", ".join(f"{name} = {value}" for name, value in zip(sizes, chosen, strict=True)) + "}"

    small, hidden, timed = _EXPONENTS
    return [
        "[sizes]",
        f"check = [{', '.join(table(values, small[i]) for i, values in enumerate(_CHECKS[level]))}]",
        f"hidden = [{table(_HIDDEN[level], hidden)}]",
        f"{DECIDE} sizes as people use them, large enough that the GPU is busy.",
        f"timed = [{table((_TIMED[level],), timed)}]",
        "",
    ]


def _parameter(parameter: CppParameter, kind: str, lengths: dict[str, str], function: CppFunction) -> list[str]:
    lines = ["[[parameters]]", f'name = "{parameter.name}"', f'kind = "{kind}"', f'dtype = "{parameter.dtype}"']
    if parameter.pointer and not parameter.const and kind == "inout":
        lines.insert(1, f"{DECIDE} `{parameter.name}` seems to be read before it is written; kind output if it is not.")
    if parameter.pointer:
        lines.append(f'shape = ["{lengths[parameter.name]}"]')
    if kind in ("scalar", "input", "inout"):
        lines += _generator(parameter, lengths, function)
    if kind in ("output", "inout") and parameter.dtype.startswith("float"):
        relative, absolute = ("1e-4", "1e-5") if parameter.dtype == "float32" else ("1e-10", "1e-12")
        lines += [
            f"{DECIDE} how far `{parameter.name}` may be off by rounding alone.",
            f"tolerance = {{relative = {relative}, absolute = {absolute}}}",
        ]
    elif kind in ("output", "inout"):
        lines.append("# Exact. Where a float is rounded to this integer: tolerance = {relative = 0, absolute = 1}")
    return [*lines, ""]


def _generator(parameter: CppParameter, lengths: dict[str, str], function: CppFunction) -> list[str]:
    if parameter.dtype.startswith("float"):
        return [
            f"{DECIDE} the values of `{parameter.name}` as they really come.",
            'generator = {kind = "uniform", low = -1, high = 1}',
        ]
    target = function.index_arrays.get(parameter.name)
    if target is not None:
        return [
            f"{DECIDE} `{parameter.name}` indexes `{target}`; a python generator makes inputs that belong together.",
            f'generator = {{kind = "integers", low = 0, high = "{lengths[target]}"}}',
        ]
    high = (
        128 if parameter.dtype == "int8" else 256 if parameter.dtype == "uint8" else 1000 if parameter.pointer else 10
    )
    return [
        f"{DECIDE} the values of `{parameter.name}` as they really come.",
        f'generator = {{kind = "integers", low = 0, high = {high}}}',
    ]


def _with_linkage(source: str, function: CppFunction) -> str:
    if function.linked:
        return source
    raw = source.encode()
    return (raw[: function.start] + b'extern "C" ' + raw[function.start :]).decode()


def _write(folder: Path, manifest: str, reference: str) -> None:
    """Both files or none."""
    import shutil
    import tempfile

    from regraph_db.errors import InputError

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as scratch:
            (Path(scratch) / "task.toml").write_text(manifest, "utf-8")
            (Path(scratch) / "reference.cpp").write_text(reference, "utf-8")
            shutil.copytree(scratch, folder)
    except OSError as error:
        raise InputError(
            f"cannot be written: {error.strerror}.", where=str(folder), fix="Choose another --out."
        ) from None


def _problems(folder: Path) -> list[str]:
    from regraph_db.errors import InputError
    from regraph_db.settings import load, section
    from verify.reference import References
    from verify.settings import VerifySettings
    from verify.soundness import check_task
    from verify.task import load_task

    settings = section("verify", VerifySettings)
    try:
        return list(
            check_task(load_task(folder), References(settings, load().cache_folder / "verify"), settings).problems
        )
    except InputError as error:
        return [str(error)]
