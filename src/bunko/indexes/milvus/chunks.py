"""Read the parts of chunks that are scored from the store, each when it is needed, and keep them for later searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from bunko.protocols import Store
from bunko.text import ngrams
from bunko.text.line_joins import join_lines
from bunko.types.records import ChunkSentences, ChunkTerms, ChunkText, ChunkVector, StoredChunk

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import SentenceSubwords

# About 6 kB each.
MAX_CACHED = 5000
Part = Literal["terms", "texts", "vectors", "sentences"]  # of a chunk
_NO_KEYS, _NO_COUNTS = np.empty(0, np.uint64), np.empty(0, np.uint16)


class ScoredChunk:
    """A chunk with those of its parts that were read."""

    __slots__ = (
        "chunk_id", "document_id", "has_sentences", "has_terms", "has_vector", "length", "sentences", "term_counts",
        "term_keys", "text", "tiebreak_order", "vector",
    )  # fmt: skip

    def __init__(self, chunk_id: int, document_id: int, tiebreak_order: int) -> None:
        self.chunk_id, self.document_id, self.tiebreak_order = chunk_id, document_id, tiebreak_order
        self.has_terms = self.has_vector = self.has_sentences = False
        self.term_keys, self.term_counts, self.length = _NO_KEYS, _NO_COUNTS, 0
        self.text: str | None = None
        self.vector: npt.NDArray[np.float32] | None = None
        self.sentences: SentenceSubwords | str | None = None

    @classmethod
    def of(cls, chunk: StoredChunk) -> ScoredChunk:
        """Return a chunk that was read with all of its parts."""
        scored = cls(chunk.chunk_id, chunk.document_id, chunk.tiebreak_order)
        scored.set_terms(chunk.term_keys, chunk.term_counts)
        scored.text, scored.vector, scored.has_vector = join_lines(chunk.text), chunk.vector, True
        scored.sentences, scored.has_sentences = chunk.sentences, chunk.sentences is not None
        return scored

    def set_terms(self, keys: npt.NDArray[np.uint64], counts: npt.NDArray[np.uint16]) -> None:
        """Add the words of the chunk."""
        self.term_keys, self.term_counts, self.length, self.has_terms = keys, counts, int(counts.sum()), True

    def has(self, part: Part) -> bool:
        """Return whether a part was read."""
        if part == "texts":
            return self.text is not None
        return {"terms": self.has_terms, "vectors": self.has_vector, "sentences": self.has_sentences}[part]


class ChunkReader:
    """Reads chunks by their ids; a chunk may change only with the generation of the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._generation = -1
        self._cache: dict[int, ScoredChunk] = {}

    def read(self, ids: Sequence[int], part: Part, generation: int) -> dict[int, ScoredChunk]:
        """Return the chunks with these ids that still exist, with at least a part of them."""
        if generation != self._generation or len(self._cache) > MAX_CACHED:
            self._generation, self._cache = generation, {}
        cache = self._cache
        missing = [chunk_id for chunk_id in ids if chunk_id not in cache or not cache[chunk_id].has(part)]
        if missing and part == "terms":
            for terms in self._store.changes.chunk_terms(missing):
                self._cached(terms).set_terms(terms.term_keys, terms.term_counts)
        elif missing and part == "texts":
            for text in self._store.changes.chunk_texts(missing):
                self._cached(text).text = join_lines(text.text)
        elif missing and part == "sentences":
            for chunk in self._store.changes.chunk_sentences(missing):
                scored = self._cached(chunk)
                scored.sentences, scored.has_sentences = chunk.sentences, True
        elif missing:
            for vector in self._store.changes.chunk_vectors(missing):
                scored = self._cached(vector)
                scored.vector, scored.has_vector = vector.vector, True
        return {chunk_id: cache[chunk_id] for chunk_id in ids if chunk_id in cache}

    def _cached(self, chunk: ChunkSentences | ChunkTerms | ChunkText | ChunkVector) -> ScoredChunk:
        scored = self._cache.get(chunk.chunk_id)
        if scored is None:
            scored = ScoredChunk(chunk.chunk_id, chunk.document_id, chunk.tiebreak_order)
            self._cache[chunk.chunk_id] = scored
        return scored


def count_terms(chunks: Sequence[ScoredChunk], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return how often each chunk contains each word, one row for each chunk; their terms must have been read."""
    distinct_keys, columns = np.unique(keys, return_inverse=True)
    table = np.zeros((len(chunks), len(distinct_keys)))
    if chunks and len(keys):
        # All chunks at once: the calls for separate chunks cost more than the search.
        rows = np.repeat(np.arange(len(chunks)), [len(chunk.term_keys) for chunk in chunks])
        hits, found = _find(distinct_keys, np.concatenate([chunk.term_keys for chunk in chunks]))
        table[rows[hits], found] = np.concatenate([chunk.term_counts for chunk in chunks])[hits]
    return table[:, columns]


def contain_grams(chunks: Sequence[ScoredChunk], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return which n-grams each chunk contains, one row for each chunk; their texts must have been read."""
    distinct_keys, columns = np.unique(keys, return_inverse=True)
    table = np.zeros((len(chunks), len(distinct_keys)), bool)
    if chunks and len(keys):
        gram_keys, rows = gram_occurrences(chunks)
        hits, found = _find(distinct_keys, gram_keys)
        table[rows[hits], found] = True
    return table[:, columns]


def have_grams_between(chunks: Sequence[ScoredChunk], ranges: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Return for each chunk and each range of keys (start, end) whether it contains an n-gram in it."""
    table = np.zeros((len(chunks), len(ranges)), bool)
    if chunks:
        gram_keys, rows = gram_occurrences(chunks)
        for column, (start, end) in enumerate(ranges):
            table[rows[(gram_keys >= np.uint64(start)) & (gram_keys < np.uint64(end))], column] = True
    return table


def gram_occurrences(chunks: Sequence[ScoredChunk]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    """Return the keys of all n-grams of chunks, and the index of the chunk of each."""
    return ngrams.occurrences([chunk.text or "" for chunk in chunks])


def _find(
    sorted_keys: npt.NDArray[np.uint64], values: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the positions of the values that are among some keys, and the position of the key of each."""
    positions = np.minimum(np.searchsorted(sorted_keys, values), len(sorted_keys) - 1)
    hits = np.flatnonzero(sorted_keys[positions] == values)
    return hits, positions[hits]
