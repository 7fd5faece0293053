"""Keep a library for as long as its process: a SQLite file in a temporary folder, for tests and scripts."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.runtime.temporary_files import TemporaryFolder
from bunko.stores.sqlite.connection import SqliteDatabase
from bunko.stores.sqlite.store import Sqlite

if TYPE_CHECKING:
    from bunko.types.records import DatabaseServer


class Memory(Sqlite):
    """A library that ends with its store, or with the process at the latest."""

    def __init__(self) -> None:
        folder = TemporaryFolder("bunko-library-")
        super().__init__(folder.path / "library.db", location="memory")
        self.kind, self.is_persistent = "memory", False
        self.engine = "memory"
        self._finalizer = weakref.finalize(self, _end, self._database, folder)

    def size(self) -> int:
        """Return 0: nothing stays on a disk."""
        return 0

    def close(self) -> None:
        """Close the store and delete its files."""
        self._finalizer()


def build(location: Path | None = None, server: DatabaseServer | None = None, *, read_only: bool = False) -> Memory:
    """Return an empty store; it has no location, and nothing else can write to it."""
    return Memory()


def exists(location: Path, server: DatabaseServer | None = None) -> bool:
    """Return False: every store in memory begins empty."""
    return False


def missing_paths(location: Path, server: DatabaseServer | None = None) -> tuple[Path, ...]:
    """Return nothing: no file stays."""
    return ()


def file_paths(location: Path, server: DatabaseServer | None = None) -> list[Path]:
    """Return nothing: no file is at the location."""
    return []


def delete(location: Path, server: DatabaseServer | None = None) -> None:
    """Do nothing: no file is at the location."""


def tool_names(location: Path, server: DatabaseServer | None = None) -> list[str]:
    """Return nothing: another process does not know the tools."""
    return []


def display_location(location: Path, server: DatabaseServer | None = None) -> str:
    """Return the kind: a store in memory has no place."""
    return "memory"


def _end(database: SqliteDatabase, folder: TemporaryFolder) -> None:
    database.close()
    folder.cleanup()
