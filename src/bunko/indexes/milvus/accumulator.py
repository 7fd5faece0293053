"""Add up the statistics of chunks as they are copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from bunko.indexes.milvus.packed_moments import pack_moments, unpack_moments
from bunko.indexes.moments import Moments
from bunko.types.records import ToolStatistics

if TYPE_CHECKING:
    import numpy.typing as npt

# Counts that are collected before they are added up: 64 MB.
_MAX_COLLECTED = 4_000_000


class StatisticsAccumulator:
    """Counts in how many chunks each dimension occurs, and adds up lengths and vectors."""

    def __init__(self, start: ToolStatistics | None = None) -> None:
        self._chunks, self._terms = (start.chunks, start.terms) if start else (0, 0)
        self._moments = unpack_moments(start.vectors) if start else None
        self._keys: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._counts: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self._collected: list[tuple[npt.NDArray[np.uint64], int]] = []
        self._collected_size = 0

    def add(
        self,
        dimensions: Iterable[npt.NDArray[np.uint64]],
        lengths: Iterable[int],
        vectors: npt.NDArray[np.float32] | None,
        *,
        sign: int = 1,
    ) -> None:
        """Add chunks, or subtract them with a sign of -1; `vectors` has zeros for a chunk without a vector."""
        for chunk_dimensions in dimensions:
            distinct = np.unique(chunk_dimensions)
            self._collected.append((distinct, sign))
            self._collected_size += len(distinct)
        for length in lengths:
            self._chunks += sign
            self._terms += sign * length
        if vectors is not None and len(vectors):
            moments, current = Moments.of(vectors), self._moments
            if current is None:
                zeros = Moments.of(vectors[:0])
                self._moments = zeros + moments if sign > 0 else zeros - moments
            else:
                self._moments = current + moments if sign > 0 else current - moments
        if self._collected_size > _MAX_COLLECTED:
            self._add_up()

    def statistics(self, generation: int) -> ToolStatistics:
        """Return the statistics of all chunks so far."""
        return ToolStatistics(generation, self._chunks, self._terms, pack_moments(self._moments))

    def frequencies(self) -> Iterator[tuple[int, int]]:
        """Yield each dimension and by how much its number of chunks has changed."""
        self._add_up()
        changed = self._counts != 0
        return zip(self._keys[changed].tolist(), self._counts[changed].tolist(), strict=True)

    def _add_up(self) -> None:
        keys = np.concatenate([self._keys, *(chunk_keys for chunk_keys, _ in self._collected)])
        signs = [np.full(len(chunk_keys), sign, np.int64) for chunk_keys, sign in self._collected]
        counts = np.concatenate([self._counts, *signs])
        self._keys, positions = np.unique(keys, return_inverse=True)
        self._counts = np.zeros(len(self._keys), np.int64)
        np.add.at(self._counts, positions, counts)
        self._collected, self._collected_size = [], 0
