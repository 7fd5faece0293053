"""The mean and spread of all cosines, without a scan."""

from __future__ import annotations

import numpy as np
import pytest

from bunko.indexes.milvus.statistics import pack_moments, unpack_moments, vector_size
from bunko.indexes.moments import Moments


def unit_vectors(count: int, size: int, seed: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    vectors = np.random.default_rng(seed).normal(0.3, 1, (count, size)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


@pytest.mark.parametrize("count", [1, 2, 500, 20_000])
def test_mean_and_spread_are_those_of_all_products(count: int) -> None:
    vectors, query = unit_vectors(count, 32), unit_vectors(1, 32, seed=9)[0]
    products = vectors.astype(np.float64) @ query
    expected = pytest.approx((products.mean(), products.std()), abs=6e-5)
    assert Moments.of(vectors).mean_and_spread(query) == expected
    packed = pack_moments(Moments.of(vectors))
    assert vector_size(packed) == 32
    unpacked = unpack_moments(packed)
    assert unpacked is not None
    assert unpacked.count == count
    assert unpacked.mean_and_spread(query) == expected


def test_vectors_can_be_added_and_removed() -> None:
    vectors, query = unit_vectors(900, 16), unit_vectors(1, 16, seed=3)[0]
    parts = Moments.of(vectors[:400]) + Moments.of(vectors[400:]) - Moments.of(vectors[100:300])
    kept = np.concatenate((vectors[:100], vectors[300:]))
    assert parts.mean_and_spread(query) == pytest.approx(Moments.of(kept).mean_and_spread(query), abs=1e-4)


def test_a_tool_of_256_dimensions_takes_256_kilobytes() -> None:
    assert len(pack_moments(Moments.of(unit_vectors(300, 256)))) == 8 + 4 * 256 + 4 * 256 * 256
    assert (pack_moments(None), unpack_moments(b""), vector_size(b"")) == (b"", None, 0)
