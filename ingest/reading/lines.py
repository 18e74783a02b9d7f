"""Bytes in: files, gzip and stdin as lines of bounded length, so that memory does not grow with the file."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from regraph_db.errors import InputError

#: The name that stands for standard input.
STDIN = "-"

_GZIP = b"\x1f\x8b"
_WIDE = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_BOM = b"\xef\xbb\xbf"
#: Bytes looked at to tell what a file is.
HEAD = 65_536
_SHOWN = 200


@dataclass(frozen=True)
class Line:
    """One line without its end. ``fault`` says why it cannot be read; its ``text`` is then only its beginning."""

    number: int
    text: str
    fault: str = ""


@dataclass
class Source:
    """An open input. ``consumed`` bytes of the ``size`` it had when it was opened (``None``: unknown) have been
    read."""

    name: str
    stream: IO[bytes]
    raw: IO[bytes]
    size: int | None

    @property
    def _peekable(self) -> io.BufferedReader:
        return cast(io.BufferedReader, self.stream)

    @property
    def consumed(self) -> int:
        """Bytes read from the file itself, before any decompression."""
        try:
            return self.raw.tell()
        except (OSError, ValueError):
            return 0

    def head(self) -> bytes:
        """The first bytes, left unread."""
        with _failures(self.name):
            return self._peekable.peek(HEAD)[:HEAD]

    def text(self, limit: int) -> str:
        """The whole input as text. Raises :class:`InputError` above ``limit`` bytes or for a wrong encoding."""
        with _failures(self.name):
            raw = self.stream.read(limit + 1)
        if len(raw) > limit:
            raise InputError(
                f"is one document of more than {limit:,} bytes.",
                where=self.name,
                fix="Write it as JSON lines, one trajectory a line, or raise the setting `ingest.document_limit`.",
            )
        try:
            return raw.removeprefix(_BOM).decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"is not UTF-8 at byte {error.start:,}.", where=self.name, fix="Save it as UTF-8."
            ) from None

    def lines(self, limit: int) -> Iterator[Line]:
        """Every line that is not blank. A line above ``limit`` bytes is passed over without being held."""
        number = 0
        while True:
            with _failures(self.name):
                raw = self.stream.readline(limit + 1)
            if not raw:
                return
            number += 1
            if len(raw) > limit and not raw.endswith(b"\n"):
                skipped = self._skip_line()
                yield Line(number, _shown(raw), f"the line has {len(raw) + skipped:,} bytes; the limit is {limit:,}")
                continue
            if number == 1:
                raw = raw.removeprefix(_BOM)
            try:
                text = raw.decode().strip()
            except UnicodeDecodeError as error:
                yield Line(number, _shown(raw), f"not UTF-8 at byte {error.start:,} of the line")
                continue
            if text:
                yield Line(number, text, self._growing(raw))

    def _skip_line(self) -> int:
        skipped = 0
        while True:
            with _failures(self.name):
                part = self.stream.readline(1 << 20)
            skipped += len(part)
            if not part or part.endswith(b"\n"):
                return skipped

    def _growing(self, raw: bytes) -> str:
        """A last line without its end, in a file that somebody still writes, is not whole yet."""
        if self.size is None or raw.endswith(b"\n"):
            return ""
        try:
            grown = os.fstat(self.raw.fileno()).st_size != self.size
        except OSError:
            return ""
        return (
            "the file is still being written and this line is not whole; run again with --resume when it is"
            if grown
            else ""
        )


@contextmanager
def open_source(name: str) -> Iterator[Source]:
    """Open the file ``name``, or standard input for ``-``; gzip is recognised by its first bytes.

    Reads no further than the size that a plain file has now. Raises :class:`InputError` for what is no text: a
    missing file, a
    folder, an empty file, another encoding, binary data.
    """
    if name == STDIN:
        yield _source("standard input", sys.stdin.buffer, None)
        return
    try:
        raw = Path(name).open("rb")  # noqa: SIM115  (closed below)
    except IsADirectoryError:
        raise InputError(
            "is a folder.", where=name, fix=f"Name the files in it, e.g. `{name.rstrip('/')}/*.jsonl`."
        ) from None
    except FileNotFoundError:
        raise InputError("no such file.", where=name) from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}.", where=name) from None
    with raw:
        status = os.fstat(raw.fileno())
        plain = stat.S_ISREG(status.st_mode)
        if plain and status.st_size == 0:
            raise InputError("is empty.", where=name, fix="A trajectory file holds one JSON object a line.")
        yield _source(name, raw, status.st_size if plain else None)


def _source(name: str, raw: IO[bytes], size: int | None) -> Source:
    bounded = io.BufferedReader(_Bounded(raw, size), HEAD)
    zipped = bounded.peek(2)[:2] == _GZIP
    stream = io.BufferedReader(gzip.GzipFile(fileobj=bounded), HEAD) if zipped else bounded
    source = Source(name, cast(IO[bytes], stream), raw, size)
    head = source.head()
    wide = next((encoding for mark, encoding in _WIDE.items() if head.startswith(mark)), None)
    if wide:
        raise InputError(f"is {wide}.", where=name, fix="Save it as UTF-8.")
    if b"\x00" in head:
        raise InputError(
            "is binary data and no text.", where=name, fix="A trajectory file holds one JSON object a line."
        )
    return source


class _Bounded(io.RawIOBase):
    """A stream that ends at ``size`` bytes, whatever is appended meanwhile."""

    def __init__(self, raw: IO[bytes], size: int | None) -> None:
        self._raw = raw
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        want = len(view) if self._left is None else min(len(view), self._left)
        part = self._raw.read(want) if want else b""
        view[: len(part)] = part
        if self._left is not None:
            self._left -= len(part)
        return len(part)


@contextmanager
def _failures(name: str) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"is damaged gzip: {error}.", where=name, fix="Compress or fetch it again.") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}.", where=name) from None


def _shown(raw: bytes) -> str:
    return raw[:_SHOWN].decode(errors="replace")
