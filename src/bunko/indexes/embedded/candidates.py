"""Find the rows of a large segment that may be nearest to a vector, by the codes of its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import sqrt
from typing import TYPE_CHECKING, cast

import numpy as np

from bunko.errors import PackageError
from bunko.indexes.embedded.codes import Codes, pack_signs
from bunko.indexes.embedded.snapshot import kth_highest, lower_bound
from bunko.runtime.package_errors import package_errors

if TYPE_CHECKING:
    import numpy.typing as npt

    Rows = npt.NDArray[np.intp]

# These find 99 % of the ten nearest of 500,000 texts.
_PLAIN_SHARE = 16  # one row in so many, those whose signs differ least, is compared by weighted signs
_SIGN_SHARE = 50  # one row in so many, the best of those, is compared by bytes
_MIN_SIGN_FACTOR = 32  # at least so many by bytes for each row that is wanted
# With steps of this many standard deviations, four levels of normally distributed values are nearest to the values.
LEVEL_STEP = 0.59
# The distance of every n-th row is enough to know how near the nearest rows are.
_SAMPLE_STEP = 16
# Rows whose signs are compared at a time: their words fit the fastest cache.
_BLOCK_ROWS = 16_384
_WEIGHTED_ROWS = 4_096  # the same for weighted signs
_GATHERED_ROWS = 512  # whose bytes are compared at a time
# If fewer rows than one in so many are allowed, their codes are gathered instead of scanning all.
_GATHER_SHARE = 8
# How much sums of floats may be off, relative to the largest possible product.
_FLOAT_ERROR = 1e-5


def candidates(codes: Codes, vector: npt.NDArray[np.float32], k: int, mask: npt.NDArray[np.bool_] | None) -> Rows:
    """Return rows among which the k allowed ones with the highest product with a vector are.

    Where there are signs and many rows are allowed, a few of them may be missing.
    """
    row_count = len(codes.coarse)
    allowed_count = row_count if mask is None else int(np.count_nonzero(mask))
    if allowed_count <= k:
        return np.arange(row_count) if mask is None else np.flatnonzero(mask)
    sign_count = max(allowed_count // _SIGN_SHARE, _MIN_SIGN_FACTOR * k)
    if len(codes.signs) and sign_count * _SAMPLE_STEP < row_count and allowed_count > row_count // _GATHER_SHARE:
        rows = _nearest_by_signs(codes, vector, sign_count, mask)
    elif mask is not None and allowed_count < row_count // _GATHER_SHARE:
        rows = np.flatnonzero(mask)
    else:
        return _highest_by_bytes(codes, vector, k, mask)
    return rows[_highest_by_bytes(codes, vector, k, None, rows)]


def _nearest_by_signs(
    codes: Codes, vector: npt.NDArray[np.float32], count: int, mask: npt.NDArray[np.bool_] | None
) -> Rows:
    """Return about `count` rows, those whose signs differ least from a vector's where that is large.

    Signs are those of vectors less their mean, which changes all products with a vector alike.
    """
    words = pack_signs(vector.reshape(1, -1))[0]
    row_count = codes.signs.shape[1]
    distances = np.empty(row_count, _distance_type(vector))
    differences, counts = np.empty(_BLOCK_ROWS, np.uint64), np.empty(_BLOCK_ROWS, np.uint8)
    for start in range(0, row_count, _BLOCK_ROWS):
        block = distances[start : start + _BLOCK_ROWS]
        size = len(block)
        for index, word in enumerate(words):
            np.bitwise_xor(codes.signs[index, start : start + size], word, out=differences[:size])
            if index == 0:
                np.bitwise_count(differences[:size], out=block)
            else:
                np.add(block, np.bitwise_count(differences[:size], out=counts[:size]), out=block)
    if mask is None:
        rows = _lowest(distances, max(row_count // _PLAIN_SHARE, count))
    else:
        allowed_rows = np.flatnonzero(mask)
        rows = allowed_rows[_lowest(distances[allowed_rows], max(len(allowed_rows) // _PLAIN_SHARE, count))]
    return rows[_lowest(weighted_distances(codes, vector, rows), count)]


def _distance_type(vector: npt.NDArray[np.float32]) -> type[np.uint8 | np.uint16]:
    # 256 signs that all differ overflow to a distance of 0: the row is compared by bytes in vain, no more.
    return np.uint8 if len(vector) <= 256 else np.uint16


def weighted_distances(codes: Codes, vector: npt.NDArray[np.float32], rows: Rows) -> npt.NDArray[np.uint16]:
    """Return how much the signs of rows differ from a vector's, each with the weight 1, 3, 5 or 7 of its value."""
    step = max(LEVEL_STEP * float(np.linalg.norm(vector)) / sqrt(len(vector)), 1e-30)
    levels = np.minimum(np.abs(vector) / np.float32(step), 3).astype(np.uint8)
    words, odd_words, high_words = pack_signs(np.stack([vector, levels & 1, levels & 2]))
    distances = np.empty(len(rows), np.uint16)
    for start in range(0, len(rows), _WEIGHTED_ROWS):
        block = rows[start : start + _WEIGHTED_ROWS]
        distance = distances[start : start + _WEIGHTED_ROWS]
        plain, odd, high = np.zeros((3, len(block)), _distance_type(vector))
        for index, signs in enumerate(codes.signs):
            differences = signs.take(block)
            differences ^= words[index]
            plain += np.bitwise_count(differences)
            odd += np.bitwise_count(differences & odd_words[index])
            differences &= high_words[index]
            high += np.bitwise_count(differences)
        np.add(high, high, out=distance, dtype=np.uint16)
        distance += odd
        distance += distance
        distance += plain
    return distances


def _lowest(distances: npt.NDArray[np.unsignedinteger], count: int) -> Rows:
    """Return the rows of about `count` lowest distances."""
    sample = distances[::_SAMPLE_STEP]
    position = min(count // _SAMPLE_STEP, len(sample) - 1)
    threshold = int(np.searchsorted(np.cumsum(np.bincount(sample)), position, side="right"))
    return np.flatnonzero(distances <= threshold)


def _highest_by_bytes(
    codes: Codes,
    vector: npt.NDArray[np.float32],
    k: int,
    mask: npt.NDArray[np.bool_] | None,
    gathered_rows: Rows | None = None,
) -> Rows:
    """Return which of the rows, or of the gathered ones, may be among the k with the highest product.

    A product of bytes differs from that of the vectors by the rounding errors of both: at most half a scale in each
    dimension of a row; that of the vector is computed.
    """
    scales = codes.scales if gathered_rows is None else codes.scales[gathered_rows]
    if len(scales) <= k:
        return np.arange(len(scales))
    scale = max(float(np.abs(vector).max()), 1e-30) / 127
    coarse = np.round(vector / np.float32(scale)).astype(np.int8)
    norm, max_norm = float(np.linalg.norm(vector)), float(codes.max_norm[0])
    rounding_error = float(np.linalg.norm(vector - coarse * np.float32(scale)))
    error_per_scale = np.float32(0.5 * sqrt(len(vector)) * (norm + rounding_error))
    products = byte_products(codes.coarse, coarse, gathered_rows)
    products *= np.float32(scale)
    lowest = products - error_per_scale
    lowest *= scales
    if mask is not None:
        lowest[~mask] = -np.inf
    threshold = _kth_highest(lowest, k) - 2 * rounding_error * max_norm - _FLOAT_ERROR * norm * max_norm
    products += error_per_scale
    products *= scales
    rows = np.flatnonzero(products >= threshold)
    return rows if mask is None else rows[mask[rows]]


def byte_products(
    matrix: npt.NDArray[np.int8], vector: npt.NDArray[np.int8], rows: Rows | None
) -> npt.NDArray[np.float32]:
    """Return the products of a vector with all rows of a matrix, or with some."""
    multiply = load_multiplication()
    if rows is None:
        return multiply(matrix, vector)
    products = np.empty(len(rows), np.float32)
    # Gathered in one array, thousands of rows would take new memory from the system, which takes longer than copying.
    gathered = np.empty((min(len(rows), _GATHERED_ROWS), matrix.shape[1]), np.int8)
    for start in range(0, len(rows), _GATHERED_ROWS):
        block = rows[start : start + _GATHERED_ROWS]
        block_rows = np.take(matrix, block, axis=0, out=gathered[: len(block)], mode="clip")
        products[start : start + len(block)] = multiply(block_rows, vector)
    return products


@cache
def load_multiplication() -> Callable[[npt.NDArray[np.int8], npt.NDArray[np.int8]], npt.NDArray[np.float32]]:
    """Return the function that multiplies a matrix of bytes with a vector; numpy takes seven times as long."""
    try:
        with package_errors("simsimd"):
            import simsimd

            def multiply(matrix: npt.NDArray[np.int8], vector: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
                products = simsimd.cdist(vector.reshape(1, -1), matrix, metric="inner", out_dtype="float32")
                return cast("npt.NDArray[np.float32]", np.asarray(products)[0])

            multiply(np.ones((1, 8), np.int8), np.ones(8, np.int8))  # what cannot work fails here
    except PackageError:
        return multiply_blocks
    return multiply


def multiply_blocks(matrix: npt.NDArray[np.int8], vector: npt.NDArray[np.int8]) -> npt.NDArray[np.float32]:
    """Multiply a matrix of bytes with a vector, with numpy alone."""
    products = np.empty(len(matrix), np.float32)
    for start in range(0, len(matrix), _GATHERED_ROWS):
        # Sums of products of bytes are exact in double precision.
        products[start : start + _GATHERED_ROWS] = matrix[start : start + _GATHERED_ROWS].astype(np.float64) @ vector
    return products


def _kth_highest(values: npt.NDArray[np.float32], k: int) -> float:
    return float(kth_highest(values[values >= lower_bound(values, k)], k))
