"""Tasks: what a candidate must compute, read from a folder with a manifest and a sequential reference."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path

from regraph_db.errors import InputError, NotFound
from regraph_db.settings import load as load_settings
from verify.expressions import Expression, ExpressionError
from verify.manifest import MANIFEST, Manifest, Parameter, Python, Sizes, field_error, read_manifest

REFERENCE = "reference.cpp"
LONGEST_REFERENCE = 1 << 20
#: Bytes of all arrays together at one size, beyond which a task is refused on any machine.
LARGEST_WORKING_SET = 64 << 30
_MOST_FLOATING, _MOST_OTHERS = 8, 32


@dataclass(frozen=True)
class Task:
    """A loaded, validated task. Two tasks with the same ``hash`` ask for the same thing."""

    name: str
    title: str
    tier: str  #: easy, medium or hard
    split: str  #: train or test
    origin: str
    function: str  #: the ``extern "C"`` name
    abi: str  #: ``device``: arrays are device pointers; ``host``: host pointers, the candidate copies
    allow: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    sizes: Sizes
    seconds: float  #: limit of one run of a candidate
    least_bytes: Expression | None  #: least traffic of one call, for the bound
    least_flops: Expression | None
    folder: Path
    reference: str  #: the text of reference.cpp
    hash: str  #: of the manifest, the reference and the generators' files

    @property
    def signature(self) -> str:
        """What a candidate defines, e.g. ``extern "C" void saxpy(float a, const float* x, float* y, int n)``."""
        return f'extern "C" void {self.function}({", ".join(p.declaration for p in self.parameters)})'

    @property
    def reference_signature(self) -> str:
        """What reference.cpp defines; 16-bit floats are ``float`` there."""
        return f'extern "C" void {self.function}({", ".join(p.reference_declaration for p in self.parameters)})'

    @cached_property
    def arrays(self) -> tuple[Parameter, ...]:
        """The array parameters, in the signature's order."""
        return tuple(parameter for parameter in self.parameters if parameter.is_array)

    def bytes_at(self, sizes: dict[str, int]) -> float:
        """Least bytes that one call moves; every array once where the manifest gives no figure."""
        if self.least_bytes is not None:
            return float(self.least_bytes.value(sizes))
        return float(sum(_bytes(p, sizes) * (2 if p.kind == "inout" else 1) for p in self.arrays))

    def flops_at(self, sizes: dict[str, int]) -> float:
        """Floating-point operations of one call; 0 where the manifest gives no figure."""
        return float(self.least_flops.value(sizes)) if self.least_flops is not None else 0.0

    def working_set(self, sizes: dict[str, int]) -> int:
        """Bytes of all arrays together at ``sizes``."""
        return sum(_bytes(parameter, sizes) for parameter in self.arrays)


def _bytes(parameter: Parameter, sizes: dict[str, int]) -> int:
    count = parameter.dtype.numpy.itemsize
    for extent in parameter.shape_at(sizes):
        count *= extent
    return count


def load_task(name_or_folder: str | Path) -> Task:
    """The task of that name, or in that folder.

    Raises :class:`NotFound` when there is none, :class:`InputError` (file, line, field) when it is not valid.
    """
    folder = Path(name_or_folder)
    if isinstance(name_or_folder, Path) or "/" in str(name_or_folder) or _is_task(folder):
        if not _is_task(folder):
            raise NotFound(
                "no task there.",
                where=str(folder),
                fix=f"A task is a folder with a {MANIFEST}; `regraph task list` shows the shipped ones.",
            )
        return _load(folder.resolve())
    for candidate in _folders():
        if candidate.name == name_or_folder:
            return _load(candidate)
    near = _near(str(name_or_folder), [candidate.name for candidate in _folders()])
    raise NotFound(
        f"no task is called `{name_or_folder}`.",
        fix=f"Did you mean {near}?" if near else "`regraph task list` shows them.",
    )


def _is_task(folder: Path) -> bool:
    try:
        return (folder / MANIFEST).is_file()
    except OSError:  # a name that is too long for a folder's
        return False


def task_names() -> frozenset[str]:
    """The names of :func:`list_tasks`, nothing loaded."""
    return frozenset(folder.name for folder in _folders())


def list_tasks() -> list[Task]:
    """Every task of the user's folders and of the shipped ones, by name; a user's task hides a shipped one."""
    found: dict[str, Path] = {}
    for folder in _folders():
        found.setdefault(folder.name, folder)
    return [_load(found[name]) for name in sorted(found)]


def _near(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    return " or ".join(f"`{match}`" for match in get_close_matches(name, known, n=3))


def _folders() -> Iterator[Path]:
    """Folders of tasks: the user's first."""
    roots = [Path(root).expanduser() for root in load_settings().tasks]
    roots += [Path(point.load()) for point in entry_points(group="regraph.tasks")]
    for root in roots:
        if (root / MANIFEST).is_file():
            yield root.resolve()
        elif root.is_dir():
            yield from sorted(path.parent.resolve() for path in root.glob(f"*/{MANIFEST}"))


_LOADED: dict[Path, tuple[tuple[tuple[str, int, int], ...], Task]] = {}


def _load(folder: Path) -> Task:
    """Load, unless it was loaded before and no file of the folder has changed since."""
    stamp = tuple(sorted((p.name, (s := p.stat()).st_mtime_ns, s.st_size) for p in folder.iterdir() if p.is_file()))
    known = _LOADED.get(folder)
    if known is None or known[0] != stamp:
        _LOADED[folder] = known = (stamp, _read(folder))
    return known[1]


def _read(folder: Path) -> Task:
    file = folder / MANIFEST
    manifest, text = read_manifest(file)
    if manifest.name != folder.name:
        raise field_error(file, text, ("name",), f"`{manifest.name}` is not the folder's name, `{folder.name}`")
    _check_parameters(file, text, manifest)
    _check_sizes(file, text, manifest)
    reference = _read_reference(folder / REFERENCE, manifest.function)
    digest = hashlib.sha256(text.encode())
    digest.update(reference.encode())
    for name in sorted({p.generator.file for p in manifest.parameters if isinstance(p.generator, Python)}):
        if not (folder / name).is_file():
            raise InputError("the generator's file is missing.", where=str(folder / name), fix=f"{MANIFEST} names it.")
        digest.update((folder / name).read_bytes())
    return Task(
        name=manifest.name,
        title=manifest.title,
        tier=manifest.tier,
        split=manifest.split,
        origin=manifest.origin,
        function=manifest.function,
        abi=manifest.abi,
        allow=tuple(manifest.allow),
        parameters=manifest.parameters,
        sizes=manifest.sizes,
        seconds=manifest.limits.seconds,
        least_bytes=manifest.bytes,
        least_flops=manifest.flops,
        folder=folder,
        reference=reference,
        hash=digest.hexdigest()[:32],
    )


def _read_reference(file: Path, function: str) -> str:
    try:
        if file.stat().st_size > LONGEST_REFERENCE:
            raise InputError(f"larger than {LONGEST_REFERENCE} bytes.", where=str(file))
        reference = file.read_text("utf-8")
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}.", where=str(file), fix="A task needs its sequential reference."
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError("not UTF-8.", where=f"{file}:{line}", fix="Save the file as UTF-8.") from None
    if not re.search(rf"\b{function}\s*\(", reference):
        raise InputError(
            f"`{function}` is not defined.", where=str(file), fix=f'It must define `extern "C" void {function}(…)`.'
        )
    return reference


def _check_parameters(file: Path, text: str, manifest: Manifest) -> None:
    names = [parameter.name for parameter in manifest.parameters]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise field_error(file, text, ("parameters", index, "name"), f"`{name}` stands twice")
    if not any(parameter.writable for parameter in manifest.parameters):
        raise field_error(file, text, ("parameters",), "a task needs an output or an inout parameter")
    floating = sum(not p.is_array and p.dtype.floating for p in manifest.parameters)
    if floating > _MOST_FLOATING or len(names) - floating > _MOST_OTHERS:
        raise field_error(
            file,
            text,
            ("parameters",),
            f"at most {_MOST_FLOATING} floating scalars and {_MOST_OTHERS} other parameters",
        )


def _check_sizes(file: Path, text: str, manifest: Manifest) -> None:
    """Every expression has a value at every size, every size fits its parameter, every working set fits a machine."""
    first = manifest.sizes.check[0].keys()
    for group in ("check", "hidden", "timed"):
        for index, sizes in enumerate(getattr(manifest.sizes, group)):
            place = ("sizes", group, index)
            if sizes.keys() != first:
                raise field_error(
                    file,
                    text,
                    place,
                    f"names {', '.join(sizes) or 'nothing'}, the first check size names {', '.join(first)}",
                )
            for name, formula in (("bytes", manifest.bytes), ("flops", manifest.flops)):
                if formula is not None:
                    _at(file, text, (name,), formula, sizes)
            total = 0
            for number, parameter in enumerate(manifest.parameters):
                total += _check_parameter(file, text, number, parameter, sizes)
            if total > LARGEST_WORKING_SET:
                raise field_error(
                    file, text, place, f"the arrays take {total} bytes together, more than {LARGEST_WORKING_SET}"
                )


def _check_parameter(file: Path, text: str, number: int, parameter: Parameter, sizes: dict[str, int]) -> int:
    """Bytes of the parameter at ``sizes``; raises where an expression or a size is out of range."""
    path = ("parameters", number)
    if parameter.kind == "size":
        if parameter.name not in sizes:
            raise field_error(file, text, (*path, "name"), f"no size is called `{parameter.name}`")
        largest = 2 ** (8 * parameter.dtype.numpy.itemsize - (parameter.dtype.numpy.kind == "i")) - 1
        if sizes[parameter.name] > largest:
            raise field_error(
                file,
                text,
                (*path, "dtype"),
                f"`{parameter.name}` = {sizes[parameter.name]} does not fit {parameter.dtype.name}",
            )
    for key in ("low", "high", "value"):
        formula = getattr(parameter.generator, key, None)
        if isinstance(formula, Expression):
            _at(file, text, (*path, "generator", key), formula, sizes)
    total = parameter.dtype.numpy.itemsize if parameter.is_array else 0
    for formula in parameter.shape:
        _at(file, text, (*path, "shape"), formula, sizes)
        try:
            total *= formula.integer(sizes)
        except ExpressionError as error:
            raise field_error(file, text, (*path, "shape"), str(error)) from None
    if total > LARGEST_WORKING_SET:
        raise field_error(file, text, (*path, "shape"), f"{total} bytes are more than {LARGEST_WORKING_SET}")
    return total


def _at(file: Path, text: str, path: tuple[int | str, ...], formula: Expression, sizes: dict[str, int]) -> None:
    try:
        formula.value(sizes)
    except ExpressionError as error:
        raise field_error(file, text, path, str(error)) from None
