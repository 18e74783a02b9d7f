"""Reads what a shared object needs, offers and runs at load, without loading it (ELF64, little-endian)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_SYMTAB, _RELA, _DYNSYM, _INIT_ARRAY = 2, 4, 11, 14


class NotElf(ValueError):
    """The bytes are no ELF64 shared object, or a broken one."""


@dataclass(frozen=True)
class SharedObject:
    """The symbols of a shared object."""

    needs: frozenset[str]  #: symbols that others must define
    offers: frozenset[str]  #: symbols that it defines for others
    at_load: tuple[str, ...]  #: names of the functions that the loader calls; ``?`` for one without a name
    thread_local: bool  #: whether it has thread-local variables


def read_shared_object(path: Path) -> SharedObject:
    """Read the symbols of ``path``. Raises :class:`NotElf`."""
    content = path.read_bytes()
    try:
        return _read(content)
    except (struct.error, IndexError, ValueError) as error:
        raise NotElf(f"{path.name} is not a sound ELF file: {error}") from None


def _read(content: bytes) -> SharedObject:
    if content[:6] != b"\x7fELF\x02\x01":
        raise NotElf("no ELF64 header")
    (table,) = struct.unpack_from("<Q", content, 0x28)
    size, count, _ = struct.unpack_from("<HHH", content, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, table + index * size) for index in range(count)]
    needs: set[str] = set()
    offers: set[str] = set()
    by_address: dict[int, str] = {}
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind not in (_SYMTAB, _DYNSYM) or not entry:
            continue
        names = sections[link][4]
        for place in range(offset, offset + length, entry):
            name, how, _, section, value, _ = struct.unpack_from("<IBBHQQ", content, place)
            text = content[names + name : content.index(b"\0", names + name)].decode(errors="replace")
            if how & 15 == 2 and section:
                by_address[value] = text
            if kind == _DYNSYM and text and how >> 4 in (1, 2):
                (offers if section else needs).add(text.partition("@")[0])
    starts = [(section[3], section[3] + section[5]) for section in sections if section[1] == _INIT_ARRAY]
    at_load = []
    for _, kind, _, _, offset, length, _, _, _, entry in sections:
        if kind != _RELA or not entry:
            continue
        for place in range(offset, offset + length, entry):
            target, _, addend = struct.unpack_from("<QQq", content, place)
            if any(start <= target < end for start, end in starts):
                at_load.append(by_address.get(addend, "?"))
    return SharedObject(frozenset(needs), frozenset(offers), tuple(at_load), _has_thread_locals(content))


def _has_thread_locals(content: bytes) -> bool:
    (table,) = struct.unpack_from("<Q", content, 0x20)
    size, count = struct.unpack_from("<HH", content, 0x36)
    return any(struct.unpack_from("<I", content, table + index * size)[0] == 7 for index in range(count))
