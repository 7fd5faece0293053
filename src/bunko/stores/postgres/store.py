"""Open a library in a schema of a PostgreSQL database, by subject."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import LibraryReadOnly
from bunko.records import StoreAddress
from bunko.stores.postgres.address import PostgresAddress
from bunko.stores.postgres.changes import PostgresChanges
from bunko.stores.postgres.database import PostgresDatabase
from bunko.stores.postgres.files import PostgresFiles, read_folder_id
from bunko.stores.postgres.listener import ChangeListener
from bunko.stores.postgres.locks import AdvisoryLock
from bunko.stores.sql.access import SqlAudit, SqlTokens
from bunko.stores.sql.cache import SqlCache
from bunko.stores.sql.database import INTEGER, TEXT
from bunko.stores.sql.documents import SqlDocuments
from bunko.stores.sql.index_statistics import SqlIndexStatistics
from bunko.stores.sql.marks import MOVED, read_marks
from bunko.stores.sql.pages import SqlPages
from bunko.stores.sql.rows import SqlRows
from bunko.stores.sql.stats import SqlStats
from bunko.stores.sql.tools import SqlTools
from bunko.stores.sql.vectors import SqlVectors

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


class Postgres:
    """A library on a server; many machines read it, and write different tools of it, at the same time."""

    announces_changes = True

    def __init__(self, location: Path, address: PostgresAddress, *, read_only: bool = False) -> None:
        self.kind, self.location, self.is_persistent = "postgres", address.display, True
        self.address = StoreAddress("postgres", location, address.server)
        if not read_only:
            _create_folder(location.parent)
        database = self._database = PostgresDatabase(address, read_only=read_only)
        self.engine = database.engine
        folder_id = read_folder_id(location, read_only=read_only)
        changes = PostgresChanges(database, folder_id)
        try:
            rows = database.rows("SELECT value FROM meta WHERE key = 'id'", types=(TEXT,))
            with database.decode_values():
                self.id = str(rows[0][0])
            changes.generation()
        except BaseException:
            database.close()
            raise
        self._listener = ChangeListener(address)
        self.tools: ToolStore = SqlTools(database, folder_id)
        self.documents: DocumentStore = SqlDocuments(database)
        self.vectors: VectorStore = SqlVectors(database)
        self.changes: ChangeStore = changes
        self.pages: WebPageStore = SqlPages(database)
        self.cache: CacheStore = SqlCache(database)
        self.stats: StatsStore = SqlStats(database)
        self.index_statistics: IndexStatisticsStore = SqlIndexStatistics(database)
        self.tokens: TokenStore = SqlTokens(database)
        self.audit: AuditStore = SqlAudit(database)
        self.rows: MovingRows | None = SqlRows(database, changes, folder_id)
        self.files: StoreFiles = PostgresFiles(database)
        self.generation = changes.generation

    def read_transaction(self) -> AbstractContextManager[None]:
        """Read everything inside the block from one state, unaffected by concurrent writes."""
        return self._database.read_transaction()

    def lock(self, purpose: str = "import", *, tools: Sequence[str] | None = None) -> AdvisoryLock:
        """Return the lock for a purpose; imports of different tools may run at the same time."""
        return AdvisoryLock(self._database.address, self._database.thread_session, purpose, tools)

    def wait_for_change(self, seconds: float) -> bool:
        """Wait at most this long for a change by any process; return whether there may have been one."""
        return self._listener.wait(seconds)

    def size(self) -> int:
        """Return how many bytes the tables and their indexes take on the server."""
        query = (
            "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint FROM pg_class"
            " JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = ? AND relkind = 'r'"
        )
        return int(self._database.rows(query, (self._database.address.schema,), types=(INTEGER,))[0][0])

    def check(self) -> str:
        """Return the problems found in the stored data, or an empty string."""
        return self._database.check()

    def moved_to(self) -> str:
        """Return where this library is now if it has moved, else an empty string."""
        return read_marks(self._database).get(MOVED, "")

    def close(self) -> None:
        """Close the store."""
        self._listener.close()
        self._database.close()


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LibraryReadOnly(
            f"{folder} cannot be created: {error.strerror or error}",
            hint="A library on a server needs a folder for index files: choose another one with --library.",
        ) from error
