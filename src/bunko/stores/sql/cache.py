"""Read and write the search log and cached answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bunko.stores.sql.database import (
    BLOB,
    INTEGER,
    NO_LIMIT,
    TEXT,
    Database,
    batches,
    placeholders,
    retried,
    retried_until_commit,
)
from bunko.types.records import LoggedSearch

_UPSERT_ANSWER = (
    "INSERT INTO answers VALUES (?, ?, ?, ?)"
    " ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value, until = excluded.until"
)
_DELETE_EXPIRED = "DELETE FROM answers WHERE until <= ?"
_DELETE_SURPLUS = (
    "DELETE FROM answers WHERE kind = ? AND key IN"
    " (SELECT key FROM answers WHERE kind = ? ORDER BY until DESC, key LIMIT ? OFFSET ?)"
)


class SqlCache:
    """The search log and cached answers of models and web services: data that may be lost."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def log_search(self, query: str, tool: str, searched_at: str, *, limit: int) -> bool:
        """Add a search to the log, which keeps `limit` searches; return False if another process is writing."""
        return self._database.try_transaction(
            [
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
            ],
            table="asked",
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
            self._database.clear_securely("asked")
        return count

    @retried_until_commit
    def rename_tool(self, name: str, new_name: str) -> None:
        """Make the logged searches of a tool those of its new name, in the place of those of a tool that had it."""
        if self._database.has_table("asked"):
            with self._database.transaction() as connection:
                connection.execute("DELETE FROM asked WHERE tool = ?", (new_name,))
                connection.execute("UPDATE asked SET tool = ? WHERE tool = ?", (new_name, name))

    def cached_answer(self, kind: str, key: bytes, now: float) -> str | None:
        """Return a cached answer, or None if there is none or it expired; `now` is in seconds since 1970."""
        return self.cached_answers(kind, [key], now).get(key)

    def cached_answers(self, kind: str, keys: Sequence[bytes], now: float) -> dict[bytes, str]:
        """Return the cached answers that have not expired, by key."""
        answers: dict[bytes, str] = {}
        for batch in batches(keys):
            query = f"SELECT key, value FROM answers WHERE kind = ? AND until > ? AND key IN ({placeholders(batch)})"
            answers.update(self._database.rows(query, (kind, now, *batch), types=(BLOB, TEXT)))
        return answers

    def cache_answer(self, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int) -> bool:
        """Cache an answer, keeping `limit` per kind; return False if another process is writing."""
        return self._database.try_transaction(
            [
                (_UPSERT_ANSWER, (kind, key, value, expires_at)),
                (_DELETE_EXPIRED, (now,)),
                (_DELETE_SURPLUS, (kind, kind, NO_LIMIT, limit)),
            ]
        )

    @retried
    def cache_answers(self, kind: str, answers: Mapping[bytes, tuple[str, float]], *, now: float, limit: int) -> None:
        """Cache answers, each with its expiry time, keeping `limit` per kind; wait for other processes."""
        with self._database.transaction() as connection:
            rows = [(kind, key, value, expires_at) for key, (value, expires_at) in answers.items()]
            connection.executemany(_UPSERT_ANSWER, rows)
            connection.execute(_DELETE_EXPIRED, (now,))
            connection.execute(_DELETE_SURPLUS, (kind, kind, NO_LIMIT, limit))
