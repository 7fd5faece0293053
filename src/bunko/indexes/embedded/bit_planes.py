"""Estimate which rows are nearest by two bits of each value, added for 64 rows at a time.

A value of a row is one of four levels. Each bit of the levels of a dimension is a plane: a bit for every row. A query
weighs the planes by powers of two, and they are added as a processor adds bits, with `and`, `or` and `xor`, whose words
hold 64 rows. Planes that a query has no use for are never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import Vectors

    Words = npt.NDArray[np.uint64]

# Levels this many standard deviations apart are nearest to normally distributed values.
_LEVEL_STEP = 0.98
# Weights are rounded to powers of two times this much of their mean, and lower ones to 0: with less, sums take longer
# than the comparisons by bytes that they save.
_UNIT = 2.0
# Words added at a time: these and their sums fit the cache.
_BLOCK_WORDS = 16_384


def empty_planes(row_count: int, dimension: int) -> Words:
    """Return the planes of rows, without their bits: the higher bits of all dimensions, and then the lower ones."""
    return np.zeros((2 * dimension, -(-row_count // 64)), np.uint64)


def write_rows(
    planes: Words, start: int, vectors: Vectors, mean: npt.NDArray[np.float32], deviations: npt.NDArray[np.float32]
) -> None:
    """Write the bits of rows from the row `start` on, whose bits are not set."""
    dimension, skipped = vectors.shape[1], start % 8
    distances = vectors - mean
    bits = np.zeros((skipped + len(vectors), 2 * dimension), np.bool_)
    is_above, is_outer = bits[skipped:, :dimension], bits[skipped:, dimension:]
    np.greater(distances, 0, out=is_above)
    np.abs(distances, out=distances)
    np.equal(distances > _LEVEL_STEP * deviations, is_above, out=is_outer)
    packed = np.packbits(bits, axis=0, bitorder="little")
    planes.view(np.uint8)[:, start // 8 : start // 8 + len(packed)] |= packed.T


def likely_nearest(
    planes: Words,
    deviations: npt.NDArray[np.float32],
    vector: npt.NDArray[np.float32],
    count: int,
    row_count: int,
    mask: npt.NDArray[np.bool_] | None,
) -> npt.NDArray[np.intp]:
    """Return about `count` of the allowed rows, those whose levels have the highest products with a vector."""
    chosen = _highest(_weighted_sums(planes, deviations, vector), count, _allowed(row_count, mask)).view(np.uint8)
    places = (chosen != 0).nonzero()[0]
    bits = np.unpackbits(chosen[places], bitorder="little").view(np.bool_).nonzero()[0]
    rows: npt.NDArray[np.intp] = places[bits >> 3] * 8 + (bits & 7)
    return rows


def _weighted_sums(planes: Words, deviations: npt.NDArray[np.float32], vector: npt.NDArray[np.float32]) -> list[Words]:
    """Return the bits of each row's product with a vector, plus a constant: the lowest bits first."""
    weights = np.abs(vector) * deviations
    unit = max(_UNIT * float(np.sqrt(np.mean(weights * weights))), 1e-30)
    places = np.log2(np.maximum(weights / unit, 1e-9)).round().astype(np.intp)
    places = np.concatenate([places + 1, places])  # the higher bit of a level counts twice as much
    used = np.flatnonzero(places >= 0)
    used = used[np.argsort(places[used], kind="stable")]
    terms = list(zip(used.tolist(), places[used].tolist(), np.tile(vector < 0, 2)[used].tolist(), strict=True))
    blocks = [_add(planes[:, start : start + _BLOCK_WORDS], terms) for start in range(0, planes.shape[1], _BLOCK_WORDS)]
    return blocks[0] if len(blocks) == 1 else [np.concatenate(bits) for bits in zip(*blocks, strict=True)]


def _add(planes: Words, terms: Sequence[tuple[int, int, bool]]) -> list[Words]:
    """Return the bits of the sums of planes: of each plane, the place where its bit counts, and if it is subtracted."""
    added, subtracted = _Adder(), _Adder()
    for plane, place, is_subtracted in terms:
        (subtracted if is_subtracted else added).add(planes[plane], place)
    # To subtract a number is to add its complement, but for a constant.
    for place, words in subtracted.sums():
        added.add(~words, place)
    return [words for _, words in added.sums()]


class _Adder:
    """Adds bits of 64 rows in each word, as three bits of a place become one there and one in the next place."""

    def __init__(self) -> None:
        self._waiting: list[list[Words]] = []  # by place, at most two

    def add(self, words: Words, place: int) -> None:
        """Add bits at a place."""
        while len(self._waiting) <= place:
            self._waiting.append([])
        waiting = self._waiting[place]
        if len(waiting) < 2:
            waiting.append(words)
            return
        first, second = waiting
        differs = first ^ second
        waiting[:] = [differs ^ words]
        carried = first & second
        differs &= words
        carried |= differs
        self.add(carried, place + 1)

    def sums(self) -> list[tuple[int, Words]]:
        """Return the bits of the sums with their places, the lowest first."""
        for place, waiting in enumerate(self._waiting):  # which becomes longer meanwhile
            if len(waiting) == 2:
                first, second = waiting
                waiting[:] = [first ^ second]
                self.add(first & second, place + 1)
        return [(place, waiting[0]) for place, waiting in enumerate(self._waiting) if waiting]


def _highest(sums: Sequence[Words], count: int, allowed: Words) -> Words:
    """Return about `count` of the allowed rows, those with the highest sums; with some equal to the last of them."""
    chosen, equal, missing = np.zeros_like(allowed), allowed, count
    equal_count = _count(equal)
    for words in reversed(sums):
        if equal_count <= missing + count // 8:
            break
        higher = equal & words
        higher_count = _count(higher)
        if higher_count <= missing:
            chosen |= higher
            equal = equal ^ higher
            missing, equal_count = missing - higher_count, equal_count - higher_count
        else:
            equal, equal_count = higher, higher_count
    return chosen | equal


def _count(words: Words) -> int:
    return int(np.bitwise_count(words).sum(dtype=np.intp))


def _allowed(row_count: int, mask: npt.NDArray[np.bool_] | None) -> Words:
    """Return a bit for each row that is allowed; those after the last row are not."""
    if mask is None:
        words = np.full(-(-row_count // 64), np.iinfo(np.uint64).max, np.uint64)
        words[-1:] = _to_words(np.ones(row_count - 64 * (len(words) - 1), np.bool_))
        return words
    return _to_words(mask)


def _to_words(bits: npt.NDArray[np.bool_]) -> Words:
    words = np.zeros(-(-len(bits) // 64), np.uint64)
    packed = np.packbits(bits, bitorder="little")
    words.view(np.uint8)[: len(packed)] = packed
    return words
