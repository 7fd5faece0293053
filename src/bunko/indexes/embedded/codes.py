"""Quantize the vectors of a large segment to codes that are faster to scan, and keep moments that save a scan.

Bytes (int8 scalar quantization), a quarter of the size of the vectors, bound the cosine of every row, so that few rows
need their vectors. Bit planes (scalar quantization to two bits), a sixteenth of the size, only estimate which rows are
near.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.indexes.embedded import bit_planes
from bunko.indexes.moments import Moments

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import Vectors

# From this size on, a scan of bytes is faster than one of floats; a batch of an import is smaller.
BYTE_ROWS = 5_000
# From this size on, the bytes no longer fit the CPU cache, and sums of bit planes are faster.
PLANE_ROWS = 200_000


class Codes(NamedTuple):
    """The codes of the vectors of a segment; all are empty in a small segment."""

    coarse: npt.NDArray[np.int8]  # the bytes: each vector divided by its scale and rounded
    scales: npt.NDArray[np.float32]
    max_norm: npt.NDArray[np.float32]  # of the longest vector
    planes: npt.NDArray[np.uint64]  # two bits of each dimension: one row per bit, one column per 64 vectors
    total: npt.NDArray[np.float64]  # the moments of the vectors
    products: npt.NDArray[np.float64]

    def moments(self) -> Moments:
        """Return the moments of all vectors."""
        return Moments(len(self.scales), self.total, self.products)

    def deviations(self) -> npt.NDArray[np.float32]:
        """Return the standard deviation of the values in each dimension."""
        return _deviations(self.moments())


DTYPES = {"coarse": np.int8, "scales": np.float32, "max_norm": np.float32}
DTYPES |= {"planes": np.uint64, "total": np.float64, "products": np.float64}


def no_codes(dimension: int) -> Codes:
    """Return the codes of a segment that has none."""
    return Codes(
        coarse=np.empty((0, dimension), np.int8),
        scales=np.empty(0, np.float32),
        max_norm=np.empty(0, np.float32),
        planes=np.empty((0, 0), np.uint64),
        total=np.empty(0),
        products=np.empty((0, 0)),
    )


def encode(vectors: Vectors, moments: Moments | None = None) -> Codes:
    """Return the codes of vectors, whose moments may be known."""
    if len(vectors) < BYTE_ROWS or not vectors.shape[1]:
        return no_codes(vectors.shape[1])
    codes = encode_without_bytes(lambda: _batches(vectors), vectors.shape, moments or Moments.of(vectors))
    coarse = np.empty(vectors.shape, np.int8)
    start = 0
    for batch in byte_batches(_batches(vectors), codes.scales):
        coarse[start : start + len(batch)] = batch
        start += len(batch)
    return codes._replace(coarse=coarse)


def encode_without_bytes(
    batches: Callable[[], Iterable[Vectors]], shape: tuple[int, ...], moments: Moments | None
) -> Codes:
    """Return the codes of vectors that come in batches, without their bytes: `byte_batches` yields those."""
    row_count, dimension = shape
    if row_count < BYTE_ROWS or not dimension or moments is None:
        return no_codes(dimension)
    scales, max_squared_norm = np.empty(row_count, np.float32), 0.0
    mean = (moments.total / row_count).astype(np.float32)
    deviations = _deviations(moments)
    planes = bit_planes.empty_planes(row_count, dimension) if row_count >= PLANE_ROWS else np.empty((0, 0), np.uint64)
    start = 0
    for batch in batches():
        rows = slice(start, start + len(batch))
        scales[rows] = np.maximum(np.abs(batch).max(axis=1), np.finfo(np.float32).tiny) / 127
        max_squared_norm = max(max_squared_norm, float(np.einsum("ij,ij->i", batch, batch).max(initial=0.0)))
        if len(planes):
            bit_planes.write_rows(planes, start, batch, mean, deviations)
        start += len(batch)
    return Codes(
        coarse=np.empty((0, dimension), np.int8),
        scales=scales,
        max_norm=np.array([sqrt(max_squared_norm)], np.float32),
        planes=planes,
        total=moments.total,
        products=moments.products,
    )


def byte_batches(batches: Iterable[Vectors], scales: npt.NDArray[np.float32]) -> Iterator[npt.NDArray[np.int8]]:
    """Yield the bytes of vectors that come in batches; nothing without scales."""
    start = 0
    for batch in batches if len(scales) else ():
        yield np.round(batch / scales[start : start + len(batch), None]).astype(np.int8)
        start += len(batch)


def _batches(vectors: Vectors, size: int = 8192) -> Iterator[Vectors]:
    # All rows at once would need several times the memory.
    for start in range(0, len(vectors), size):
        yield vectors[start : start + size]


def _deviations(moments: Moments) -> npt.NDArray[np.float32]:
    mean = moments.total / moments.count
    variance = moments.products.diagonal() / moments.count - mean * mean
    deviations: npt.NDArray[np.float32] = np.sqrt(np.maximum(variance, 0)).astype(np.float32)
    return deviations


def fit_shape(codes: Codes, shape: tuple[int, ...]) -> bool:
    """Return whether codes are those of vectors of this shape, or empty."""
    row_count, dimension = shape
    if not len(codes.scales):
        return all(array.size == 0 for array in codes) and codes.coarse.shape == (0, dimension)
    return (
        codes.coarse.shape == shape
        and codes.scales.shape == (row_count,)
        and codes.max_norm.shape == (1,)
        and codes.planes.shape in ((2 * dimension, -(-row_count // 64)), (0, 0))
        and codes.total.shape == (dimension,)
        and codes.products.shape == (dimension, dimension)
    )


def alive_moments(vectors: Vectors, codes: Codes, alive: npt.NDArray[np.bool_] | None) -> Moments:
    """Return the moments of the rows of a segment that are alive."""
    if not len(codes.scales):
        return Moments.of(vectors if alive is None else vectors[alive])
    return codes.moments() if alive is None else codes.moments() - Moments.of(vectors[~alive])
