"""Read and write the search log and cached model answers."""

from __future__ import annotations

from bunko.records import LoggedSearch
from bunko.stores.sqlite import schema
from bunko.stores.sqlite.connection import Database


def log_search(database: Database, query: str, tool: str, searched_at: str, *, limit: int) -> bool:
    """Add a search to the log, which keeps `limit` searches; return False if another process is writing."""
    return database.try_transaction(
        [
            (schema.CREATE_ASKED, ()),
            (
                "INSERT INTO asked VALUES (?, ?, 1, ?)"
                " ON CONFLICT (query, tool) DO UPDATE SET count = count + 1, last = excluded.last",
                (query, tool, searched_at),
            ),
            (
                "DELETE FROM asked WHERE (query, tool) IN"
                " (SELECT query, tool FROM asked ORDER BY last DESC, count DESC, query, tool LIMIT -1 OFFSET ?)",
                (limit,),
            ),
        ]
    )


def logged_searches(database: Database) -> list[LoggedSearch]:
    """Return the logged searches, most frequent first."""
    if not _has_search_log(database):
        return []
    rows = database.rows("SELECT query, tool, count, last FROM asked ORDER BY count DESC, query, tool")
    return [LoggedSearch(*row) for row in rows]


def clear_searches(database: Database) -> int:
    """Delete the search log; return how many searches it had."""
    count = len(logged_searches(database))
    if _has_search_log(database):
        with database.transaction() as connection:
            # Deleted searches should not stay readable in the file's free pages.
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("DROP TABLE IF EXISTS asked")
            connection.execute("PRAGMA secure_delete = OFF")
    return count


def _has_search_log(database: Database) -> bool:
    return bool(database.rows("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'asked'"))


def cached_answer(database: Database, kind: str, key: bytes, now: float) -> str | None:
    """Return a cached model answer, or None if there is none or it expired; `now` is in seconds since 1970."""
    rows = database.rows("SELECT value FROM answers WHERE kind = ? AND key = ? AND until > ?", (kind, key, now))
    return str(rows[0][0]) if rows else None


def cache_answer(
    database: Database, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int
) -> bool:
    """Cache a model answer, keeping `limit` per kind; return False if another process is writing."""
    return database.try_transaction(
        [
            ("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", (kind, key, value, expires_at)),
            ("DELETE FROM answers WHERE until <= ?", (now,)),
            (
                "DELETE FROM answers WHERE kind = ?1 AND key IN"
                " (SELECT key FROM answers WHERE kind = ?1 ORDER BY until DESC, key LIMIT -1 OFFSET ?2)",
                (kind, limit),
            ),
        ]
    )
