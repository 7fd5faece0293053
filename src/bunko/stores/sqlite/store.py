"""Open a library in a SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.stores.sql.changes import SqlChanges
from bunko.stores.sql.store import SqlStore
from bunko.stores.sqlite.connection import SqliteDatabase
from bunko.stores.sqlite.files import LockFile, SqliteFiles
from bunko.types.records import StoreAddress

if TYPE_CHECKING:
    from bunko.protocols import StoreFiles


class Sqlite(SqlStore):
    """A library in a SQLite file; committed data survives a crash."""

    announces_changes = False
    engine = f"SQLite {sqlite3.sqlite_version}"
    _database: SqliteDatabase

    def __init__(self, path: Path, *, read_only: bool = False, location: str = "") -> None:
        database = SqliteDatabase(path, read_only=read_only, location=location)
        self.kind, self.location, self.is_persistent = "sqlite", database.location, True
        self.address = StoreAddress("sqlite", path)
        self._files = SqliteFiles(path)
        super().__init__(database, SqlChanges(database), facts_file=self._files.facts_file)
        self.files: StoreFiles = self._files

    def lock(self, purpose: str = "import", *, tools: Sequence[str] | None = None) -> LockFile:
        """Return the lock for a purpose; one process at a time imports, for all tools."""
        return LockFile(self._files.lock_file(purpose))

    def wait_for_change(self, seconds: float) -> bool:
        """Wait this long and return True: SQLite does not tell other processes about a change."""
        time.sleep(seconds)
        return True

    def size(self) -> int:
        """Return how many bytes the files of the library take."""
        total = 0
        for path in self._files.paths():
            with suppress(OSError):  # another process may have deleted it since
                total += path.stat().st_size
        return total
