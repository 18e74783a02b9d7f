"""Private folders for one run each, and the removal of those whose judge was killed before it could."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

_PREFIX = "regraph-run-"
_SHARED = Path("/dev/shm")
#: Seconds after its making before a folder that nobody holds counts as left behind.
_YOUNGEST = 60.0


class PrivateFolder:
    """A new folder, removed at the end; a lock on it tells others that its owner lives.

    ``parent``: where it is made; ``None``: the system's temporary folder.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self._handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._handle, fcntl.LOCK_SH)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._handle)


def remove_left_behind(parents: tuple[Path, ...] | None = None) -> int:
    """Remove private folders of this user that no living judge holds; returns how many.

    They are what a judge that was killed could not remove, and those in memory would keep it taken.
    """
    removed = 0
    for parent in parents or (Path(tempfile.gettempdir()), _SHARED):
        for folder in parent.glob(f"{_PREFIX}*") if parent.is_dir() else ():
            with suppress(OSError):
                status = folder.lstat()
                if status.st_uid != os.getuid() or time.time() - status.st_ctime < _YOUNGEST:
                    continue
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                    removed += 1
                finally:
                    os.close(handle)
    return removed
