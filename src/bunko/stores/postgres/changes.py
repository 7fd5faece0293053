"""Track generations for several machines, each with an index of its own."""

from __future__ import annotations

from bunko.records import MAX_GENERATIONS_BEHIND
from bunko.stores.postgres.database import PostgresDatabase
from bunko.stores.sql.changes import SqlChanges


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
