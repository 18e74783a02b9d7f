"""Content-addressed files with a cap: what was compiled, computed or judged once is not done again."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from regraph_db.errors import InternalFault

_PUTS_BETWEEN_SWEEPS = 64
_LOCK = ".lock"


class Cache:
    """Files by key in one folder, safe for several threads and processes: entries appear whole or not at all.

    When the entries take more than ``cap`` bytes, the longest unused go first.
    """

    def __init__(self, folder: Path, cap: int) -> None:
        self.folder = folder
        self.cap = cap
        self._puts = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> Path | None:
        """The entry's file, marked as used now; ``None`` when there is none."""
        path = self._path(key)
        try:
            os.utime(path)
        except OSError:
            return None
        return path

    def read(self, key: str) -> bytes | None:
        """The entry's bytes; ``None`` when there is none."""
        path = self.get(key)
        try:
            return path.read_bytes() if path else None
        except OSError:
            return None

    def put(self, key: str, source: Path | bytes) -> Path:
        """Store a file's content or bytes; returns the entry's file.

        Bytes replace what stands there. A file that another process stored meanwhile stays: it may be in use in a
        sandbox, whose rules name that very file and not its successor of the same name.

        Raises :class:`InternalFault` when the disk is full or the folder cannot be written.
        """
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as stream:
                    if isinstance(source, bytes):
                        stream.write(source)
                    else:
                        with source.open("rb") as content:
                            shutil.copyfileobj(content, stream, 1 << 20)
                Path(name).chmod(0o755)
                if isinstance(source, Path) and path.exists():
                    Path(name).unlink()
                else:
                    Path(name).replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise _unwritable(path.parent, error) from error
        with self._lock:
            self._puts += 1
            sweep = self._puts % _PUTS_BETWEEN_SWEEPS == 1
        if sweep:
            self.sweep()
        return path

    @contextlib.contextmanager
    def making(self, key: str) -> Iterator[None]:
        """Hold the making of an entry, between threads and processes: look for it again within, then make it.

        Many searches that begin at once on one machine want the same entries. Entries that share a folder share a lock,
        so one must not be made within the making of another of the same cache.
        """
        folder = self._path(key).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unwritable(folder, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def sweep(self) -> int:
        """Remove the longest unused entries until the rest fits the cap; returns the bytes removed."""
        entries = []
        for path in self.folder.glob("*/*"):
            if path.name == _LOCK:
                continue
            with contextlib.suppress(OSError):
                status = path.stat()
                entries.append((status.st_mtime_ns, status.st_size, path))
        excess = sum(size for _, size, _ in entries) - self.cap
        removed = 0
        for _, size, path in sorted(entries):
            if removed >= excess:
                break
            with contextlib.suppress(OSError):
                path.unlink()
                removed += size
        return removed

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key


def _unwritable(folder: Path, error: OSError) -> InternalFault:
    return InternalFault(
        f"the cache cannot be written: {error.strerror}.", where=str(folder), fix="Free some space or set `cache`."
    )
