"""Keep a library in memory, by subject."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from bunko.stores.memory.cache import MemoryCache
from bunko.stores.memory.changes import MemoryChanges
from bunko.stores.memory.data import MemoryTables
from bunko.stores.memory.documents import MemoryDocuments
from bunko.stores.memory.files import MemoryFiles
from bunko.stores.memory.index_statistics import MemoryIndexStatistics
from bunko.stores.memory.pages import MemoryPages
from bunko.stores.memory.stats import MemoryStats
from bunko.stores.memory.tools import MemoryTools
from bunko.stores.memory.vectors import MemoryVectors

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


class Memory:
    """A library in memory; it ends with its process."""

    def __init__(self) -> None:
        self.id = uuid4().hex
        self.kind, self.location, self.is_persistent = "memory", "memory", False
        tables = self._tables = MemoryTables()
        self.tools: ToolStore = MemoryTools(tables)
        self.documents: DocumentStore = MemoryDocuments(tables)
        self.vectors: VectorStore = MemoryVectors(tables)
        self.changes: ChangeStore = MemoryChanges(tables)
        self.pages: WebPageStore = MemoryPages(tables)
        self.cache: CacheStore = MemoryCache(tables)
        self.stats: StatsStore = MemoryStats(tables)
        self.index_statistics: IndexStatisticsStore = MemoryIndexStatistics(tables)
        self._files = MemoryFiles()
        self.files: StoreFiles = self._files

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""
        with self._tables.lock:
            yield

    def generation(self) -> int:
        """Return a number that grows with every change that affects search results."""
        return self._tables.generation

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""
        return ""

    def close(self) -> None:
        """Delete the files of the locks."""
        self._files.delete_locks()
