"""Open a library in a schema of a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import LibraryReadOnly
from bunko.stores.postgres import read_folder_id
from bunko.stores.postgres.address import PostgresAddress
from bunko.stores.postgres.database import PostgresDatabase
from bunko.stores.postgres.locks import AdvisoryLock
from bunko.stores.postgres.pool import ChangeListener
from bunko.stores.sql.changes import SqlChanges
from bunko.stores.sql.database import INTEGER
from bunko.stores.sql.store import SqlStore
from bunko.types.records import MAX_GENERATIONS_BEHIND, StoreAddress

if TYPE_CHECKING:
    from bunko.protocols import StoreFiles


class PostgresChanges(SqlChanges):
    """What changed since a generation; the name of an index file is that of one machine's folder."""

    def __init__(self, database: PostgresDatabase, folder_id: str) -> None:
        super().__init__(database)
        self._folder_id = folder_id

    def prune_removals(self, tool_id: int, before: int) -> None:
        """Delete the records of removals up to a generation, but keep those that other machines may still need."""
        before = min(before, self.generation() - MAX_GENERATIONS_BEHIND)
        if before > 0:
            super().prune_removals(tool_id, before)

    def index_file_key(self, tool_id: int) -> str:
        """Return the key under which the name of a tool's index file is stored."""
        return f"{super().index_file_key(tool_id)} {self._folder_id}"


class PostgresFiles:
    """No files of the library itself: those are on the server."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def paths(self) -> list[Path]:
        """Return nothing."""
        return []

    def contain(self, real_path: str) -> bool:
        """Return False."""
        return False

    def mode(self) -> int | None:
        """Return None: those of other new files."""
        return None

    def still_exist(self) -> bool:
        """Return whether the server answers."""
        return self._database.is_reachable()


class Postgres(SqlStore):
    """A library on a server; many machines read it, and write different tools of it, at the same time."""

    announces_changes = True
    _database: PostgresDatabase

    def __init__(self, location: Path, address: PostgresAddress, *, read_only: bool = False) -> None:
        self.kind, self.location, self.is_persistent = "postgres", address.display, True
        self.address = StoreAddress("postgres", location, address.server)
        if not read_only:
            _create_folder(location.parent)
        database = PostgresDatabase(address, read_only=read_only)
        folder_id = read_folder_id(location, read_only=read_only)
        super().__init__(database, PostgresChanges(database, folder_id), folder_id)
        self._listener = ChangeListener(address)
        self.engine = database.engine
        self.files: StoreFiles = PostgresFiles(database)

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

    def close(self) -> None:
        """Close the store."""
        self._listener.close()
        super().close()


def _create_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LibraryReadOnly(
            f"{folder} cannot be created: {error.strerror or error}",
            hint="A library on a server needs a folder for index files: choose another one with --library.",
        ) from error
