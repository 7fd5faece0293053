"""Inverted lists in flat arrays: for each key the rows that contain it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

# Rows that are merged at a time: those of all keys would take a gigabyte for a million texts.
BLOCK_POSTINGS = 1_000_000


@dataclass(frozen=True, slots=True)
class Postings:
    """Inverted lists: the rows of `keys[i]` are `rows[starts[i]:starts[i + 1]]`, ascending."""

    keys: npt.NDArray[np.uint64]  # sorted, distinct
    starts: npt.NDArray[np.int64]  # one more element than keys
    rows: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint16]  # occurrences of the key in the row; empty where only presence is recorded

    def find_spans(self, keys: Sequence[int]) -> list[tuple[int, int]]:
        """Return the start and end of each key's list; the list of an unknown key is empty."""
        all_keys, starts, size = self.keys, self.starts, len(self.keys)
        # One search for all keys, then plain integers: a query has too few keys for array operations to pay.
        positions = all_keys.searchsorted(np.array(keys, np.uint64)).tolist()
        return [
            (starts.item(i), starts.item(i + 1)) if i < size and all_keys.item(i) == key else (0, 0)
            for i, key in zip(positions, keys, strict=True)
        ]

    def range_span(self, first: int, end: int) -> tuple[int, int]:
        """Return the start and end of the lists of all keys in a range."""
        low, high = np.searchsorted(self.keys, np.array((first, end), np.uint64)).tolist()
        return int(self.starts[low]), int(self.starts[high])


def build(keys: Sequence[npt.NDArray[np.uint64]], counts: Sequence[npt.NDArray[np.uint16]] | None = None) -> Postings:
    """Invert one array of distinct keys (and their counts) for each row."""
    flat = np.concatenate(keys) if keys else np.empty(0, np.uint64)
    rows = np.repeat(np.arange(len(keys), dtype=np.int32), [len(row) for row in keys])
    order = np.argsort(flat, kind="stable")
    flat = flat[order]
    first = np.flatnonzero(np.concatenate(([True], flat[1:] != flat[:-1]))) if len(flat) else np.empty(0, np.int64)
    flat_counts = np.concatenate(counts)[order] if counts else np.empty(0, np.uint16)
    return Postings(flat[first], np.append(first, len(flat)).astype(np.int64), rows[order], flat_counts)


class Merger:
    """Merges the lists of consecutive parts without the rows that are not kept, some keys at a time."""

    def __init__(
        self, parts: Sequence[Postings], sizes: Sequence[int], keep_masks: Sequence[npt.NDArray[np.bool_] | None]
    ) -> None:
        self._parts, self._keep_masks = parts, keep_masks
        self.has_counts = any(len(part.counts) for part in parts)
        self._new_rows: list[npt.NDArray[np.int32]] = []  # for each part the numbers of its rows in the whole
        base = 0
        for size, keep in zip(sizes, keep_masks, strict=True):
            numbers = np.arange(base, base + size) if keep is None else np.cumsum(keep) - 1 + base
            self._new_rows.append(numbers.astype(np.int32))
            base += size if keep is None else int(np.count_nonzero(keep))
        keys = np.unique(np.concatenate([part.keys for part in parts]))
        self._key_positions = [np.searchsorted(keys, part.keys) for part in parts]
        self._lengths = [_kept_lengths(part, keep) for part, keep in zip(parts, keep_masks, strict=True)]
        totals = np.zeros(len(keys), np.int64)
        for positions, lengths in zip(self._key_positions, self._lengths, strict=True):
            totals[positions] += lengths
        self._all_starts = np.concatenate(([0], np.cumsum(totals)))
        is_used = totals > 0
        self.keys: npt.NDArray[np.uint64] = keys[is_used]
        self.starts: npt.NDArray[np.int64] = np.append(self._all_starts[:-1][is_used], self._all_starts[-1])

    def rows(self) -> Iterator[npt.NDArray[np.int32]]:
        """Yield the rows of all keys in blocks."""
        return self._blocks(
            np.int32, [(part.rows, new_rows) for part, new_rows in zip(self._parts, self._new_rows, strict=True)]
        )

    def counts(self) -> Iterator[npt.NDArray[np.uint16]]:
        """Yield the counts of all keys in blocks; none if only presence is recorded."""
        return self._blocks(np.uint16, [(part.counts, None) for part in self._parts]) if self.has_counts else iter(())

    def _blocks(self, dtype: Any, sources: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any] | None]]) -> Iterator[Any]:
        starts = self._all_starts
        first, key_count = 0, len(starts) - 1
        while first < key_count:
            # At least one key, however long its list is.
            last = max(first + 1, int(np.searchsorted(starts, starts[first] + BLOCK_POSTINGS, side="right")) - 1)
            block = np.empty(starts[last] - starts[first], dtype)
            next_slots = starts[first:last] - starts[first]
            for index, (values, numbers) in enumerate(sources):
                low, high = np.searchsorted(self._key_positions[index], (first, last))
                self._fill(block, next_slots, index, slice(low, high), first, values, numbers)
            yield block
            first = last

    def _fill(
        self,
        block: npt.NDArray[Any],
        next_slots: npt.NDArray[np.int64],  # of each key of the block: where its next row belongs
        index: int,
        keys: slice,
        first: int,
        values: npt.NDArray[Any],
        numbers: npt.NDArray[Any] | None,
    ) -> None:
        """Copy the lists of some keys of a part into a block."""
        part, keep = self._parts[index], self._keep_masks[index]
        span = slice(int(part.starts[keys.start]), int(part.starts[keys.stop]))
        part_values = values[span]
        if keep is not None:
            part_values = part_values[keep[part.rows[span]]]
        if numbers is not None:
            part_values = numbers[part_values]
        positions, lengths = self._key_positions[index][keys] - first, self._lengths[index][keys]
        list_starts = np.cumsum(lengths) - lengths
        block[np.repeat(next_slots[positions] - list_starts, lengths) + np.arange(len(part_values))] = part_values
        next_slots[positions] += lengths


def merge(
    parts: Sequence[Postings], sizes: Sequence[int], keep_masks: Sequence[npt.NDArray[np.bool_] | None]
) -> Postings:
    """Merge the lists of consecutive parts, without the rows that are not kept."""
    if len(parts) == 1 and keep_masks[0] is None:
        return parts[0]
    merger = Merger(parts, sizes, keep_masks)
    size = int(merger.starts[-1])
    rows, counts = np.empty(size, np.int32), np.empty(size if merger.has_counts else 0, np.uint16)
    blocks: tuple[tuple[npt.NDArray[Any], Iterator[npt.NDArray[Any]]], ...]
    blocks = ((rows, merger.rows()), (counts, merger.counts()))
    for array, array_blocks in blocks:
        end = 0
        for block in array_blocks:
            array[end : end + len(block)] = block
            end += len(block)
    return Postings(merger.keys, merger.starts, rows, counts)


def _kept_lengths(part: Postings, keep: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.int64]:
    """Return the number of kept rows of each key's list."""
    lengths = np.diff(part.starts)
    if keep is None or not len(part.rows):
        return lengths
    kept_counts = np.add.reduceat(np.append(keep[part.rows], 0), part.starts[:-1]).astype(np.int64)
    kept_counts[lengths == 0] = 0
    return kept_counts
