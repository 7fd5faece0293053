"""Keep a library in the process: the reference for other stores, for tests, and for scripts that need no file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.records import DatabaseServer
    from bunko.stores.memory.store import Memory


def build(location: Path | None = None, server: DatabaseServer | None = None, *, read_only: bool = False) -> Memory:
    """Return an empty store; it has no location, and nothing else can write to it."""
    from bunko.stores.memory.store import Memory

    return Memory()


def exists(location: Path, server: DatabaseServer | None = None) -> bool:
    """Return False: every store in memory begins empty."""
    return False


def missing_paths(location: Path, server: DatabaseServer | None = None) -> tuple[Path, ...]:
    """Return nothing: no file is created."""
    return ()


def file_paths(location: Path, server: DatabaseServer | None = None) -> list[Path]:
    """Return nothing: there are no files."""
    return []


def delete(location: Path, server: DatabaseServer | None = None) -> None:
    """Do nothing: there are no files."""


def tool_names(location: Path, server: DatabaseServer | None = None) -> list[str]:
    """Return nothing: another process cannot see the tools."""
    return []


def display_location(location: Path, server: DatabaseServer | None = None) -> str:
    """Return the kind: a store in memory has no place."""
    return "memory"
