"""Keep the subwords of the sentences of each row in one array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.types.records import StoredChunk

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.indexes.embedded.segment import Segment
    from bunko.types import SentenceSubwords

_BATCH_ROWS = 8192


class Sentences(NamedTuple):
    """The sentences of rows: those of row i are `subwords[starts[i]:starts[i + 1]]`."""

    starts: npt.NDArray[np.int64]
    subwords: SentenceSubwords


def collect(rows: Sequence[StoredChunk], dimension: int) -> Sentences:
    """Return the sentences of chunks; those of a chunk with a vector of another dimension are left out."""
    none = np.empty(0, np.uint16)
    subwords = [
        row.sentences if row.sentences is not None and row.vector is not None and len(row.vector) == dimension else none
        for row in rows
    ]
    return Sentences(np.cumsum([0, *map(len, subwords)], dtype=np.int64), np.concatenate([none, *subwords]))


def fit_together(sentences: Sentences) -> bool:
    """Return whether the subwords of each row are what `text.sentence_codec` packs."""
    starts, subwords = sentences
    begins, ends = starts[:-1][np.diff(starts) > 0], starts[1:][np.diff(starts) > 0]
    if not len(begins):
        return True
    counts = subwords[begins].astype(np.int64)
    if not (counts > 0).all() or (begins + 1 + 2 * counts >= ends).any():
        return False
    firsts = np.cumsum(counts) - counts
    sizes = subwords[np.repeat(begins + 1 - firsts, counts) + np.arange(int(counts.sum()))].astype(np.int64)
    totals = np.add.reduceat(sizes, firsts)
    return bool((sizes > 0).all() and (begins + 1 + 2 * counts + totals == ends).all())


def no_sentences(row_count: int) -> Sentences:
    """Return the sentences of rows that have none."""
    return Sentences(np.zeros(row_count + 1, np.int64), np.empty(0, np.uint16))


def merged_starts(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None]) -> npt.NDArray[np.int64]:
    """Return the starts of the sentences of each row that is alive, if those of all segments follow each other."""
    counts = [np.diff(segment.sentences.starts) for segment in segments]
    counts = [values if mask is None else values[mask] for values, mask in zip(counts, alive, strict=True)]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts), dtype=np.int64)])


def alive_batches(
    segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None]
) -> Iterator[SentenceSubwords]:
    """Yield the sentences of the rows that are alive in batches."""
    for segment, mask in zip(segments, alive, strict=True):
        starts, subwords = segment.sentences
        for first in range(0, len(segment), _BATCH_ROWS):
            last = min(first + _BATCH_ROWS, len(segment))
            batch = subwords[starts[first] : starts[last]]
            yield batch if mask is None else batch[np.repeat(mask[first:last], np.diff(starts[first : last + 1]))]
