"""Keep statistics over the chunks of tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bunko.records import ToolStatistics
from bunko.stores.sql.database import BLOB, INTEGER, Connection, Database, batches, placeholders, retried

_PUT = (
    "INSERT INTO index_statistics VALUES (?, ?, ?, ?, ?) ON CONFLICT (tool_id) DO UPDATE SET"
    " generation = excluded.generation, chunks = excluded.chunks, terms = excluded.terms, vectors = excluded.vectors"
)
_ADD = (
    "INSERT INTO index_frequencies VALUES (?, ?, ?)"
    " ON CONFLICT (tool_id, key) DO UPDATE SET count = index_frequencies.count + excluded.count"
)


class SqlIndexStatistics:
    """Statistics over the chunks of tools, for indexes outside the library."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, tool_id: int) -> ToolStatistics | None:
        """Return the statistics of a tool, without the frequencies, or None if there are none."""
        if not self._database.has_table("index_statistics"):
            return None
        rows = self._database.rows(
            "SELECT generation, chunks, terms, vectors FROM index_statistics WHERE tool_id = ?",
            (tool_id,),
            types=(INTEGER, INTEGER, INTEGER, BLOB),
        )
        return ToolStatistics(*rows[0]) if rows else None

    def frequencies(self, tool_id: int, keys: Sequence[int]) -> dict[int, int]:
        """Return in how many chunks of a tool each key occurs; a key that occurs in none may be left out."""
        if not self._database.has_table("index_frequencies"):
            return {}
        counts: dict[int, int] = {}
        for batch in batches(keys):
            rows = self._database.rows(
                f"SELECT key, count FROM index_frequencies WHERE tool_id = ? AND key IN ({placeholders(batch)})",
                (tool_id, *batch),
                types=(INTEGER, INTEGER),
            )
            counts.update(rows)
        return counts

    def replace(self, tool_id: int, statistics: ToolStatistics, frequencies: Iterable[tuple[int, int]]) -> None:
        """Store the statistics of a tool in place of all earlier ones, atomically."""
        with self._database.transaction() as connection:
            connection.ensure_table("index_statistics")
            connection.ensure_table("index_frequencies")
            connection.execute("DELETE FROM index_frequencies WHERE tool_id = ?", (tool_id,))
            _put(connection, tool_id, statistics, frequencies)

    def update(
        self, tool_id: int, statistics: ToolStatistics, changes: Iterable[tuple[int, int]], *, since: int
    ) -> bool:
        """Replace the statistics of a tool and add changes to its frequencies, atomically."""
        if not self._database.has_table("index_statistics"):
            return False
        with self._database.transaction() as connection:
            row = connection.execute("SELECT generation FROM index_statistics WHERE tool_id = ?", (tool_id,)).fetchone()
            if row is None or row[0] != since:
                return False
            _put(connection, tool_id, statistics, changes)
            return True

    @retried
    def clear(self, tool_id: int) -> None:
        """Delete the statistics of a tool."""
        if not self._database.has_table("index_statistics"):
            return
        with self._database.transaction() as connection:
            for table in ("index_statistics", "index_frequencies"):
                connection.execute(f"DELETE FROM {table} WHERE tool_id = ?", (tool_id,))


def _put(
    connection: Connection, tool_id: int, statistics: ToolStatistics, frequencies: Iterable[tuple[int, int]]
) -> None:
    connection.execute(_PUT, (tool_id, statistics.generation, statistics.chunks, statistics.terms, statistics.vectors))
    connection.executemany(_ADD, ((tool_id, key, count) for key, count in frequencies if count))
