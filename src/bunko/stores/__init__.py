"""Open the store of a library by its kind; each kind is one package, and `memory` is the reference for all others."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bunko.errors import UnknownName

if TYPE_CHECKING:
    from bunko.protocols import Store
    from bunko.types.records import DatabaseServer

KINDS = ("sqlite", "postgres", "memory")


def build(kind: str, location: Path, server: DatabaseServer | None = None, *, read_only: bool = False) -> Store:
    """Open the library at a location or on a server, and create it if it does not exist and may be written."""
    store: Store = _provider(kind).build(location, server, read_only=read_only)
    return store


def exists(kind: str, location: Path, server: DatabaseServer | None = None) -> bool:
    """Return whether there is a library at a location."""
    return bool(_provider(kind).exists(location, server))


def missing_paths(kind: str, location: Path, server: DatabaseServer | None = None) -> tuple[Path, ...]:
    """Return the file and the parent folders that opening the library would create, innermost first."""
    paths: tuple[Path, ...] = _provider(kind).missing_paths(location, server)
    return paths


def file_paths(kind: str, location: Path, server: DatabaseServer | None = None) -> list[Path]:
    """Return the files and links at the places that a library uses."""
    paths: list[Path] = _provider(kind).file_paths(location, server)
    return paths


def delete(kind: str, location: Path, server: DatabaseServer | None = None) -> None:
    """Delete the files of a library that no process has open."""
    _provider(kind).delete(location, server)


def tool_names(kind: str, location: Path, server: DatabaseServer | None = None) -> list[str]:
    """Return the names of all tools without creating or changing a file; raise an error if there is no library."""
    names: list[str] = _provider(kind).tool_names(location, server)
    return names


def display_location(kind: str, location: Path, server: DatabaseServer | None = None) -> str:
    """Return the place of a library, for messages."""
    text: str = _provider(kind).display_location(location, server)
    return text


def _provider(kind: str) -> Any:
    if kind not in KINDS:
        raise UnknownName(
            f"There is no store called {kind!r}",
            hint=f"Set storage.kind to one of: {', '.join(KINDS)}.",
        )
    return import_module(f"bunko.stores.{kind}")
