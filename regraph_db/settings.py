"""Settings: flags before ``REGRAPH_*`` variables before ``regraph.toml`` before defaults; unknown ones are refused.

Top-level keys stand in :class:`Settings`. A package above adds a table of its own through the entry-point group
``regraph.settings``; ``[search]`` in the file is ``REGRAPH_SEARCH__EPSILON`` in the environment.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from regraph_db.errors import InputError

FILE = "regraph.toml"
PREFIX = "REGRAPH_"
#: Variables of the test suite, which are no settings.
IGNORED_PREFIX = "REGRAPH_TEST_"


class Section(BaseModel):
    """The base of every table of settings: frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Settings(Section):
    """The settings that every part shares."""

    store: str = Field(
        "sqlite:///regraph.db", description="URL of the graph: sqlite:///FILE, neo4j://HOST, bolt://HOST (+s, +ssc)"
    )
    neo4j_user: str = Field("neo4j", description="user of a Neo4j store")
    neo4j_password: SecretStr | None = Field(
        None, description="password of a Neo4j store; best given as REGRAPH_NEO4J_PASSWORD"
    )
    neo4j_database: str = Field("neo4j", description="database of a Neo4j store")
    store_timeout: float = Field(
        60.0, gt=0, description="seconds to wait for a store that is away or locked before giving up"
    )
    cache: Path = Field(Path("~/.cache/regraph"), description="folder for compiled and judged results")
    tasks: tuple[Path, ...] = Field((), description="folders of your own tasks, beside the shipped ones")
    model: str | None = Field(None, description="the small model: FILE.gguf or langchain:PROVIDER/NAME")

    @property
    def cache_folder(self) -> Path:
        """The cache folder with ``~`` resolved; not created."""
        return self.cache.expanduser()


S = TypeVar("S", bound=Section)


def cores() -> int:
    """Cores that this process may use: fewer than the machine has in many a container, or under taskset."""
    return len(os.sched_getaffinity(0))


def load(flags: Mapping[str, Any] | None = None) -> Settings:
    """The shared settings. ``flags`` whose value is ``None`` count as not given.

    Raises :class:`InputError` for an unknown key, variable or table and for a value of the wrong kind.
    """
    return _validated(Settings, "", flags)


def section(name: str, model: type[S], flags: Mapping[str, Any] | None = None) -> S:
    """The table ``name``, e.g. ``section("search", SearchSettings, {"budget": 60})``; errors as in :func:`load`."""
    return _validated(model, name, flags)


def _validated(model: type[S], table: str, flags: Mapping[str, Any] | None) -> S:
    _refuse_unknown()
    prefix = f"{PREFIX}{table.upper()}__" if table else PREFIX
    file_values = _file().get(table, {}) if table else {k: v for k, v in _file().items() if k in Settings.model_fields}
    env_values = {}
    for key in model.model_fields:
        raw = os.environ.get(prefix + key.upper())
        if raw is not None:
            env_values[key] = _split(model, key, raw)
    given = {k: v for k, v in (flags or {}).items() if v is not None}
    try:
        return model.model_validate({**file_values, **env_values, **given})
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        if key in given:
            where = "--" + key.replace("_", "-")
        elif key in env_values:
            where = prefix + key.upper()
        else:
            where = f"{FILE}, {table + '.' if table else ''}{key}"
        raise InputError(
            f"{first['msg']}.", where=where, fix="`regraph doctor --settings` lists every setting."
        ) from None


def _split(model: type[Section], key: str, raw: str) -> object:
    """A variable's text; lists are separated as PATH is."""
    if str(model.model_fields[key].annotation).startswith("tuple"):
        return tuple(part for part in raw.split(os.pathsep) if part)
    return raw


@cache
def sections() -> frozenset[str]:
    """Names of the tables that installed packages declare."""
    return frozenset(point.name for point in entry_points(group="regraph.settings"))


def _file() -> dict[str, Any]:
    try:
        with Path(FILE).open("rb") as stream:
            return tomllib.load(stream)
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not valid TOML: {error}.", where=FILE, fix="Mend or remove the file.") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}.", where=FILE) from None


def _refuse_unknown() -> None:
    for key, value in _file().items():
        if key in Settings.model_fields:
            continue
        if key in sections() and isinstance(value, dict):
            continue
        raise InputError(
            f"unknown setting `{key}`.", where=FILE, fix="`regraph doctor --settings` lists every setting."
        )
    known = {PREFIX + key.upper() for key in Settings.model_fields}
    tables = tuple(f"{PREFIX}{name.upper()}__" for name in sections())
    for name in os.environ:
        if not name.startswith(PREFIX) or name.startswith(IGNORED_PREFIX) or name in known:
            continue
        if name.startswith(tables):
            _refuse_unknown_in_table(name)
            continue
        raise InputError("unknown setting.", where=name, fix="`regraph doctor --settings` lists every setting.")


def _refuse_unknown_in_table(variable: str) -> None:
    table, _, key = variable.removeprefix(PREFIX).partition("__")
    model = section_model(table.lower())
    if key.lower() not in model.model_fields:
        raise InputError("unknown setting.", where=variable, fix="`regraph doctor --settings` lists every setting.")


def section_model(name: str) -> type[Section]:
    """The pydantic model of the table ``name``."""
    (point,) = entry_points(group="regraph.settings", name=name)
    model: type[Section] = point.load()
    return model
