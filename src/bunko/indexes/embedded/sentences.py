"""Keep the vectors of the sentences of each row in one array, and find the nearest sentence of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.types import SENTENCE_SCALE
from bunko.types.records import SentenceMatch, StoredChunk

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.indexes.embedded.segment import Segment
    from bunko.indexes.embedded.snapshot import Snapshot
    from bunko.types import SentenceVectors

_BATCH_ROWS = 8192


class Sentences(NamedTuple):
    """The sentences of rows: those of row i are `vectors[starts[i]:starts[i + 1]]`."""

    starts: npt.NDArray[np.int64]
    vectors: SentenceVectors


def collect(rows: Sequence[StoredChunk], dimension: int) -> Sentences:
    """Return the sentences of chunks; those of another dimension are left out."""
    vectors = [
        row.sentences
        if row.sentences is not None and row.sentences.shape[1] == dimension
        else np.empty((0, dimension), np.int8)
        for row in rows
    ]
    starts = np.cumsum([0, *map(len, vectors)], dtype=np.int64)
    return Sentences(starts, np.concatenate(vectors) if vectors else np.empty((0, dimension), np.int8))


def no_sentences(row_count: int, dimension: int) -> Sentences:
    """Return the sentences of rows that have none."""
    return Sentences(np.zeros(row_count + 1, np.int64), np.empty((0, dimension), np.int8))


def merged_starts(segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None]) -> npt.NDArray[np.int64]:
    """Return the starts of the sentences of each row that is alive, if those of all segments follow each other."""
    counts = [np.diff(segment.sentences.starts) for segment in segments]
    counts = [values if mask is None else values[mask] for values, mask in zip(counts, alive, strict=True)]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts), dtype=np.int64)])


def alive_batches(
    segments: Sequence[Segment], alive: Sequence[npt.NDArray[np.bool_] | None]
) -> Iterator[SentenceVectors]:
    """Yield the sentences of the rows that are alive in batches."""
    for segment, mask in zip(segments, alive, strict=True):
        starts, vectors = segment.sentences
        for first in range(0, len(segment), _BATCH_ROWS):
            last = min(first + _BATCH_ROWS, len(segment))
            batch = vectors[starts[first] : starts[last]]
            yield batch if mask is None else batch[np.repeat(mask[first:last], np.diff(starts[first : last + 1]))]


def best_sentences(
    snapshot: Snapshot, vector: npt.NDArray[np.float32], rows: Sequence[int]
) -> list[SentenceMatch | None]:
    """Return for each row its sentence with the highest cosine; None if it has none of this embedder."""
    if not rows:
        return []
    matches: list[SentenceMatch | None] = [None] * len(rows)
    if len(snapshot.views) == 1:
        _add_matches(matches, range(len(rows)), snapshot.views[0].segment, np.array(rows, np.intp), vector)
        return matches
    for view_index, selected, positions in snapshot.split_by_segment(rows):
        _add_matches(matches, selected.tolist(), snapshot.views[view_index].segment, positions, vector)
    return matches


def _add_matches(
    matches: list[SentenceMatch | None],
    indexes: Sequence[int],
    segment: Segment,
    rows: npt.NDArray[np.intp],
    vector: npt.NDArray[np.float32],
) -> None:
    """Find the best sentence of rows of one segment; `indexes` say where their matches belong."""
    starts, vectors = segment.sentences
    if vectors.shape[1] != len(vector):
        return
    first = starts.take(rows)
    counts = starts.take(rows + 1) - first
    if not counts.all():
        has_sentences = counts > 0
        indexes = [index for index, has_any in zip(indexes, has_sentences.tolist(), strict=True) if has_any]
        first, counts = first[has_sentences], counts[has_sentences]
    if not len(counts):
        return
    begins = counts.cumsum() - counts
    positions = (first - begins).repeat(counts)
    positions += np.arange(len(positions))
    cosines = vectors.take(positions, axis=0).astype(np.float32) @ (vector / np.float32(SENTENCE_SCALE))
    best = np.maximum.reduceat(cosines, begins)
    # The first of equal ones, so that the answer does not depend on how rows are spread over segments.
    hits = (cosines == best.repeat(counts)).nonzero()[0]
    if len(hits) > len(best):
        hits = hits[hits.searchsorted(begins)]
    # Rounded to bytes, a vector is a little longer or shorter than 1.
    best_matches = map(SentenceMatch, np.minimum(best, 1.0).tolist(), (hits - begins).tolist())
    if len(best) == len(matches):
        matches[:] = best_matches
    else:
        for index, match in zip(indexes, best_matches, strict=True):
            matches[index] = match
