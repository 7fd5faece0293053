"""Keep statistics over the chunks of tools in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bunko.records import MAX_GENERATIONS_BEHIND, ToolStatistics
from bunko.stores.memory.data import MemoryTables, with_lock


class MemoryIndexStatistics:
    """Statistics over the chunks of copies of tools, for indexes outside the library."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def get(self, tool_id: int, copy: str) -> ToolStatistics | None:
        """Return the statistics of a copy, without the frequencies, or None if there are none."""
        return self._tables.statistics.get((tool_id, copy))

    @with_lock
    def frequencies(self, tool_id: int, copy: str, keys: Sequence[int]) -> dict[int, int]:
        """Return in how many chunks of a copy each key occurs; a key that occurs in none may be left out."""
        counts = self._tables.frequencies.get((tool_id, copy), Counter())
        return {key: counts[key] for key in keys if key in counts}

    @with_lock
    def replace(
        self, tool_id: int, copy: str, statistics: ToolStatistics, frequencies: Iterable[tuple[int, int]]
    ) -> None:
        """Store the statistics of a copy in place of earlier ones, and delete those of abandoned copies."""
        current = self._tables.statistics
        oldest = statistics.generation - MAX_GENERATIONS_BEHIND
        for key in [key for key, old in current.items() if key[0] == tool_id and old.generation < oldest]:
            del current[key], self._tables.frequencies[key]
        current[tool_id, copy] = statistics
        self._tables.frequencies[tool_id, copy] = Counter(dict(frequencies))

    @with_lock
    def update(
        self, tool_id: int, copy: str, statistics: ToolStatistics, changes: Iterable[tuple[int, int]], *, since: int
    ) -> bool:
        """Replace the statistics of a copy and add changes to its frequencies, atomically."""
        current = self._tables.statistics.get((tool_id, copy))
        if current is None or current.generation != since:
            return False
        self._tables.statistics[tool_id, copy] = statistics
        self._tables.frequencies[tool_id, copy].update(dict(changes))
        return True

    @with_lock
    def clear(self, tool_id: int, copy: str) -> None:
        """Delete the statistics of a copy."""
        self._tables.statistics.pop((tool_id, copy), None)
        self._tables.frequencies.pop((tool_id, copy), None)
