"""Compute the shapes of small pictures; templates draw them as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.library.status import LengthDistribution


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle and what it stands for."""

    x: float
    y: float
    width: float
    height: float
    low: int
    high: int
    count: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """Bars above a line, and where a value lies on it."""

    width: int
    height: int
    bars: Sequence[Bar]
    median_x: float


def length_histogram(lengths: LengthDistribution, *, width: int = 240, height: int = 56) -> Histogram:
    """Return the picture of a distribution of lengths."""
    largest = max(length_bin.count for length_bin in lengths.bins)
    step = width / len(lengths.bins)
    bars = []
    for index, length_bin in enumerate(lengths.bins):
        # A single chunk among thousands is still to be seen.
        bar_height = max(1.5, length_bin.count / largest * height) if length_bin.count else 0.0
        bars.append(
            Bar(
                round(index * step + 0.5, 1), round(height - bar_height, 1), round(step - 1, 1), round(bar_height, 1),
                length_bin.low, length_bin.high, length_bin.count,
            )
        )  # fmt: skip
    first, last = lengths.bins[0].low, lengths.bins[-1].high + 1
    return Histogram(width, height, bars, round((lengths.median - first) / (last - first) * width, 1))
