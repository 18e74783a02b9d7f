"""Calls as two files that our C++ hosts read (``runner/call.h``): an index of arguments and the arrays' raw bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regraph_db.errors import InternalFault
from verify.dtypes import Array, widen
from verify.execution import Call
from verify.task import Task

_ALIGNMENT = 256
_KINDS = {"input": "read", "inout": "write", "output": "poison"}


@dataclass(frozen=True)
class Layout:
    """Where the arrays of each call lie, in the signature's order: (offset, shape, numpy dtype)."""

    arrays: tuple[tuple[tuple[int, tuple[int, ...], np.dtype[np.generic]], ...], ...]
    total: int  #: bytes of the arrays' file


def write_calls(task: Task, calls: Sequence[Call], index: Path, arrays: Path, *, widened: bool = False) -> Layout:
    """Write ``calls`` for a host; ``widened`` gives 16-bit floats as ``float32``, as a reference wants them.

    Raises :class:`InternalFault` when the disk is full.
    """
    lines: list[str] = []
    layout = []
    offset = 0
    try:
        with arrays.open("wb") as stream:
            for call in calls:
                lines.append(f"call {len(call.arguments)}")
                places = []
                for parameter, argument in zip(task.parameters, call.arguments, strict=True):
                    if not isinstance(argument, np.ndarray):
                        lines.append(_scalar(argument, parameter.dtype.name, parameter.dtype.floating))
                        continue
                    values = np.ascontiguousarray(widen(argument, parameter.dtype) if widened else argument)
                    _write_at(stream, offset, values)
                    lines.append(f"{_KINDS[parameter.kind]} {offset} {values.nbytes}")
                    places.append((offset, values.shape, values.dtype))
                    offset += -(-values.nbytes // _ALIGNMENT) * _ALIGNMENT
                layout.append(tuple(places))
            stream.truncate(offset)
        index.write_text("\n".join(lines) + "\n")
    except OSError as error:
        raise InternalFault(f"the inputs cannot be written: {error.strerror}.", where=str(arrays)) from error
    return Layout(tuple(layout), offset)


def _write_at(stream: BinaryIO, offset: int, values: Array) -> None:
    stream.seek(offset)
    stream.write(values.reshape(-1).view(np.uint8).data)


def _scalar(value: int | float, dtype: str, floating: bool) -> str:
    if not floating:
        return f"integer {int(value) & (2**64 - 1)}"
    packed = struct.pack("<d", value) if dtype == "float64" else struct.pack("<fI", value, 0)
    return f"floating {struct.unpack('<Q', packed)[0]}"


def read_arrays(layout: Layout, call: int, file: Path) -> list[Array]:
    """The arrays of one call from a host's file of outputs, in the signature's order.

    A file that is too short reads as zeros only where the host never wrote: callers know from the host's own record
    whether it did.
    """
    found = []
    with file.open("rb") as stream:
        for offset, shape, dtype in layout.arrays[call]:
            stream.seek(offset)
            count = int(np.prod(shape, dtype=np.int64))
            raw = stream.read(count * dtype.itemsize)
            if len(raw) != count * dtype.itemsize:
                raise InternalFault("the outputs are cut short.", where=str(file))
            found.append(np.frombuffer(raw, dtype).reshape(shape))
    return found
