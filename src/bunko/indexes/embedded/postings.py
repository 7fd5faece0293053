"""Keys of rows in, for each key the rows that hold it out: one lane's inverted lists, in flat arrays."""

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
    starts: npt.NDArray[np.int64]  # one more than keys
    rows: npt.NDArray[np.int32]
    counts: npt.NDArray[np.uint16]  # how often the key occurs in the row; empty where presence is all that counts

    def find_spans(self, keys: Sequence[int]) -> list[tuple[int, int]]:
        """Return where each key's list begins and ends; an unknown key's is empty."""
        own, starts, size = self.keys, self.starts, len(self.keys)
        # One search for all keys, then plain numbers: an array operation costs more than a query has keys.
        at = own.searchsorted(np.array(keys, np.uint64)).tolist()
        return [
            (starts.item(i), starts.item(i + 1)) if i < size and own.item(i) == key else (0, 0)
            for i, key in zip(at, keys, strict=True)
        ]

    def range_span(self, first: int, end: int) -> tuple[int, int]:
        """Return where the lists of all keys in a range begin and end."""
        low, high = np.searchsorted(self.keys, np.array((first, end), np.uint64)).tolist()
        return int(self.starts[low]), int(self.starts[high])


def build(keys: Sequence[npt.NDArray[np.uint64]], counts: Sequence[npt.NDArray[np.uint16]] | None = None) -> Postings:
    """Invert one array of distinct keys (and their counts) for each row."""
    flat = np.concatenate(keys) if keys else np.empty(0, np.uint64)
    rows = np.repeat(np.arange(len(keys), dtype=np.int32), [len(row) for row in keys])
    order = np.argsort(flat, kind="stable")
    flat = flat[order]
    first = np.flatnonzero(np.concatenate(([True], flat[1:] != flat[:-1]))) if len(flat) else np.empty(0, np.int64)
    many = np.concatenate(counts)[order] if counts else np.empty(0, np.uint16)
    return Postings(flat[first], np.append(first, len(flat)).astype(np.int64), rows[order], many)


def build_presence(keys: npt.NDArray[np.uint64], rows: npt.NDArray[np.int32]) -> Postings:
    """Invert occurrences, of which each row's presence is all that counts; a key's rows come in ascending order."""
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    if not len(keys):
        return build([])
    fresh = np.concatenate(([True], keys[1:] != keys[:-1]))
    kept = fresh | np.concatenate(([True], rows[1:] != rows[:-1]))
    keys, rows, fresh = keys[kept], rows[kept], fresh[kept]
    first = np.flatnonzero(fresh)
    return Postings(keys[first], np.append(first, len(keys)).astype(np.int64), rows, np.empty(0, np.uint16))


def merge(
    parts: Sequence[Postings], sizes: Sequence[int], keep_masks: Sequence[npt.NDArray[np.bool_] | None]
) -> Postings:
    """Join the lists of parts that stand one after the other, leaving out the rows that are not kept."""
    if len(parts) == 1 and keep_masks[0] is None:
        return parts[0]
    left = [size if keep is None else int(np.count_nonzero(keep)) for size, keep in zip(sizes, keep_masks, strict=True)]
    bases = [0, *np.cumsum(left).tolist()[:-1]]
    keys = np.unique(np.concatenate([part.keys for part in parts]))
    at = [np.searchsorted(keys, part.keys) for part in parts]
    lengths = [_kept_lengths(part, keep) for part, keep in zip(parts, keep_masks, strict=True)]
    total = np.zeros(len(keys), np.int64)
    for where, many in zip(at, lengths, strict=True):
        total[where] += many
    starts = np.concatenate(([0], np.cumsum(total)))
    out_rows = np.empty(starts[-1], np.int32)
    out_counts = np.empty(starts[-1] if any(len(p.counts) for p in parts) else 0, np.uint16)
    fill = starts[:-1].copy()
    # One part after the other is renamed, so that the lists are never in memory a third time.
    for part, keep, base, size, where, many in zip(parts, keep_masks, bases, sizes, at, lengths, strict=True):
        rows, counts = part.rows, part.counts
        number = np.arange(base, base + size, dtype=np.int32)
        if keep is not None:
            number = (np.cumsum(keep) - 1 + base).astype(np.int32)
            alive = keep[rows]
            rows, counts = rows[alive], counts[alive] if len(counts) else counts
        own = np.concatenate(([0], np.cumsum(many)))[:-1]
        target = np.repeat(fill[where] - own, many) + np.arange(len(rows))
        out_rows[target] = number[rows]
        if len(out_counts):
            out_counts[target] = counts
        fill[where] += many
    used = total > 0
    return Postings(keys[used], np.append(starts[:-1][used], starts[-1]), out_rows, out_counts)


def _kept_lengths(part: Postings, keep: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.int64]:
    """Return how many rows of each key's list are kept."""
    lengths = np.diff(part.starts)
    if keep is None or not len(part.rows):
        return lengths
    left = np.add.reduceat(np.append(keep[part.rows], 0), part.starts[:-1]).astype(np.int64)
    left[lengths == 0] = 0
    return left
