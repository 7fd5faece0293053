"""Keep the search log and cached model answers in memory."""

from __future__ import annotations

from bunko.records import LoggedSearch
from bunko.stores.memory.data import MemoryTables


def log_search(tables: MemoryTables, query: str, tool: str, searched_at: str, *, limit: int) -> None:
    """Add a search to the log, which keeps the `limit` newest searches."""
    old = tables.searches.get((query, tool))
    tables.searches[query, tool] = LoggedSearch(query, tool, old.count + 1 if old else 1, searched_at)
    # Sorting is stable: searches of the same time stay in order of frequency.
    newest = sorted(logged_searches(tables), key=lambda search: search.last_searched_at, reverse=True)[:limit]
    tables.searches = {(search.query, search.tool): search for search in newest}


def logged_searches(tables: MemoryTables) -> list[LoggedSearch]:
    """Return the logged searches, most frequent first."""
    return sorted(tables.searches.values(), key=lambda search: (-search.count, search.query, search.tool))


def clear_searches(tables: MemoryTables) -> int:
    """Delete the search log; return how many searches it had."""
    count = len(tables.searches)
    tables.searches = {}
    return count


def cached_answer(tables: MemoryTables, kind: str, key: bytes, now: float) -> str | None:
    """Return a cached model answer, or None if there is none or it expired; `now` is in seconds since 1970."""
    value, expires_at = tables.answers.get((kind, key), (None, now))
    return value if expires_at > now else None


def cache_answer(
    tables: MemoryTables, kind: str, key: bytes, value: str, *, now: float, expires_at: float, limit: int
) -> None:
    """Cache a model answer, keeping the `limit` latest per kind."""
    tables.answers[kind, key] = (value, expires_at)
    fresh = {name: answer for name, answer in tables.answers.items() if answer[1] > now}
    latest_first = sorted((name for name in fresh if name[0] == kind), key=lambda name: (-fresh[name][1], name))
    surplus = latest_first[limit:]
    tables.answers = {name: answer for name, answer in fresh.items() if name not in surplus}
