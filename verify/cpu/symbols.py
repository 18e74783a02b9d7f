"""What a candidate's library defines and what it asks for, read from its ELF tables before anything of it runs."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: Variables of anchor.cpp.
_OURS = frozenset(("threadIdx", "blockIdx", "blockDim", "gridDim", "regraph_registers"))
_SYMTAB = 2
_OBJECT, _FUNCTION, _TLS, _UNIQUE = 1, 2, 6, 10


@dataclass(frozen=True)
class Symbol:
    """One entry of a symbol table."""

    name: str
    kind: int  #: ELF's STT_ number
    section: int  #: 0 where it is asked for, not defined
    value: int  #: offset in the image; for TLS, offset in the segment
    size: int


def read_symbols(library: Path) -> list[Symbol]:
    """The symbol table of a 64-bit little-endian ELF file.

    Raises :class:`ValueError` when the file is no such thing.
    """
    image = library.read_bytes()
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{library.name} is no 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table + size * i) for i in range(count)]
    found = []
    for _, kind, _, _, offset, length, link, _, _, _ in sections:
        if kind != _SYMTAB:
            continue
        names = sections[link][4]
        for position in range(offset, offset + length, 24):
            name, info, _, section, value, extent = struct.unpack_from("<IBBHQQ", image, position)
            end = image.index(b"\0", names + name)
            found.append(
                Symbol(image[names + name : end].decode("ascii", "replace"), info & 15, section, value, extent)
            )
    return found


@dataclass(frozen=True)
class Variable:
    """A variable of the candidate: where it lies, and whether it is ``__constant__``."""

    name: str
    offset: int
    size: int
    constant: bool


@dataclass(frozen=True)
class Layout:
    """What the driver needs to know of a library."""

    function: int  #: offset of the task's function
    variables: tuple[Variable, ...]
    shared: tuple[Variable, ...]
    kernels: tuple[tuple[int, str], ...]  #: offset and mangled name of every function


def read_layout(library: Path, function: str, constants: Iterable[str]) -> Layout | None:
    """The library's layout; ``None`` when it does not define ``function``."""
    defined = [symbol for symbol in read_symbols(library) if symbol.section and symbol.size]
    places = [s.value for s in defined if s.name == function and s.kind == _FUNCTION]
    if not places:
        return None
    constant_names = frozenset(constants)
    objects = [s for s in defined if s.kind in (_OBJECT, _UNIQUE) and s.name not in _OURS]
    shared = [
        s for s in defined if s.kind == _TLS and "regraph_red_zone" not in s.name and s.name != "_ZL13shared_anchor"
    ]
    return Layout(
        function=places[0],
        variables=tuple(
            Variable(name := readable(s.name), s.value, s.size, name.rpartition("::")[2] in constant_names)
            for s in objects
        ),
        shared=tuple(Variable(readable(s.name).rpartition("::")[2], s.value, s.size, False) for s in shared),
        kernels=tuple((s.value, s.name) for s in defined if s.kind == _FUNCTION),
    )


def readable(mangled: str) -> str:
    """The names in a mangled one, joined by ``::``; template arguments and parameters are left out.

    For a static local variable only its own name is kept: it follows the function's encoding.
    """
    if not mangled.startswith("_Z"):
        return mangled
    if mangled.startswith("_ZZ") or "Z" in mangled[2:4]:
        return _last_local(mangled)
    names, position = [], 2
    while position < len(mangled):
        if mangled[position] in "NLKVr":
            position += 1
            continue
        match = re.match(r"\d+", mangled[position:])
        if not match:
            break
        start = position + match.end()
        names.append(mangled[start : start + int(match.group())])
        position = start + int(match.group())
    return "::".join(names) or mangled


def _last_local(mangled: str) -> str:
    """The name after the last ``E`` that a length and a name follow to the end (a discriminator ``_N`` may follow)."""
    for match in reversed(list(re.finditer(r"E(\d+)", mangled))):
        for digits in range(1, len(match.group(1)) + 1):
            start = match.start(1) + digits
            name = mangled[start : start + int(match.group(1)[:digits])]
            rest = mangled[start + len(name) :]
            if name.isidentifier() and re.fullmatch(r"(_\d+_?|B\d+\w+)?", rest):
                return name
    return mangled
