"""Open the store of a library by its kind; each kind is one package, and `memory` is the reference for all others."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bunko.errors import UnknownName

if TYPE_CHECKING:
    from bunko.protocols import Store

KINDS = ("sqlite", "memory")


def build(kind: str, location: Path, *, read_only: bool = False) -> Store:
    """Open the library at a location, and create it if it does not exist and may be written."""
    store: Store = _provider(kind).build(location, read_only=read_only)
    return store


def exists(kind: str, location: Path) -> bool:
    """Return whether there is a library at a location."""
    return bool(_provider(kind).exists(location))


def missing_paths(kind: str, location: Path) -> tuple[Path, ...]:
    """Return the file and the parent folders that opening the library would create, innermost first."""
    paths: tuple[Path, ...] = _provider(kind).missing_paths(location)
    return paths


def file_paths(kind: str, location: Path) -> list[Path]:
    """Return the files and links at the places that a library uses."""
    paths: list[Path] = _provider(kind).file_paths(location)
    return paths


def delete(kind: str, location: Path) -> None:
    """Delete the files of a library that no process has open."""
    _provider(kind).delete(location)


def tool_names(kind: str, location: Path) -> list[str]:
    """Return the names of all tools without creating or changing a file; raise an error if there is no library."""
    names: list[str] = _provider(kind).tool_names(location)
    return names


def _provider(kind: str) -> Any:
    if kind not in KINDS:
        raise UnknownName(
            f"There is no store called {kind!r}",
            hint=f"Set storage.kind to one of: {', '.join(KINDS)}.",
        )
    return import_module(f"bunko.stores.{kind}")
