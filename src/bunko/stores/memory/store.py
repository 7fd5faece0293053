"""Keep a library in memory, by subject."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from bunko.records import StoreAddress
from bunko.stores.lock_file import LockFile
from bunko.stores.memory.access import MemoryAudit, MemoryTokens
from bunko.stores.memory.cache import MemoryCache
from bunko.stores.memory.changes import MemoryChanges
from bunko.stores.memory.data import MemoryTables
from bunko.stores.memory.documents import MemoryDocuments
from bunko.stores.memory.files import MemoryFiles
from bunko.stores.memory.index_statistics import MemoryIndexStatistics
from bunko.stores.memory.outbox import MemoryDomains, MemoryOutbox
from bunko.stores.memory.pages import MemoryPages
from bunko.stores.memory.scans import MemoryScans
from bunko.stores.memory.stats import MemoryStats
from bunko.stores.memory.tools import MemoryTools
from bunko.stores.memory.vectors import MemoryVectors

if TYPE_CHECKING:
    from bunko.protocols import (
        AuditStore,
        CacheStore,
        ChangeStore,
        DocumentStore,
        DomainStore,
        IndexStatisticsStore,
        MovingRows,
        OutboxStore,
        ScanStore,
        StatsStore,
        StoreFiles,
        TokenStore,
        ToolStore,
        VectorStore,
        WebPageStore,
    )


class Memory:
    """A library in memory; it ends with its process."""

    announces_changes = False
    engine = "memory"

    def __init__(self) -> None:
        self.id = uuid4().hex
        self.kind, self.location, self.is_persistent = "memory", "memory", False
        self.address = StoreAddress("memory", Path())
        tables = self._tables = MemoryTables()
        self.tools: ToolStore = MemoryTools(tables)
        self.documents: DocumentStore = MemoryDocuments(tables)
        self.vectors: VectorStore = MemoryVectors(tables)
        self.changes: ChangeStore = MemoryChanges(tables)
        self.pages: WebPageStore = MemoryPages(tables)
        self.cache: CacheStore = MemoryCache(tables)
        self.scans: ScanStore = MemoryScans(tables)
        self.stats: StatsStore = MemoryStats(tables)
        self.index_statistics: IndexStatisticsStore = MemoryIndexStatistics(tables)
        self.tokens: TokenStore = MemoryTokens(tables)
        self.audit: AuditStore = MemoryAudit(tables)
        self.rows: MovingRows | None = None
        self.outbox: OutboxStore = MemoryOutbox(tables)
        self.domains: DomainStore = MemoryDomains(tables)
        self._files = MemoryFiles()
        self.files: StoreFiles = self._files

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""
        with self._tables.lock:
            yield

    def lock(self, purpose: str = "import", *, tools: Sequence[str] | None = None) -> LockFile:
        """Return the lock for a purpose; one thread at a time imports, whatever the tools."""
        return LockFile(self._files.lock_file(purpose))

    def generation(self) -> int:
        """Return a number that grows with every change that affects search results."""
        return self._tables.generation

    def wait_for_change(self, seconds: float) -> bool:
        """Wait this long and return True: no other process can change it."""
        time.sleep(seconds)
        return True

    def size(self) -> int:
        """Return 0: nothing is on a disk."""
        return 0

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""
        return ""

    def moved_to(self) -> str:
        """Return an empty string: a library in memory never moves."""
        return ""

    def close(self) -> None:
        """Delete the files of the locks."""
        self._files.delete_locks()
