"""Just enough of the GGUF format to say what is wrong with a file before llama.cpp is asked to load it."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import BinaryIO

from regraph_db.errors import EnvironmentFault

MAGIC = b"GGUF"
_ADVICE = "Name a GGUF file, e.g. the demonstration model in slm/model/, or fetch it again."
#: Bytes hashed at each end of a file for its identity; the whole of a large model would take seconds.
_HASHED = 1 << 20
_FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9


def check_gguf(path: Path) -> int | None:
    """The tokens of context that the model was trained for, where the file says so.

    Raises :class:`EnvironmentFault` when ``path`` is missing, no GGUF, or cut off in its header or tensors.
    """
    context = None
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            if stream.read(4) != MAGIC:
                raise EnvironmentFault("not a GGUF file.", where=str(path), fix=_ADVICE)
            end, context = _read_header(stream, size)
    except FileNotFoundError:
        raise EnvironmentFault("the model file is not there.", where=str(path), fix=_ADVICE) from None
    except OSError as error:
        raise EnvironmentFault(
            f"the model file cannot be read: {error.strerror}.", where=str(path), fix=_ADVICE
        ) from None
    except (struct.error, ValueError, OverflowError, MemoryError):
        end = size + 1
    if end > size:
        raise EnvironmentFault(f"the model file is truncated: it ends at {size} bytes.", where=str(path), fix=_ADVICE)
    return context


def identity(path: Path) -> str:
    """The file's name and a hash of its size and both ends, e.g. ``small.gguf#1f2e3d4c5b6a``."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as stream:
        digest.update(stream.read(_HASHED))
        stream.seek(max(0, size - _HASHED))
        digest.update(stream.read(_HASHED))
    return f"{path.name}#{digest.hexdigest()[:12]}"


def _read_header(stream: BinaryIO, size: int) -> tuple[int, int | None]:
    """The least size that a file with this header has (where its last tensor begins), and the context it names."""
    version, tensors, pairs = struct.unpack("<IQQ", stream.read(20))
    if version < 2 or tensors > 1 << 20 or pairs > 1 << 20:
        raise ValueError("no such header")
    alignment, context = 32, None
    for _ in range(pairs):
        key = _text(stream, size)
        (kind,) = struct.unpack("<I", stream.read(4))
        value = _value(stream, kind, size)
        if key == b"general.alignment" and isinstance(value, int):
            alignment = max(1, value)
        if key.endswith(b".context_length") and isinstance(value, int):
            context = value
    last = 0
    for _ in range(tensors):
        _text(stream, size)
        (dimensions,) = struct.unpack("<I", stream.read(4))
        extents = struct.unpack(f"<{dimensions}Q", stream.read(8 * dimensions))
        _, offset = struct.unpack("<IQ", stream.read(12))
        last = max(last, offset + (1 if all(extents) else 0))
    header = stream.tell()
    return (header + alignment - 1) // alignment * alignment + last, context


def _text(stream: BinaryIO, size: int) -> bytes:
    (length,) = struct.unpack("<Q", stream.read(8))
    if length > size:
        raise ValueError("longer than the file")
    text = stream.read(length)
    if len(text) != length:
        raise ValueError("cut off")
    return text


def _value(stream: BinaryIO, kind: int, size: int) -> object:
    if kind == _STRING:
        return _text(stream, size)
    if kind == _ARRAY:
        of, count = struct.unpack("<IQ", stream.read(12))
        if of in _FIXED:
            stream.seek(_FIXED[of] * count, 1)
        else:
            for _ in range(count):
                _value(stream, of, size)
        return None
    raw = stream.read(_FIXED[kind]) if kind in _FIXED else b""
    if kind not in _FIXED or len(raw) != _FIXED[kind]:
        raise ValueError("cut off or unknown")
    return int.from_bytes(raw, "little")
