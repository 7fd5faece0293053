"""Open a library in a SQLite file, by subject."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.records import StoreAddress
from bunko.stores.lock_file import LockFile
from bunko.stores.sql.access import SqlAudit, SqlTokens
from bunko.stores.sql.cache import SqlCache
from bunko.stores.sql.changes import SqlChanges
from bunko.stores.sql.database import TEXT
from bunko.stores.sql.documents import SqlDocuments
from bunko.stores.sql.index_statistics import SqlIndexStatistics
from bunko.stores.sql.marks import MOVED, read_marks
from bunko.stores.sql.pages import SqlPages
from bunko.stores.sql.rows import SqlRows
from bunko.stores.sql.stats import SqlStats
from bunko.stores.sql.tools import SqlTools
from bunko.stores.sql.vectors import SqlVectors
from bunko.stores.sqlite.connection import SqliteDatabase
from bunko.stores.sqlite.files import SqliteFiles

if TYPE_CHECKING:
    from bunko.protocols import (
        AuditStore,
        CacheStore,
        ChangeStore,
        DocumentStore,
        IndexStatisticsStore,
        MovingRows,
        StatsStore,
        StoreFiles,
        TokenStore,
        ToolStore,
        VectorStore,
        WebPageStore,
    )


class Sqlite:
    """A library in a SQLite file; committed data survives a crash."""

    announces_changes = False
    engine = f"SQLite {sqlite3.sqlite_version}"

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.kind, self.location, self.is_persistent = "sqlite", str(path), True
        self.address = StoreAddress("sqlite", path)
        database = self._database = SqliteDatabase(path, read_only=read_only)
        changes = SqlChanges(database)
        try:
            rows = database.rows("SELECT value FROM meta WHERE key = 'id'", types=(TEXT,))
            with database.decode_values():
                self.id = str(rows[0][0])
            changes.generation()
        except BaseException:
            database.close()
            raise
        self.tools: ToolStore = SqlTools(database)
        self.documents: DocumentStore = SqlDocuments(database)
        self.vectors: VectorStore = SqlVectors(database)
        self.changes: ChangeStore = changes
        self.pages: WebPageStore = SqlPages(database)
        self.cache: CacheStore = SqlCache(database)
        self.stats: StatsStore = SqlStats(database)
        self.index_statistics: IndexStatisticsStore = SqlIndexStatistics(database)
        self.tokens: TokenStore = SqlTokens(database)
        self.audit: AuditStore = SqlAudit(database)
        self.rows: MovingRows | None = SqlRows(database, changes)
        self._files = SqliteFiles(path)
        self.files: StoreFiles = self._files
        # Bound here and not wrapped: every search calls it.
        self.generation = changes.generation

    def read_transaction(self) -> AbstractContextManager[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""
        return self._database.read_transaction()

    def lock(self, purpose: str = "import", *, tools: Sequence[str] | None = None) -> LockFile:
        """Return the lock for a purpose; one process at a time imports, whatever the tools."""
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

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""
        return self._database.check()

    def moved_to(self) -> str:
        """Return where this library is now if it has moved, else an empty string."""
        return read_marks(self._database).get(MOVED, "")

    def close(self) -> None:
        """Close the store."""
        self._database.close()
