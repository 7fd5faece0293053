"""Keep the search log and cached answers in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bunko.records import LoggedSearch
from bunko.stores.memory.data import MemoryTables, with_lock


class MemoryCache:
    """The search log and cached answers."""

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
    def rename_tool(self, name: str, new_name: str) -> None:
        """Make the logged searches of a tool those of its new name, in the place of those of a tool that had it."""
        searches = [search for search in self._tables.searches.values() if search.tool != new_name]
        searches = [replace(search, tool=new_name) if search.tool == name else search for search in searches]
        self._tables.searches = {(search.query, search.tool): search for search in searches}

    @with_lock
    def cached_answer(self, kind: str, key: bytes, now: float) -> str | None:
        """Return a cached answer, or None if there is none or it expired; `now` is in seconds since 1970."""
        return self.cached_answers(kind, [key], now).get(key)

    @with_lock
    def cached_answers(self, kind: str, keys: Sequence[bytes], now: float) -> dict[bytes, str]:
        """Return the cached answers that have not expired, by key."""
        stored = {key: self._tables.answers.get((kind, key), ("", now)) for key in keys}
        return {key: value for key, (value, expires_at) in stored.items() if expires_at > now}

    @with_lock
    def cache_answer(self, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int) -> bool:
        """Cache an answer, keeping the `limit` latest per kind; return True."""
        self.cache_answers(kind, {key: (value, expires_at)}, now=now, limit=limit)
        return True

    @with_lock
    def cache_answers(self, kind: str, answers: Mapping[bytes, tuple[str, float]], *, now: float, limit: int) -> None:
        """Cache answers, each with its expiry time, keeping the `limit` latest per kind."""
        tables = self._tables
        tables.answers.update(((kind, key), answer) for key, answer in answers.items())
        fresh = {name: answer for name, answer in tables.answers.items() if answer[1] > now}
        latest_first = sorted((name for name in fresh if name[0] == kind), key=lambda name: (-fresh[name][1], name))
        surplus = set(latest_first[limit:])
        tables.answers = {name: answer for name, answer in fresh.items() if name not in surplus}
