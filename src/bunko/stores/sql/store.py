"""Put the subjects of a library in a database together, the same for every database."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from bunko.stores.sql.access import SqlAudit, SqlTokens
from bunko.stores.sql.cache import SqlCache
from bunko.stores.sql.changes import SqlChanges
from bunko.stores.sql.database import MOVED, TEXT, Database, read_marks
from bunko.stores.sql.documents import SqlDocuments
from bunko.stores.sql.facts import FactsFile
from bunko.stores.sql.index_statistics import SqlIndexStatistics
from bunko.stores.sql.outbox import SqlDomains, SqlOutbox
from bunko.stores.sql.pages import SqlPages
from bunko.stores.sql.rows import SqlRows
from bunko.stores.sql.scans import SqlScans
from bunko.stores.sql.stats import SqlStats
from bunko.stores.sql.tools import SqlTools
from bunko.stores.sql.vectors import SqlVectors

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
        TokenStore,
        ToolStore,
        VectorStore,
        WebPageStore,
    )


class _OpenDatabase(Database, Protocol):
    """A database that a store has opened, and closes."""

    def read_transaction(self) -> AbstractContextManager[None]:
        """Read everything inside the block from one state."""

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""

    def close(self) -> None:
        """Close all connections."""


class SqlStore:
    """The subjects of a library in a database; `machine` names the machine that uses it, if it can be several.

    `facts_file` names the file with the facts of a tool's documents, if the library has files.
    """

    _database: _OpenDatabase

    def __init__(
        self,
        database: _OpenDatabase,
        changes: SqlChanges,
        machine: str = "",
        facts_file: FactsFile | None = None,
    ) -> None:
        self._database = database
        try:
            rows = database.rows("SELECT value FROM meta WHERE key = 'id'", types=(TEXT,))
            with database.decode_values():
                self.id = str(rows[0][0])
            changes.generation()
        except BaseException:
            database.close()
            raise
        self.tools: ToolStore = SqlTools(database, machine, facts_file)
        self.documents: DocumentStore = SqlDocuments(database, facts_file)
        self.vectors: VectorStore = SqlVectors(database)
        self.changes: ChangeStore = changes
        self.pages: WebPageStore = SqlPages(database)
        self.cache: CacheStore = SqlCache(database)
        self.scans: ScanStore = SqlScans(database)
        self.stats: StatsStore = SqlStats(database)
        self.index_statistics: IndexStatisticsStore = SqlIndexStatistics(database)
        self.tokens: TokenStore = SqlTokens(database)
        self.audit: AuditStore = SqlAudit(database)
        self.outbox: OutboxStore = SqlOutbox(database)
        self.domains: DomainStore = SqlDomains(database)
        self.rows: MovingRows = SqlRows(database, changes, machine)
        # Bound here and not wrapped: every search calls it.
        self.generation = changes.generation

    def read_transaction(self) -> AbstractContextManager[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""
        return self._database.read_transaction()

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""
        return self._database.check()

    def moved_to(self) -> str:
        """Return the new place of this library if it has moved, else an empty string."""
        return read_marks(self._database).get(MOVED, "")

    def close(self) -> None:
        """Close the store."""
        self._database.close()
