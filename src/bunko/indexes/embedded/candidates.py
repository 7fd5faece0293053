"""Find the rows of a large segment that may be nearest to a vector, by the codes of its rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import isnan, sqrt
from typing import TYPE_CHECKING, cast

import numpy as np

from bunko.errors import PackageError
from bunko.indexes.embedded.bit_planes import likely_nearest
from bunko.indexes.embedded.codes import Codes
from bunko.indexes.embedded.snapshot import kth_highest, lower_bound
from bunko.runtime.package_errors import package_errors

if TYPE_CHECKING:
    import numpy.typing as npt

    Rows = npt.NDArray[np.intp]

# These find 99 % of the hundred nearest of 500,000 texts.
_BYTE_SHARE = 40  # one row in so many, the likely nearest, is compared by bytes
MIN_BYTE_FACTOR = 32  # at least so many for each row that is wanted
# Estimates take as long as comparing one row in so many by bytes.
_WORTH_ESTIMATING = 4
_GATHERED_ROWS = 512  # whose bytes are compared at a time
# If fewer rows than one in so many are allowed, their codes are gathered instead of scanning all.
_GATHER_SHARE = 8
# How much sums of floats may be off, relative to the largest possible product.
_FLOAT_ERROR = 1e-5


def candidates(codes: Codes, vector: npt.NDArray[np.float32], k: int, mask: npt.NDArray[np.bool_] | None) -> Rows:
    """Return rows among which the k allowed ones with the highest product with a vector are.

    Where there are bit planes and many rows are allowed, a few of them may be missing.
    """
    row_count = len(codes.coarse)
    allowed_count = row_count if mask is None else int(np.count_nonzero(mask))
    if allowed_count <= k:
        return np.arange(row_count) if mask is None else np.flatnonzero(mask)
    count = max(allowed_count // _BYTE_SHARE, MIN_BYTE_FACTOR * k)
    if len(codes.planes) and count * _WORTH_ESTIMATING < row_count and allowed_count > row_count // _GATHER_SHARE:
        rows = likely_nearest(codes.planes, codes.deviations(), vector, count, row_count, mask)
    elif mask is not None and allowed_count < row_count // _GATHER_SHARE:
        rows = np.flatnonzero(mask)
    else:
        return _highest_by_bytes(codes, vector, k, mask)
    return rows[_highest_by_bytes(codes, vector, k, None, rows)]


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
    if isnan(threshold):  # of a damaged file: no row would be left
        raise ValueError("the index has vectors that are not numbers")
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
