"""One tree of errors, each with the exit code that a command ends with.

::

    RegraphError
    ├── InputError           2  wrong usage or a bad file: the user can mend it
    ├── EnvironmentFault     3  something outside the program is missing or away
    │   └── StoreError       3  the graph store
    │       ├── StoreUnreachable      the server is away, or refuses the credentials
    │       ├── StoreUnusable         a file or database that cannot be used as a regraph
    │       └── SchemaMismatch        written by a newer program, or not yet migrated
    ├── NotFound             2  a name that the graph or the disk does not hold
    └── InternalFault        4  our own fault: a broken invariant, a judge that failed

A message is one paragraph: what happened, where, and what to do about it.
"""

from __future__ import annotations


class RegraphError(Exception):
    """The root. ``what`` happened, ``where`` (file, line, field) and what to do (``fix``)."""

    exit_code = 4

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what = what
        self.where = where
        self.fix = fix
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f" {self.fix}" if self.fix else ""
        return f"{place}{self.what}{advice}"


class InputError(RegraphError):
    """Wrong usage or bad input; nothing was changed."""

    exit_code = 2


class NotFound(InputError):
    """A technique, search, task or file that is not there."""


class EnvironmentFault(RegraphError):
    """No nvcc, no model, no compiler, no server: the machine lacks something."""

    exit_code = 3


class StoreError(EnvironmentFault):
    """The graph store cannot do its work."""


class StoreUnreachable(StoreError):
    """The server does not answer, or refuses the credentials."""


class StoreUnusable(StoreError):
    """A corrupt file, a folder without permission, a full disk, a database that is not a regraph."""


class SchemaMismatch(StoreError):
    """The store is newer than the program, or has not been migrated yet."""


class InternalFault(RegraphError):
    """A bug, or a judge that could not do its work; never a statement about a kernel."""

    exit_code = 4
