"""Compute the statistics of a search over some tools from those that the store keeps; pack moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bunko.indexes.milvus.dimensions import KeyKind, chunk_dimensions, dimension_of
from bunko.indexes.moments import Moments
from bunko.indexes.term_weights import term_idfs
from bunko.protocols import Store
from bunko.text import ngrams
from bunko.types.records import QueryTerm, ToolStatistics

if TYPE_CHECKING:
    from bunko.indexes.milvus.chunks import ScoredChunk


class SearchStatistics:
    """Number of chunks, average length and frequencies over some tools, with the chunks that are not copied yet."""

    def __init__(
        self,
        store: Store,
        statistics: Mapping[tuple[int, str], ToolStatistics],  # by tool and copy
        pending_chunks: Sequence[ScoredChunk],
        size: int,
    ) -> None:
        self._store, self._copies, self._pending = store, list(statistics), pending_chunks
        self.size = size
        counted = sum(tool.chunks for tool in statistics.values()) + len(pending_chunks)
        terms = sum(tool.terms for tool in statistics.values()) + sum(scored.length for scored in pending_chunks)
        self.average_length = max(1.0, terms / max(1, counted))
        self._frequencies: dict[int, int] = {}  # by dimension
        self._pending_counts: Counter[int] | None = None

    def idfs(self, terms: Sequence[QueryTerm]) -> list[float]:
        """Return the inverse document frequency of each term; terms of a group have that of the group."""
        return term_idfs(terms, self.frequencies(terms), self.size)

    def frequencies(self, terms: Sequence[QueryTerm]) -> list[int]:
        """Return in how many chunks each term occurs."""
        return [self.frequency(term.key, "gram" if term.is_gram else "word") for term in terms]

    def load(self, terms: Sequence[QueryTerm]) -> None:
        """Read the frequencies of terms at once."""
        self._load([dimension_of(term.key, "gram" if term.is_gram else "word") for term in terms])

    def frequency(self, key: int, kind: KeyKind) -> int:
        """Return in how many chunks a key occurs."""
        dimension = dimension_of(key, kind)
        self._load([dimension])
        return self._frequencies[dimension]

    def _load(self, needed: Sequence[int]) -> None:
        missing = [dimension for dimension in dict.fromkeys(needed) if dimension not in self._frequencies]
        if not missing:
            return
        if self._pending_counts is None:
            self._pending_counts = Counter()
            for scored in self._pending:
                for part in chunk_dimensions(scored, ngrams.gram_keys(scored.text or "")):
                    self._pending_counts.update(part.tolist())
        for dimension in missing:
            self._frequencies[dimension] = self._pending_counts[dimension]
        for tool_id, copy in self._copies:
            for dimension, count in self._store.index_statistics.frequencies(tool_id, copy, missing).items():
                self._frequencies[dimension] += count
        # Documents that were removed and not yet subtracted must not make a term more frequent than there are chunks.
        for dimension in missing:
            self._frequencies[dimension] = max(0, min(self._frequencies[dimension], self.size))


_COUNT_BYTES, _FLOAT_BYTES = 8, 4


def pack_moments(moments: Moments | None) -> bytes:
    """Encode moments; None becomes an empty string."""
    if moments is None or not moments.count:
        return b""
    mean = moments.total / moments.count
    # Centred first: the spread is what matters, and it is much smaller than the products.
    covariance = moments.products / moments.count - np.outer(mean, mean)
    numbers = np.concatenate((mean, covariance.ravel())).astype("<f4")
    return moments.count.to_bytes(_COUNT_BYTES, "little") + numbers.tobytes()


def unpack_moments(data: bytes) -> Moments | None:
    """Decode moments."""
    if not data:
        return None
    count = int.from_bytes(data[:_COUNT_BYTES], "little")
    numbers = np.frombuffer(data, "<f4", offset=_COUNT_BYTES).astype(np.float64)
    dimension = vector_size(data)
    mean, covariance = numbers[:dimension], numbers[dimension:].reshape(dimension, dimension)
    return Moments(count, mean * count, (covariance + np.outer(mean, mean)) * count)


def vector_size(data: bytes) -> int:
    """Return the dimension of the vectors, 0 if there are none."""
    floats = max(len(data) - _COUNT_BYTES, 0) // _FLOAT_BYTES  # dimension + dimension²
    return int((np.sqrt(1 + 4 * floats) - 1) / 2)
