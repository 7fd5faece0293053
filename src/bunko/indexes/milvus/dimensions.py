"""Give words, n-grams and characters the dimensions of a sparse vector."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from bunko.types.records import QueryTerm

    Dimensions = npt.NDArray[np.uint32]


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
# Of a chunk without any term: Milvus wants at least one.
FILLER_DIMENSION, FILLER_WEIGHT = 1, 1e-6


def dimensions(keys: npt.NDArray[np.uint64], kind: KeyKind) -> Dimensions:
    """Return the dimension of each key."""
    mixed = (keys ^ np.uint64(_SALTS[kind])) * _MULTIPLIER
    mixed ^= mixed >> np.uint64(29)
    hashed: Dimensions = np.clip(
        (mixed * _MULTIPLIER) >> np.uint64(32), np.uint64(FILLER_DIMENSION + 1), _MAX_DIMENSION
    ).astype(np.uint32)
    return hashed


def first_characters(gram_keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the distinct keys of the first characters of n-grams: the starts of their key ranges."""
    return np.unique(gram_keys & _FIRST_CHARACTER)


def gram_dimensions(gram_keys: npt.NDArray[np.uint64]) -> Dimensions:
    """Return the dimensions of distinct n-grams and of their first characters, in order."""
    characters = dimensions(first_characters(gram_keys), "character")
    return np.unique(np.concatenate((dimensions(gram_keys, "gram"), characters)))


def term_dimensions(terms: Sequence[QueryTerm]) -> Dimensions:
    """Return the dimension of each word or n-gram of a query."""
    return np.array([_term_dimension(term.key, term.is_gram) for term in terms], np.uint32)


@lru_cache(maxsize=10_000)  # a search asks for the same terms again and again
def _term_dimension(key: int, is_gram: bool) -> int:
    return int(dimensions(np.array([key], np.uint64), "gram" if is_gram else "word")[0])
