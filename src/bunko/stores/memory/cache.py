"""Keep the search log and cached model answers in memory."""

from __future__ import annotations

from bunko.records import LoggedSearch
from bunko.stores.memory.data import MemoryTables, with_lock


class MemoryCache:
    """The search log and cached model answers."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @with_lock
    def log_search(self, query: str, tool: str, searched_at: str, *, limit: int) -> bool:
        """Add a search to the log, which keeps the `limit` newest searches; return True."""
        tables = self._tables
        old = tables.searches.get((query, tool))
        tables.searches[query, tool] = LoggedSearch(query, tool, old.count + 1 if old else 1, searched_at)
        # Sorting is stable: searches of the same time stay in order of frequency.
        newest = sorted(self.logged_searches(), key=lambda search: search.last_searched_at, reverse=True)[:limit]
        tables.searches = {(search.query, search.tool): search for search in newest}
        return True

    @with_lock
    def logged_searches(self) -> list[LoggedSearch]:
        """Return the logged searches, most frequent first."""
        return sorted(self._tables.searches.values(), key=lambda search: (-search.count, search.query, search.tool))

    @with_lock
    def clear_searches(self) -> int:
        """Delete the search log; return how many searches it had."""
        count = len(self._tables.searches)
        self._tables.searches = {}
        return count

    @with_lock
    def cached_answer(self, kind: str, key: bytes, now: float) -> str | None:
        """Return a cached model answer, or None if there is none or it expired; `now` is in seconds since 1970."""
        value, expires_at = self._tables.answers.get((kind, key), (None, now))
        return value if expires_at > now else None

    @with_lock
    def cache_answer(self, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int) -> bool:
        """Cache a model answer, keeping the `limit` latest per kind; return True."""
        tables = self._tables
        tables.answers[kind, key] = (value, expires_at)
        fresh = {name: answer for name, answer in tables.answers.items() if answer[1] > now}
        latest_first = sorted((name for name in fresh if name[0] == kind), key=lambda name: (-fresh[name][1], name))
        surplus = latest_first[limit:]
        tables.answers = {name: answer for name, answer in fresh.items() if name not in surplus}
        return True
