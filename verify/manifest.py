"""The words of a ``task.toml``, validated field by field; errors name file, line and field.

The format's page is ``docs/task-format.md``.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError, model_validator

from regraph_db.errors import InputError
from verify.dtypes import DTYPES, Dtype, Tolerance
from verify.expressions import Expression, ExpressionError

MANIFEST = "task.toml"
LONGEST_MANIFEST = 256 * 1024
IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"
#: What a task may allow besides CUDA C++ itself.
ALLOWANCES = ("cublas", "cufft", "cusparse", "cub", "thrust", "cooperative_launch", "graphs")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)


def _expression(value: object) -> Expression:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a number or an expression over the sizes is wanted")
    try:
        return Expression.parse(value)
    except ExpressionError as error:
        raise ValueError(str(error)) from None


def _tolerance(value: object) -> Tolerance:
    if not isinstance(value, dict) or not set(value) <= {"relative", "absolute"} or not value:
        raise ValueError("{relative = …, absolute = …} is wanted")
    numbers = [value.get("relative", 0.0), value.get("absolute", 0.0)]
    if not all(isinstance(n, int | float) and not isinstance(n, bool) and 0 <= n < 1e6 for n in numbers):
        raise ValueError("relative and absolute must be finite numbers that are not negative")
    return Tolerance(float(numbers[0]), float(numbers[1]))


def _dtype(value: object) -> Dtype:
    if not isinstance(value, str) or value not in DTYPES:
        raise ValueError(f"one of {', '.join(DTYPES)} is wanted")
    return DTYPES[value]


Formula = Annotated[Expression, PlainValidator(_expression)]


class Uniform(_Model):
    kind: Literal["uniform"]
    low: Formula
    high: Formula


class Normal(_Model):
    kind: Literal["normal"]
    mean: float = 0.0
    std: float = Field(1.0, ge=0)


class Integers(_Model):
    kind: Literal["integers"]
    low: Formula
    high: Formula


class Sorted(_Model):
    kind: Literal["sorted"]
    low: Formula
    high: Formula


class Constant(_Model):
    kind: Literal["constant"]
    value: Formula


class Plain(_Model):
    kind: Literal["one_hot", "permutation", "heavy_tailed", "special"]


class Python(_Model):
    kind: Literal["python"]
    file: str = Field(pattern=r"^[A-Za-z0-9_]+\.py$")
    function: str = Field(pattern=IDENTIFIER)


Generator = Annotated[Uniform | Normal | Integers | Sorted | Constant | Plain | Python, Field(discriminator="kind")]


class Parameter(_Model):
    """One parameter of the task's function, in the signature's order."""

    name: str = Field(pattern=IDENTIFIER)
    kind: Literal["scalar", "size", "input", "output", "inout"]
    dtype: Annotated[Dtype, PlainValidator(_dtype)]
    shape: tuple[Formula, ...] = ()
    generator: Generator | None = None
    tolerance: Annotated[Tolerance, PlainValidator(_tolerance)] | None = None
    vary: bool = True

    @property
    def is_array(self) -> bool:
        return self.kind in ("input", "output", "inout")

    @property
    def writable(self) -> bool:
        """Whether the candidate may write it."""
        return self.kind in ("output", "inout")

    @property
    def accepted(self) -> Tolerance:
        """Its tolerance, or its dtype's default."""
        return self.tolerance or self.dtype.tolerance

    @property
    def ctype(self) -> str:
        """Its element type in a candidate, e.g. ``__half``."""
        return self.dtype.cuda

    @property
    def numpy_dtype(self) -> Any:
        """The numpy dtype that its arrays travel as."""
        return self.dtype.numpy

    @property
    def declaration(self) -> str:
        """Its declaration in a candidate, e.g. ``const float* x``."""
        return self._declare(self.dtype.cuda)

    @property
    def reference_declaration(self) -> str:
        """Its declaration in reference.cpp."""
        return self._declare(self.dtype.reference)

    def _declare(self, ctype: str) -> str:
        if not self.is_array:
            return f"{ctype} {self.name}"
        return f"{'const ' if self.kind == 'input' else ''}{ctype}* {self.name}"

    def shape_at(self, sizes: dict[str, int]) -> tuple[int, ...]:
        """Its shape at ``sizes``. Raises :class:`~verify.expressions.ExpressionError`."""
        return tuple(extent.integer(sizes) for extent in self.shape)

    @model_validator(mode="after")
    def _whole(self) -> Parameter:
        if self.is_array and not self.shape:
            raise ValueError("an array needs `shape`")
        if not self.is_array and self.shape:
            raise ValueError(f"a {self.kind} has no `shape`")
        if self.kind in ("scalar", "input", "inout") and self.generator is None:
            raise ValueError(f"a {self.kind} needs a `generator`")
        if self.kind in ("output", "size") and self.generator is not None:
            raise ValueError(f"a {self.kind} has no `generator`")
        if self.kind == "size" and self.dtype.floating:
            raise ValueError("a size is an integer")
        if not self.is_array and self.dtype.half:
            raise ValueError("16-bit floats are arrays only; pass the scalar as float32")
        if self.tolerance is not None and not self.writable:
            raise ValueError(f"a {self.kind} has no `tolerance`")
        return self


SizeSets = tuple[dict[str, Annotated[int, Field(strict=True, ge=0, lt=2**62)]], ...]


class Sizes(_Model):
    """Named sizes, a table for each run."""

    check: SizeSets = Field(min_length=1)
    hidden: SizeSets = ()
    timed: SizeSets = ()

    @property
    def all(self) -> SizeSets:
        return self.check + self.hidden + self.timed


class TaskLimits(_Model):
    """What one run of a candidate may use."""

    seconds: float = Field(default=20.0, gt=0, le=600)


def _not_empty(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        raise ValueError("must not be empty")
    return value


Text = Annotated[str, BeforeValidator(_not_empty), Field(max_length=2000)]


class Manifest(_Model):
    """A whole ``task.toml``."""

    schema_: Literal[1] = Field(alias="schema")
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")
    title: Text
    tier: Literal["easy", "medium", "hard"]
    split: Literal["train", "test"] = "test"
    origin: str = ""
    function: str = Field(pattern=IDENTIFIER)
    abi: Literal["device", "host"] = "device"
    allow: tuple[Literal["cublas", "cufft", "cusparse", "cub", "thrust", "cooperative_launch", "graphs"], ...] = ()
    bytes: Formula | None = None
    flops: Formula | None = None
    sizes: Sizes
    parameters: tuple[Parameter, ...] = Field(min_length=1)
    limits: TaskLimits = Field(default_factory=TaskLimits)


def read_manifest(file: Path) -> tuple[Manifest, str]:
    """The manifest in ``file`` and its text. Raises :class:`InputError` naming file, line and field."""
    try:
        raw = file.read_bytes()
        if len(raw) > LONGEST_MANIFEST:
            raise InputError(f"{len(raw)} bytes are too many for a manifest.", where=str(file))
        text = raw.decode("utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}.", where=str(file), fix="A task is a folder with a task.toml."
        ) from None
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError("not UTF-8.", where=f"{file}:{line}", fix="Save the file as UTF-8.") from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"not valid TOML: {error}.", where=str(file)) from None
    try:
        return Manifest.model_validate(table), text
    except ValidationError as error:
        errors = error.errors(include_url=False)
        # A misspelt field is both unknown and missing: the unknown one stands in the file and has a line.
        first = min(errors, key=lambda each: each["type"] != "extra_forbidden")
        path = tuple(part for part in first["loc"] if part not in _TAGS)
        message = str(first["msg"]).removeprefix("Value error, ")
        raise field_error(file, text, path, message) from None
    except RecursionError:
        raise InputError("nested too deeply.", where=str(file)) from None


#: Names that pydantic puts into a location for the member of a union that it tried.
_TAGS = {
    "uniform",
    "normal",
    "integers",
    "sorted",
    "constant",
    "one_hot",
    "permutation",
    "heavy_tailed",
    "special",
    "python",
}


def field_error(file: Path, text: str, path: tuple[int | str, ...], message: str) -> InputError:
    """An error about the field at ``path`` of the manifest ``text``, with its line where it can be found."""
    line = locate(text, path)
    where = f"{file}:{line}" if line else str(file)
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    return InputError(
        f"{message}.",
        where=f"{where}, field `{shown}`" if shown else where,
        fix="docs/task-format.md describes every field.",
    )


def locate(text: str, path: tuple[int | str, ...]) -> int | None:
    """The line (from 1) of the field at ``path``, or of the table it would stand in; ``None`` when it is nowhere."""
    header: str | None = None
    wanted_index = 0
    keys = [part for part in path if isinstance(part, str)]
    if path[:1] == ("parameters",):
        header, keys = "parameters", keys[1:]
        wanted_index = path[1] if len(path) > 1 and isinstance(path[1], int) else 0
    elif path and path[0] in ("sizes", "limits"):
        header, keys = str(path[0]), keys[1:]
    current: str | None = None
    seen = -1
    best: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        found = re.match(r"\s*\[\[?\s*([A-Za-z_.]+)\s*\]\]?", line)
        if found:
            current = found[1]
            seen += current == "parameters"
            if current == header and (header != "parameters" or seen == wanted_index):
                best = number
                if not keys:
                    return number
        elif (
            keys
            and current == header
            and (header != "parameters" or seen == wanted_index)
            and re.match(rf"\s*{re.escape(keys[0])}\s*[.=]", line)
        ):
            return number
    return best
