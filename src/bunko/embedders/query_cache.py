"""Cache the vectors of recent queries: one query is often searched in several ways and in several tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bunko.runtime.activity import report_lookup

if TYPE_CHECKING:
    from bunko.types import Vectors

_MAX_QUERIES = 256  # 3 MB at most, with the largest vectors


class QueryCache:
    """The vectors of recent queries."""

    def __init__(self) -> None:
        self._vectors: dict[str, Vectors] = {}

    def vector(self, text: str, embed: Callable[[], Vectors]) -> Vectors:
        """Return the row of a query, calling `embed` if it is not cached."""
        vector = self._vectors.get(text)
        report_lookup("query_vector", is_hit=vector is not None)
        if vector is None:
            vector = embed()
            if len(self._vectors) >= _MAX_QUERIES:
                self._vectors.clear()
            self._vectors[text] = vector
        return vector.copy()
