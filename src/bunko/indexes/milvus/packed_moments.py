"""Store the moments of vectors in few bytes: the number, the mean and the covariance, in single precision."""

from __future__ import annotations

import numpy as np

from bunko.indexes.moments import Moments

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
    dimension = dimension_of(data)
    mean, covariance = numbers[:dimension], numbers[dimension:].reshape(dimension, dimension)
    return Moments(count, mean * count, (covariance + np.outer(mean, mean)) * count)


def dimension_of(data: bytes) -> int:
    """Return the dimension of the vectors, 0 if there are none."""
    floats = max(len(data) - _COUNT_BYTES, 0) // _FLOAT_BYTES  # dimension + dimension²
    return int((np.sqrt(1 + 4 * floats) - 1) / 2)
