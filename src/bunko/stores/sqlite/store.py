"""Open a library in a SQLite file, by subject."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.stores.sqlite.cache import SqliteCache
from bunko.stores.sqlite.changes import SqliteChanges
from bunko.stores.sqlite.connection import TEXT, Database
from bunko.stores.sqlite.documents import SqliteDocuments
from bunko.stores.sqlite.files import SqliteFiles
from bunko.stores.sqlite.index_statistics import SqliteIndexStatistics
from bunko.stores.sqlite.pages import SqlitePages
from bunko.stores.sqlite.stats import SqliteStats
from bunko.stores.sqlite.tools import SqliteTools
from bunko.stores.sqlite.vectors import SqliteVectors

if TYPE_CHECKING:
    from bunko.protocols import (
        CacheStore,
        ChangeStore,
        DocumentStore,
        IndexStatisticsStore,
        StatsStore,
        StoreFiles,
        ToolStore,
        VectorStore,
        WebPageStore,
    )


class Sqlite:
    """A library in a SQLite file; committed data survives a crash."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.kind, self.location, self.is_persistent = "sqlite", str(path), True
        database = self._database = Database(path, read_only=read_only)
        changes = SqliteChanges(database)
        try:
            rows = database.rows("SELECT value FROM meta WHERE key = 'id'", types=(TEXT,))
            with database.decode_values():
                self.id = str(rows[0][0])
            changes.generation()
        except BaseException:
            database.close()
            raise
        self.tools: ToolStore = SqliteTools(database)
        self.documents: DocumentStore = SqliteDocuments(database)
        self.vectors: VectorStore = SqliteVectors(database)
        self.changes: ChangeStore = changes
        self.pages: WebPageStore = SqlitePages(database)
        self.cache: CacheStore = SqliteCache(database)
        self.stats: StatsStore = SqliteStats(database)
        self.index_statistics: IndexStatisticsStore = SqliteIndexStatistics(database)
        self.files: StoreFiles = SqliteFiles(path)
        # Bound here and not wrapped: every search calls it.
        self.generation = changes.generation

    def read_transaction(self) -> AbstractContextManager[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""
        return self._database.read_transaction()

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""
        return self._database.check()

    def close(self) -> None:
        """Close the store."""
        self._database.close()
