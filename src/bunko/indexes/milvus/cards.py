"""Keep in the row of a chunk all that its scores are computed from, and read it back once for many searches."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.indexes.milvus.dimensions import FILLER_DIMENSION, FILLER_WEIGHT, dimensions, gram_dimensions
from bunko.indexes.replica import batches
from bunko.text import ngrams
from bunko.text.line_joins import join_lines
from bunko.types.records import StoredChunk

if TYPE_CHECKING:
    import numpy.typing as npt

VERSION = 1  # of the cards that are packed with this module
# About 4 kB each.
MAX_CACHED = 10_000
_READ_BATCH = 500
# The usual values: candidates need no more than a good guess of their scores.
USUAL_K1, USUAL_B = 1.2, 0.75
# Tool, generation, document, order among equal scores, length, and how many words, n-grams and numbers of the vector.
_HEADER = Struct("<qqqQIIII")
_DIMENSION_BYTES, _COUNT_BYTES, _FLOAT_BYTES = 4, 2, 4


class Card(NamedTuple):
    """What a row says of its chunk; arrays as bytes, so that those of many chunks are joined at once."""

    chunk_id: int
    tool_id: int
    generation: int  # that the row was written for
    document_id: int
    tiebreak_order: int
    length: int  # number of words, each as often as it occurs
    words: bytes  # dimensions, in order
    counts: bytes  # how often each word occurs
    grams: bytes  # dimensions of n-grams and of characters, in order
    vector: bytes  # empty without one that can be compared
    sentences: bytes  # their subwords; empty if they are not known

    def dimensions(self) -> npt.NDArray[np.uint32]:
        """Return all dimensions of the chunk."""
        return np.frombuffer(self.words + self.grams, "<u4")

    def sparse_vector(self, average_length: float) -> dict[int, float]:
        """Return the BM25 weights of the words of the chunk and 1 for its n-grams, by dimension."""
        counts = np.frombuffer(self.counts, "<u2").astype(np.float64)
        weights = counts * (USUAL_K1 + 1) / (counts + USUAL_K1 * (1 - USUAL_B + USUAL_B * self.length / average_length))
        vector = dict.fromkeys(np.frombuffer(self.grams, "<u4").tolist(), 1.0)
        vector.update(zip(np.frombuffer(self.words, "<u4").tolist(), weights.tolist(), strict=True))
        return vector or {FILLER_DIMENSION: FILLER_WEIGHT}

    def pack(self) -> str:
        """Return the card as a text."""
        header = _HEADER.pack(
            self.tool_id, self.generation, self.document_id, self.tiebreak_order, self.length,
            len(self.words) // _DIMENSION_BYTES, len(self.grams) // _DIMENSION_BYTES, len(self.vector) // _FLOAT_BYTES,
        )  # fmt: skip
        return base64.b64encode(b"".join((header, *self[6:]))).decode("ascii")

    @classmethod
    def unpack(cls, chunk_id: int, text: str) -> Card:
        """Return the card of a chunk from a text."""
        data = base64.b64decode(text)
        *numbers, words, grams, floats = _HEADER.unpack_from(data)
        start, parts = _HEADER.size, []
        for size in (words * _DIMENSION_BYTES, words * _COUNT_BYTES, grams * _DIMENSION_BYTES, floats * _FLOAT_BYTES):
            parts.append(data[start : start + size])
            start += size
        return cls._make((chunk_id, *numbers, *parts, data[start:]))


def unpack_cards(texts: Mapping[int, str]) -> Iterator[tuple[int, Card]]:
    """Yield the cards of chunks from texts, without those that bunko did not write."""
    for chunk_id, text in texts.items():
        with suppress(ValueError, StructError):
            yield chunk_id, Card.unpack(chunk_id, text)


def cards_of(chunks: Sequence[StoredChunk], tool_id: int, generation: int) -> list[Card]:
    """Return the cards of chunks of a tool."""
    gram_keys, positions = ngrams.occurrences([join_lines(chunk.text) for chunk in chunks])
    order = np.argsort(positions, kind="stable")
    bounds = np.searchsorted(positions[order], np.arange(len(chunks) + 1))
    gram_keys = gram_keys[order]
    cards = []
    for chunk, (start, end) in zip(chunks, itertools.pairwise(bounds), strict=True):
        words, vector = dimensions(chunk.term_keys, "word"), chunk.vector
        in_order = np.argsort(words, kind="stable")
        # One with other numbers cannot be compared.
        floats = b"" if vector is None or not np.isfinite(vector).all() else vector.astype("<f4").tobytes()
        cards.append(
            Card(
                chunk.chunk_id,
                tool_id,
                generation,
                chunk.document_id,
                chunk.tiebreak_order,
                int(chunk.term_counts.sum()),
                words[in_order].tobytes(),
                chunk.term_counts[in_order].astype("<u2").tobytes(),
                gram_dimensions(gram_keys[start:end]).tobytes(),
                floats,
                chunk.sentences.tobytes() if floats and chunk.sentences is not None else b"",
            )
        )
    return cards


class CardReader:
    """Reads cards by the ids of their chunks, and keeps them: within a copy, the row of a chunk has one for ever."""

    def __init__(self, read: Callable[[str, Sequence[int]], Mapping[int, str]]) -> None:
        self._read = read  # from a collection and ids to the packed cards that it has of them
        self._cache: dict[int, Card] = {}

    def cards(self, ids: Sequence[int], collections: Iterable[str]) -> dict[int, Card]:
        """Return the cards of these ids that are in one of the collections."""
        found = {chunk_id: card for chunk_id in ids if (card := self._cache.get(chunk_id)) is not None}
        for collection in collections:
            for batch in batches([chunk_id for chunk_id in ids if chunk_id not in found], _READ_BATCH):
                new = dict(unpack_cards(self._read(collection, batch)))
                if len(self._cache) + len(new) > MAX_CACHED:
                    self._cache = {}
                self._cache.update(new)
                found |= new
        return found


def count_words(cards: Sequence[Card], dimensions: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    """Return how often each chunk contains the words with these dimensions, one row for each chunk."""
    places, is_there = _find([card.words for card in cards], dimensions)
    if not is_there.any():
        return np.zeros(is_there.shape)
    counts = np.frombuffer(b"".join([card.counts for card in cards]), "<u2")
    return np.where(is_there, counts[places], 0.0)


def contain_grams(cards: Sequence[Card], dimensions: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Return whether each chunk contains the n-grams or characters with these dimensions, one row for each chunk."""
    return _find([card.grams for card in cards], dimensions)[1]


def _find(
    lists: Sequence[bytes], dimensions: npt.NDArray[np.uint32]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """Return where each dimension is in each sorted list, as a place in all lists together, and whether it is there."""
    rows = np.arange(len(lists), dtype=np.uint64) << np.uint64(32)
    sizes = [len(values) // _DIMENSION_BYTES for values in lists]
    # One sorted array: a search in each list would cost more in calls.
    everything = np.frombuffer(b"".join(lists), "<u4") | np.repeat(rows, sizes)
    wanted = rows[:, np.newaxis] | dimensions.astype(np.uint64)
    if not len(everything):
        return np.zeros(wanted.shape, np.intp), np.zeros(wanted.shape, bool)
    places = np.minimum(np.searchsorted(everything, wanted), len(everything) - 1)
    return places, everything[places] == wanted


def stack_vectors(cards: Sequence[Card], size: int) -> npt.NDArray[np.float32]:
    """Return the vectors of chunks, zeros for one without a vector of this size."""
    none, length = bytes(size * _FLOAT_BYTES), size * _FLOAT_BYTES
    joined = b"".join([card.vector if len(card.vector) == length else none for card in cards])
    return np.frombuffer(joined, "<f4").reshape(len(cards), size)
