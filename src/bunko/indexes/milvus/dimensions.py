"""Give words, n-grams and characters the dimensions of a sparse vector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.indexes.milvus.chunks import ScoredChunk
    from bunko.types.records import StoredChunk


# Of the rows that are made with this module.
VERSION = 2
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
USUAL_K1, USUAL_B = 1.2, 0.75
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
    norm = USUAL_K1 * (1 - USUAL_B + USUAL_B * counts.sum() / average_length)
    weights = counts * (USUAL_K1 + 1) / (counts + norm)
    vector = dict.fromkeys(grams.tolist(), 1.0)
    vector.update(zip(words.tolist(), weights.tolist(), strict=True))
    return vector or {FILLER_DIMENSION: _FILLER_WEIGHT}


def dimension_of(key: int, kind: KeyKind) -> int:
    """Return the dimension of a key."""
    return int(dimensions(np.array([key], np.uint64), kind)[0])
