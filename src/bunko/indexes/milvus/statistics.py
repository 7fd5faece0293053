"""Compute the statistics of a search over some tools from those that the store keeps; pack moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from bunko.indexes.moments import Moments
from bunko.indexes.term_weights import term_idfs
from bunko.protocols import Store
from bunko.text import ngrams
from bunko.types.records import QueryTerm, ToolStatistics

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.indexes.milvus.chunks import ScoredChunk
    from bunko.types.records import StoredChunk


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


def dimension_of(key: int, kind: KeyKind) -> int:
    """Return the dimension of a key."""
    return int(dimensions(np.array([key], np.uint64), kind)[0])


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


# Of the rows that are made with this module.
VERSION = 1

KeyKind = Literal["word", "gram", "character"]
# Any numbers would do: they keep a word and an n-gram with the same key apart.
_SALTS: dict[KeyKind, int] = {
    "word": 0x9AE16A3B2F90404F,
    "gram": 0xC2B2AE3D27D4EB4F,
    "character": 0x165667B19E3779F9,
}
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_MAX_DIMENSION = np.uint64(2**32 - 2)  # of Milvus
# A key of an n-gram holds its first character above these bits.
_FIRST_CHARACTER = np.uint64(~((1 << 42) - 1) & (2**64 - 1))
# The usual values: candidates need no more than a good guess of their scores.
_K1, _B = 1.2, 0.75

# Of a chunk without any term: Milvus wants at least one.
FILLER_DIMENSION = 1
_FILLER_WEIGHT = 1e-6


def dimensions(keys: npt.NDArray[np.uint64], kind: KeyKind) -> npt.NDArray[np.uint64]:
    """Return the dimension of each key."""
    mixed = (keys ^ np.uint64(_SALTS[kind])) * _MULTIPLIER
    mixed ^= mixed >> np.uint64(29)
    hashed: npt.NDArray[np.uint64] = (mixed * _MULTIPLIER) >> np.uint64(32)
    return np.clip(hashed, np.uint64(FILLER_DIMENSION + 1), _MAX_DIMENSION)


def first_characters(gram_keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the distinct keys of the first characters of n-grams: the starts of their key ranges."""
    return np.unique(gram_keys & _FIRST_CHARACTER)


def chunk_dimensions(
    chunk: StoredChunk | ScoredChunk, gram_keys: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the dimensions of the words of a chunk, and those of its n-grams and characters."""
    grams = np.concatenate((dimensions(gram_keys, "gram"), dimensions(first_characters(gram_keys), "character")))
    return dimensions(chunk.term_keys, "word"), grams


def sparse_vector(
    chunk: StoredChunk,
    words: npt.NDArray[np.uint64],
    grams: npt.NDArray[np.uint64],
    average_length: float,
) -> dict[int, float]:
    """Return the BM25 weights of the words of a chunk and 1 for its n-grams, by dimension."""
    counts = chunk.term_counts.astype(np.float64)
    norm = _K1 * (1 - _B + _B * counts.sum() / average_length)
    weights = counts * (_K1 + 1) / (counts + norm)
    vector = dict.fromkeys(grams.tolist(), 1.0)
    vector.update(zip(words.tolist(), weights.tolist(), strict=True))
    return vector or {FILLER_DIMENSION: _FILLER_WEIGHT}
