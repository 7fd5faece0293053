"""Keep statistics over the chunks of copies of tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bunko.stores.sql.changes import replace_note
from bunko.stores.sql.database import BLOB, INTEGER, Connection, Database, batches, placeholders, retried
from bunko.types.records import MAX_GENERATIONS_BEHIND, IndexNote, ToolStatistics

_TABLES = ("index_statistics", "index_frequencies")
_PUT = (
    "INSERT INTO index_statistics VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (tool_id, copy) DO UPDATE SET"
    " generation = excluded.generation, chunks = excluded.chunks, terms = excluded.terms, vectors = excluded.vectors"
)
_ADD = (
    "INSERT INTO index_frequencies VALUES (?, ?, ?, ?)"
    " ON CONFLICT (tool_id, copy, key) DO UPDATE SET count = index_frequencies.count + excluded.count"
)


class SqlIndexStatistics:
    """Statistics over the chunks of copies of tools, for indexes outside the library."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, tool_id: int, copy: str) -> ToolStatistics | None:
        """Return the statistics of a copy, without the frequencies, or None if there are none."""
        if not self._database.has_table("index_statistics"):
            return None
        rows = self._database.rows(
            "SELECT generation, chunks, terms, vectors FROM index_statistics WHERE tool_id = ? AND copy = ?",
            (tool_id, copy),
            types=(INTEGER, INTEGER, INTEGER, BLOB),
        )
        return ToolStatistics(*rows[0]) if rows else None

    def frequencies(self, tool_id: int, copy: str, keys: Sequence[int]) -> dict[int, int]:
        """Return in how many chunks of a copy each key occurs; a key that occurs in none may be left out."""
        if not self._database.has_table("index_frequencies"):
            return {}
        counts: dict[int, int] = {}
        for batch in batches(keys):
            rows = self._database.rows(
                "SELECT key, count FROM index_frequencies WHERE tool_id = ? AND copy = ?"
                f" AND key IN ({placeholders(batch)})",
                (tool_id, copy, *batch),
                types=(INTEGER, INTEGER),
            )
            counts.update(rows)
        return counts

    def replace(
        self, tool_id: int, copy: str, statistics: ToolStatistics, frequencies: Iterable[tuple[int, int]]
    ) -> None:
        """Store the statistics of a copy in place of earlier ones, and delete those of abandoned copies, atomically."""
        with self._database.transaction() as connection:
            for table in _TABLES:
                connection.ensure_table(table)
            rows = connection.execute(
                "SELECT copy FROM index_statistics WHERE tool_id = ? AND generation < ?",
                (tool_id, statistics.generation - MAX_GENERATIONS_BEHIND),
            ).fetchall()
            for old_copy in {copy, *(str(row[0]) for row in rows)}:
                _delete(connection, tool_id, old_copy)
            _put(connection, tool_id, copy, statistics, frequencies)

    def update(
        self, tool_id: int, copy: str, statistics: ToolStatistics, changes: Iterable[tuple[int, int]], note: IndexNote
    ) -> bool:
        """Replace the statistics of a copy and the note about it, and add changes to its frequencies, atomically."""
        with self._database.transaction() as connection:
            if not replace_note(connection, tool_id, note):
                return False
            _put(connection, tool_id, copy, statistics, changes)
            return True

    @retried
    def clear(self, tool_id: int, copy: str) -> None:
        """Delete the statistics of a copy."""
        if not self._database.has_table("index_statistics"):
            return
        with self._database.transaction() as connection:
            _delete(connection, tool_id, copy)


def _delete(connection: Connection, tool_id: int, copy: str) -> None:
    for table in _TABLES:
        connection.execute(f"DELETE FROM {table} WHERE tool_id = ? AND copy = ?", (tool_id, copy))


def _put(
    connection: Connection, tool_id: int, copy: str, statistics: ToolStatistics, frequencies: Iterable[tuple[int, int]]
) -> None:
    connection.execute(
        _PUT, (tool_id, copy, statistics.generation, statistics.chunks, statistics.terms, statistics.vectors)
    )
    connection.executemany(_ADD, ((tool_id, copy, key, count) for key, count in frequencies if count))
