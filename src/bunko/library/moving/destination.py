"""Read where a library should move to, and check that nothing else is there."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from bunko import stores
from bunko.errors import LibraryError, LibraryReadOnly, SettingsError
from bunko.library.opening.paths import LibraryPaths
from bunko.protocols import Store
from bunko.settings import Settings
from bunko.types.records import DatabaseServer, StoreAddress

SETTINGS_KEYS = ("storage.kind", "storage.url", "storage.schema")
PATH_KEYS = ("database.path", "library.path")
_SQLITE_PREFIX, _POSTGRES_SCHEMES = "sqlite:", ("postgresql", "postgres")
_TO_HINT = "Write --to postgresql://USER@HOST/DATABASE or --to sqlite:FILE."


@dataclass(frozen=True, slots=True)
class Destination:
    """A place for a library, and the settings that name it."""

    address: StoreAddress
    changes: dict[str, str | None]  # of settings; None: to be removed

    @property
    def display(self) -> str:
        """The place, for messages."""
        return stores.display_location(*self.address)


# What is at a destination: nothing, a copy that was begun, or what an earlier move left.
Content = Literal["empty", "unfinished", "former"]


def parse_destination(text: str, paths: LibraryPaths, located: LibraryPaths, settings: Settings) -> Destination:
    """Return the place that `--to` names; relative paths begin at the current folder.

    `located` is the library as flags and the environment name it, which the settings may have changed to `paths`.
    """
    if text.startswith(_SQLITE_PREFIX):
        return _file_destination(text.removeprefix(_SQLITE_PREFIX), paths, located)
    if text.partition("://")[0] not in _POSTGRES_SCHEMES or "://" not in text:
        raise SettingsError("This is not a place for a library", hint=_TO_HINT)  # it may contain a password
    url, schema = _split_schema(text)
    storage = settings.storage
    schema = schema or storage.schema
    server = DatabaseServer(url, schema, storage.password, storage.pool_size)
    address = StoreAddress("postgres", paths.database, server)
    stores.display_location(*address)  # checks the URL before anything is opened
    return Destination(address, dict(zip(SETTINGS_KEYS, ("postgres", url, schema), strict=True)))


def _file_destination(name: str, paths: LibraryPaths, located: LibraryPaths) -> Destination:
    if not name.strip():
        raise SettingsError("sqlite: names no file", hint=_TO_HINT)
    path = Path(name).expanduser().absolute()
    if path.is_dir():
        raise SettingsError(f"{path} is a folder", hint=f"Name a file: sqlite:{path / paths.database.name}")
    changes: dict[str, str | None] = {"storage.kind": "sqlite", "storage.url": None, "storage.schema": None}
    if path != paths.database:
        changes |= {"database.path": None if path == located.database else str(path), "library.path": None}
    return Destination(StoreAddress("sqlite", path), changes)


def _split_schema(url: str) -> tuple[str, str]:
    """Return a URL without its parameter `schema`, and that schema: the settings have a key for it."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return url, ""  # the store says what is wrong with it
    schema = next((value for name, value in query if name == "schema"), "")
    if not schema:
        return url, ""
    return parts._replace(query=urlencode([pair for pair in query if pair[0] != "schema"])).geturl(), schema


def address_argument(address: StoreAddress) -> str:
    """Return what `--to` must be to move a library to an address."""
    if address.server is None:
        return f"{_SQLITE_PREFIX}{address.location}"
    url, schema = _split_schema(address.server.url)
    return f"{url}{'&' if '?' in url else '?'}schema={schema or address.server.schema}"


def check_destination(source: Store, destination: Destination) -> Content:
    """Return what is at a destination; raise an error if it is neither empty nor this library's."""
    place = destination.display
    is_file = destination.address.server is None
    if place == source.location or (is_file and source.files.contain(os.path.realpath(destination.address.location))):
        raise _here_already_error(place)
    if not stores.exists(*destination.address):
        return "empty"
    try:
        store = stores.build(*destination.address, read_only=True)
    except LibraryReadOnly as error:  # its tables are older than those of this bunko
        raise _holds_other_error(place) from error
    with closing(store):
        copy_of = store.rows.copy_of()
        if copy_of:
            if copy_of != source.id:
                raise LibraryError(
                    f"{place} holds a copy of another library",
                    hint="Finish that move, delete what is there, or name another place.",
                )
            return "unfinished"
        if store.id == source.id:
            if store.moved_to():
                return "former"
            raise _here_already_error(place)
        if store.tools.all() or store.rows.count("vectors"):
            raise _holds_other_error(place)
    return "empty"


def _here_already_error(place: str) -> LibraryError:
    return LibraryError(f"This library is in {place} already", hint="Name another place.")


def _holds_other_error(place: str) -> LibraryError:
    return LibraryError(
        f"{place} holds another library, which was not changed",
        hint="Name a file that does not exist, or another schema: postgresql://…?schema=NAME.",
    )
