"""Keep the mean and covariance of vectors, from which the mean and spread of all cosines follow without a scan.

The mean of q·v over all vectors v is q·μ, and its variance is qᵀΣq.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Moments:
    """The number of vectors, their sum, and the sum of their products with themselves."""

    count: int
    total: npt.NDArray[np.float64]
    products: npt.NDArray[np.float64]

    @classmethod
    def of(cls, vectors: npt.NDArray[np.float32]) -> Moments:
        """Return the moments of vectors, one in each row."""
        dimension = vectors.shape[1]
        total, products = np.zeros(dimension), np.zeros((dimension, dimension))
        for start in range(0, len(vectors), _BATCH_ROWS):
            batch = np.asarray(vectors[start : start + _BATCH_ROWS])
            total += batch.sum(axis=0, dtype=np.float64)
            products += batch.T @ batch
        return cls(len(vectors), total, products)

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.count + other.count, self.total + other.total, self.products + other.products)

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.count - other.count, self.total - other.total, self.products - other.products)

    def mean_and_spread(self, vector: npt.NDArray[np.float32]) -> tuple[float, float]:
        """Return the mean and the standard deviation of the products of a vector with all others, to 4 decimals."""
        return mean_and_spread(self.count, *self.sums(vector))

    def sums(self, vector: npt.NDArray[np.float32]) -> tuple[float, float]:
        """Return the sum of the products of a vector with all others, and the sum of their squares."""
        query = vector.astype(np.float64)
        return float(self.total @ query), float(query @ self.products @ query)


def mean_and_spread(count: int, total: float, squares: float) -> tuple[float, float]:
    """Return the mean and the standard deviation of values from their count, their sum and the sum of their squares.

    Rounded to 4 decimals, so that they do not depend on how rows are spread over segments.
    """
    mean = total / max(count, 1)
    variance = squares / max(count, 1) - mean * mean
    return round(mean, 4), round(sqrt(max(variance, 0.0)), 4)
