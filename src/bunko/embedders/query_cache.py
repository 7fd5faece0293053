"""A question in, its vector out: the same one is often asked in several ways and of several tools, and made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.types import Vectors

_MAX_QUERIES = 256  # remembered; 3 MB at most of the largest vectors


class QueryCache:
    """The vectors of the questions that were asked lately."""

    def __init__(self) -> None:
        self._vectors: dict[str, Vectors] = {}

    def vector(self, text: str, embed: Callable[[], Vectors]) -> Vectors:
        """Return the one row of a question, made where it is not known."""
        found = self._vectors.get(text)
        if found is None:
            found = embed()
            if len(self._vectors) >= _MAX_QUERIES:
                self._vectors.clear()
            self._vectors[text] = found
        return found.copy()
