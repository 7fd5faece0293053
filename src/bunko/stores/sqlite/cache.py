"""Read and write the search log and cached model answers."""

from __future__ import annotations

from bunko.records import LoggedSearch
from bunko.stores.sqlite import schema
from bunko.stores.sqlite.connection import INTEGER, NO_LIMIT, TEXT, Database


class SqliteCache:
    """The search log and cached model answers: data that may be lost."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def log_search(self, query: str, tool: str, searched_at: str, *, limit: int) -> bool:
        """Add a search to the log, which keeps `limit` searches; return False if another process is writing."""
        return self._database.try_transaction(
            [
                (schema.CREATE_ASKED, ()),
                (
                    "INSERT INTO asked VALUES (?, ?, 1, ?)"
                    " ON CONFLICT (query, tool) DO UPDATE SET count = asked.count + 1, last = excluded.last",
                    (query, tool, searched_at),
                ),
                (
                    "DELETE FROM asked WHERE (query, tool) IN"
                    " (SELECT query, tool FROM asked ORDER BY last DESC, count DESC, query, tool LIMIT ? OFFSET ?)",
                    (NO_LIMIT, limit),
                ),
            ]
        )

    def logged_searches(self) -> list[LoggedSearch]:
        """Return the logged searches, most frequent first."""
        if not self._database.has_table("asked"):
            return []
        rows = self._database.rows(
            "SELECT query, tool, count, last FROM asked ORDER BY count DESC, query, tool",
            types=(TEXT, TEXT, INTEGER, TEXT),
        )
        return [LoggedSearch(*row) for row in rows]

    def clear_searches(self) -> int:
        """Delete the search log; return how many searches it had."""
        count = len(self.logged_searches())
        if self._database.has_table("asked"):
            self._database.drop_table_securely("asked")
        return count

    def cached_answer(self, kind: str, key: bytes, now: float) -> str | None:
        """Return a cached model answer, or None if there is none or it expired; `now` is in seconds since 1970."""
        rows = self._database.rows(
            "SELECT value FROM answers WHERE kind = ? AND key = ? AND until > ?", (kind, key, now), types=(TEXT,)
        )
        return str(rows[0][0]) if rows else None

    def cache_answer(self, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int) -> bool:
        """Cache a model answer, keeping `limit` per kind; return False if another process is writing."""
        return self._database.try_transaction(
            [
                (
                    "INSERT INTO answers VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, until = excluded.until",
                    (kind, key, value, expires_at),
                ),
                ("DELETE FROM answers WHERE until <= ?", (now,)),
                (
                    "DELETE FROM answers WHERE kind = ? AND key IN"
                    " (SELECT key FROM answers WHERE kind = ? ORDER BY until DESC, key LIMIT ? OFFSET ?)",
                    (kind, kind, NO_LIMIT, limit),
                ),
            ]
        )
