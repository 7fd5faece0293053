"""Compute the statistics of a search over some tools from those that the store keeps; pack moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.indexes.milvus.dimensions import term_dimensions
from bunko.indexes.moments import Moments
from bunko.indexes.term_weights import term_idfs
from bunko.protocols import Store
from bunko.types.records import QueryTerm, ToolStatistics

if TYPE_CHECKING:
    from bunko.indexes.milvus.cards import Card
    from bunko.indexes.milvus.dimensions import Dimensions


# Frequencies that are remembered of a copy: about 20 MB.
_MAX_KNOWN = 200_000


class CopyStatistics(NamedTuple):
    """The statistics of the copy of a tool, with the frequencies that searches have read so far."""

    tool_id: int
    copy: str
    statistics: ToolStatistics
    known: dict[int, int]  # in how many chunks a dimension occurs


class SearchStatistics:
    """Number of chunks, average length and frequencies over some tools, with the chunks that are not copied yet."""

    def __init__(self, store: Store, copies: Sequence[CopyStatistics], pending: Sequence[Card], size: int) -> None:
        self._store, self._copies, self._pending = store, copies, pending
        self.size = size
        counted = sum(copy.statistics.chunks for copy in copies) + len(pending)
        terms = sum(copy.statistics.terms for copy in copies) + sum(card.length for card in pending)
        self.average_length = max(1.0, terms / max(1, counted))
        self._pending_counts: Counter[int] | None = None

    def idfs(self, terms: Sequence[QueryTerm]) -> list[float]:
        """Return the inverse document frequency of each term; terms of a group have that of the group."""
        return term_idfs(terms, self.frequencies(term_dimensions(terms)), self.size)

    def frequencies(self, dimensions: Dimensions) -> list[int]:
        """Return in how many chunks each dimension occurs."""
        wanted = dimensions.tolist()
        if self._pending_counts is None:
            self._pending_counts = Counter()
            for card in self._pending:
                self._pending_counts.update(card.dimensions().tolist())
        counts = [self._pending_counts[dimension] for dimension in wanted]
        for tool_id, copy, _, known in self._copies:
            found = {dimension: known[dimension] for dimension in wanted if dimension in known}
            if missing := [dimension for dimension in wanted if dimension not in found]:
                read = self._store.index_statistics.frequencies(tool_id, copy, missing)
                found |= {dimension: read.get(dimension, 0) for dimension in missing}
                if len(known) < _MAX_KNOWN:
                    known |= found
            counts = [count + found[dimension] for count, dimension in zip(counts, wanted, strict=True)]
        # Documents that were removed and not yet subtracted must not make a term more frequent than there are chunks.
        return [max(0, min(count, self.size)) for count in counts]


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
