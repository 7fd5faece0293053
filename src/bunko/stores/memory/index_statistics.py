"""Keep statistics over the chunks of tools in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from bunko.records import ToolStatistics
from bunko.stores.memory.data import MemoryTables, with_lock


class MemoryIndexStatistics:
    """Statistics over the chunks of tools, for indexes outside the library."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    def get(self, tool_id: int) -> ToolStatistics | None:
        """Return the statistics of a tool, without the frequencies, or None if there are none."""
        return self._tables.statistics.get(tool_id)

    @with_lock
    def frequencies(self, tool_id: int, keys: Sequence[int]) -> dict[int, int]:
        """Return in how many chunks of a tool each key occurs; a key that occurs in none may be left out."""
        counts = self._tables.frequencies.get(tool_id, Counter())
        return {key: counts[key] for key in keys if key in counts}

    @with_lock
    def replace(self, tool_id: int, statistics: ToolStatistics, frequencies: Iterable[tuple[int, int]]) -> None:
        """Store the statistics of a tool in place of all earlier ones, atomically."""
        self._tables.statistics[tool_id], self._tables.frequencies[tool_id] = statistics, Counter(dict(frequencies))

    @with_lock
    def update(
        self, tool_id: int, statistics: ToolStatistics, changes: Iterable[tuple[int, int]], *, since: int
    ) -> bool:
        """Replace the statistics of a tool and add changes to its frequencies, atomically."""
        current = self._tables.statistics.get(tool_id)
        if current is None or current.generation != since:
            return False
        self._tables.statistics[tool_id] = statistics
        self._tables.frequencies[tool_id].update(dict(changes))
        return True

    @with_lock
    def clear(self, tool_id: int) -> None:
        """Delete the statistics of a tool."""
        self._tables.statistics.pop(tool_id, None)
        self._tables.frequencies.pop(tool_id, None)
