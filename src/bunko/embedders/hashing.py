"""Hashed character n-grams: no model, no download. Matches similar spelling, not meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bunko.embedders.provider import Provider

if TYPE_CHECKING:
    from bunko.types import Vectors

_HASH_MULTIPLIER = 0x9E3779B97F4A7C15  # spreads neighbouring keys over all buckets (Fibonacci hashing)


class Hashing:
    """A signed bag of hashed n-grams, scaled to unit length."""

    batch_size = 100
    label = "hashing"
    is_remote = False
    is_small = True

    def __init__(self, size: int) -> None:
        from bunko.text import ngrams

        self.name = f"hashing:{size}:{ngrams.VERSION}"
        self.size = size
        self.noise_floor = 0.28

    def unavailable_reason(self) -> str:
        """Return an empty string: this embedder is part of bunko."""
        return ""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """Return one row per text; queries and documents are embedded in the same way."""
        import numpy as np

        from bunko.text import ngrams

        multiplier = np.uint64(_HASH_MULTIPLIER)
        vectors = np.zeros((len(texts), self.size), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            mixed = ngrams.gram_keys(text) * multiplier
            bucket = (mixed >> np.uint64(40)) % np.uint64(self.size)
            sign = np.where(mixed >> np.uint64(63), np.float32(1), np.float32(-1))
            np.add.at(row, bucket.astype(np.int64), sign)
            length = np.linalg.norm(row)
            if length:
                row /= length
            else:
                row[0] = 1.0  # a text without n-grams still needs a unit vector
        return vectors


def build(size: int = 256) -> Hashing:
    """Return an embedder that hashes n-grams."""
    return Hashing(size)


PROVIDER = Provider(build)
