"""Profiles: what the model knows of a GPU, one small TOML file each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from regraph_db.errors import InputError, NotFound

FOLDER = Path(__file__).with_name("profiles")


@dataclass(frozen=True)
class Hardware:
    """Published properties of a GPU."""

    architecture: str  #: for nvcc, e.g. ``sm_90``
    multiprocessors: int
    clock: float  #: GHz under load
    warps: int  #: resident on a multiprocessor at most
    blocks: int  #: resident on a multiprocessor at most
    shared: int  #: bytes of shared memory a multiprocessor
    shared_reserved: int  #: bytes of it that each block takes besides its own
    l2: float  #: bytes
    double_rate: float  #: float64 instructions a clock and multiprocessor, in warps


@dataclass(frozen=True)
class Constants:
    """What is fitted (docs/modelled-time.md gives each one's meaning in the formula)."""

    dram: float  #: bytes a ns
    l2_read: float  #: bytes a ns
    l2_write: float  #: bytes a ns
    near_wait: float  #: clocks that a batch of loads waits for L1
    middle_wait: float  #: for L2
    far_wait: float  #: for DRAM
    shared_wait: float  #: for shared memory
    step: float  #: clocks between dependent instructions of one warp
    integer: float  #: GPU instructions for one integer instruction of the host that does no 32-bit arithmetic
    barrier: float  #: clocks of a barrier, a warp
    meeting: float  #: clocks of a warp operation
    hot_update: float  #: ns between two updates of one line
    spread_update: float  #: ns between two updates of different lines
    block: float  #: ns between the starts of two blocks
    launch: float  #: microseconds of a launch
    power: float  #: of the norm that joins the terms
    unit: float  #: clocks of one turn of the load/store unit
    issue: float  #: issue slots of one instruction
    l2_share: float  #: bytes of L2 that data of an earlier launch is still found in
    memset: float  #: microseconds of a memset's launch


@dataclass(frozen=True)
class Profile:
    """A GPU for the model."""

    name: str
    title: str
    calibrated: str  #: when and on what the constants were fitted; empty: uncalibrated, from published data
    hardware: Hardware
    constants: Constants


def load_profile(name: str) -> Profile:
    """The shipped profile ``name``, or the file of that path.

    Raises :class:`NotFound` when there is none, :class:`InputError` (file, field) when it is not valid.
    """
    file = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not file.is_file():
        known = ", ".join(sorted(path.stem for path in FOLDER.glob("*.toml")))
        raise NotFound(
            f"no GPU profile `{name}`.", where=str(file), fix=f"There are {known}; `regraph gpu calibrate` makes one."
        )
    try:
        table = tomllib.loads(file.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not valid TOML: {error}.", where=str(file)) from None
    hardware = _fields(file, table, "hardware", Hardware)
    constants = _fields(file, table, "constants", Constants)
    return Profile(
        file.stem,
        str(table.get("title", file.stem)),
        str(table.get("calibrated", "")),
        Hardware(**hardware),
        Constants(**constants),
    )


def _fields(file: Path, table: dict[str, object], name: str, model: type[Hardware] | type[Constants]) -> dict[str, Any]:
    given = table.get(name)
    if not isinstance(given, dict):
        raise InputError("this table is missing.", where=f"{file}, [{name}]")
    wanted = {field.name: field.type for field in fields(model)}
    for key in wanted.keys() ^ given.keys():
        raise InputError("unknown field." if key in given else "this field is missing.", where=f"{file}, {name}.{key}")
    values: dict[str, Any] = {}
    for key, kind in wanted.items():
        value = given[key]
        if isinstance(value, bool) or not isinstance(value, str if kind == "str" else (int, float)):
            raise InputError(f"a {'text' if kind == 'str' else 'number'} is wanted.", where=f"{file}, {name}.{key}")
        if not isinstance(value, str) and value <= 0:
            raise InputError("it must be positive.", where=f"{file}, {name}.{key}")
        values[key] = int(value) if kind == "int" and not isinstance(value, str) else value
    return values


def profile_text(profile: Profile, comment: str) -> str:
    """A profile's file."""
    lines = [
        *(f"# {line}" for line in comment.splitlines()),
        f'title = "{profile.title}"',
        f'calibrated = "{profile.calibrated}"',
    ]
    for name, part in (("hardware", profile.hardware), ("constants", profile.constants)):
        lines += ["", f"[{name}]"]
        for field in fields(part):
            value = getattr(part, field.name)
            lines.append(f'{field.name} = "{value}"' if isinstance(value, str) else f"{field.name} = {value:.6g}")
    return "\n".join(lines) + "\n"
