"""Read what scoring needs of chunks from the store, and keep it for the next search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bunko.protocols import Store
from bunko.records import StoredChunk
from bunko.text import ngrams
from bunko.text.line_joins import join_lines

if TYPE_CHECKING:
    import numpy.typing as npt

# About 6 kB each.
_MAX_CACHED = 5000


class ScoredChunk:
    """A chunk with its terms; its n-grams are computed at first use."""

    __slots__ = ("_grams", "chunk", "length")

    def __init__(self, chunk: StoredChunk) -> None:
        self.chunk = chunk
        self.length = int(chunk.term_counts.sum())
        self._grams: npt.NDArray[np.uint64] | None = None

    @property
    def gram_keys(self) -> npt.NDArray[np.uint64]:
        """Return its distinct n-gram keys, sorted."""
        if self._grams is None:
            self._grams = ngrams.gram_keys(join_lines(self.chunk.text))
        return self._grams


class ChunkReader:
    """Reads chunks by their ids; a chunk may change only with the generation of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._generation = -1
        self._cache: dict[int, ScoredChunk] = {}

    def read(self, ids: Sequence[int], generation: int) -> dict[int, ScoredChunk]:
        """Return the chunks with these ids that still exist."""
        if generation != self._generation or len(self._cache) > _MAX_CACHED:
            self._generation, self._cache = generation, {}
        cache = self._cache
        missing = [chunk_id for chunk_id in ids if chunk_id not in cache]
        for chunk in self._store.changes.chunks_with_ids(missing):
            cache[chunk.chunk_id] = ScoredChunk(chunk)
        return {chunk_id: cache[chunk_id] for chunk_id in ids if chunk_id in cache}


def count_terms(chunks: Sequence[ScoredChunk], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return how often each chunk contains each word, one row for each chunk."""
    counts = np.zeros((len(chunks), len(keys)))
    for row, scored in enumerate(chunks):
        positions, is_match = _find(scored.chunk.term_keys, keys)
        counts[row, is_match] = scored.chunk.term_counts[positions[is_match]]
    return counts


def contain_grams(chunks: Iterable[ScoredChunk], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return which n-grams each chunk contains, one row for each chunk."""
    rows = [_find(scored.gram_keys, keys)[1] for scored in chunks]
    return np.array(rows, bool).reshape(len(rows), len(keys))


def _find(
    sorted_keys: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    if not len(sorted_keys):
        return np.zeros(len(keys), np.intp), np.zeros(len(keys), bool)
    positions = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return positions, sorted_keys[positions] == keys
