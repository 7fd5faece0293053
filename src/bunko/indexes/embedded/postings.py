"""Inverted lists in flat arrays: for each key the rows that contain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


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


def build_presence(keys: npt.NDArray[np.uint64], rows: npt.NDArray[np.int32]) -> Postings:
    """Invert (key, row) occurrences without counts; the rows of a key must come in ascending order."""
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    if not len(keys):
        return build([])
    is_new_key = np.concatenate(([True], keys[1:] != keys[:-1]))
    is_distinct = is_new_key | np.concatenate(([True], rows[1:] != rows[:-1]))
    keys, rows, is_new_key = keys[is_distinct], rows[is_distinct], is_new_key[is_distinct]
    first = np.flatnonzero(is_new_key)
    return Postings(keys[first], np.append(first, len(keys)).astype(np.int64), rows, np.empty(0, np.uint16))


def merge(
    parts: Sequence[Postings], sizes: Sequence[int], keep_masks: Sequence[npt.NDArray[np.bool_] | None]
) -> Postings:
    """Merge the lists of consecutive parts, without the rows that are not kept."""
    if len(parts) == 1 and keep_masks[0] is None:
        return parts[0]
    kept_sizes = [
        size if keep is None else int(np.count_nonzero(keep)) for size, keep in zip(sizes, keep_masks, strict=True)
    ]
    bases = [0, *np.cumsum(kept_sizes).tolist()[:-1]]
    keys = np.unique(np.concatenate([part.keys for part in parts]))
    key_positions = [np.searchsorted(keys, part.keys) for part in parts]
    lengths_by_part = [_kept_lengths(part, keep) for part, keep in zip(parts, keep_masks, strict=True)]
    total = np.zeros(len(keys), np.int64)
    for positions, kept_lengths in zip(key_positions, lengths_by_part, strict=True):
        total[positions] += kept_lengths
    starts = np.concatenate(([0], np.cumsum(total)))
    out_rows = np.empty(starts[-1], np.int32)
    out_counts = np.empty(starts[-1] if any(len(part.counts) for part in parts) else 0, np.uint16)
    next_slots = starts[:-1].copy()
    # Parts are renumbered one after the other, so that the lists are never in memory three times.
    for part, keep, base, size, positions, kept_lengths in zip(
        parts, keep_masks, bases, sizes, key_positions, lengths_by_part, strict=True
    ):
        rows, counts = part.rows, part.counts
        new_rows = np.arange(base, base + size, dtype=np.int32)
        if keep is not None:
            new_rows = (np.cumsum(keep) - 1 + base).astype(np.int32)
            alive = keep[rows]
            rows, counts = rows[alive], counts[alive] if len(counts) else counts
        list_starts = np.concatenate(([0], np.cumsum(kept_lengths)))[:-1]
        target = np.repeat(next_slots[positions] - list_starts, kept_lengths) + np.arange(len(rows))
        out_rows[target] = new_rows[rows]
        if len(out_counts):
            out_counts[target] = counts
        next_slots[positions] += kept_lengths
    is_used = total > 0
    return Postings(keys[is_used], np.append(starts[:-1][is_used], starts[-1]), out_rows, out_counts)


def _kept_lengths(part: Postings, keep: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.int64]:
    """Return the number of kept rows of each key's list."""
    lengths = np.diff(part.starts)
    if keep is None or not len(part.rows):
        return lengths
    kept_counts = np.add.reduceat(np.append(keep[part.rows], 0), part.starts[:-1]).astype(np.int64)
    kept_counts[lengths == 0] = 0
    return kept_counts
