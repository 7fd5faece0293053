"""Segments and what has died in them in, one state of an index out: what it holds and the statistics over it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunko.indexes.embedded.segment import Segment

if TYPE_CHECKING:
    import numpy.typing as npt


class Ranking(NamedTuple):
    """Rows and their scores, best first."""

    rows: Sequence[int]
    scores: Sequence[float]


EMPTY_RANKING = Ranking((), ())


@dataclass(slots=True)
class SegmentView:
    """A segment, and which of its rows are still true."""

    segment: Segment
    alive: npt.NDArray[np.bool_] | None = None  # None: all of them
    _norms: dict[tuple[float, float, float], npt.NDArray[np.float32]] = field(default_factory=dict)

    def size(self) -> int:
        """Return how many rows are alive."""
        return len(self.segment) if self.alive is None else int(np.count_nonzero(self.alive))

    def term_count(self) -> int:
        """Return the number of terms in the rows that are alive."""
        lengths = self.segment.lengths
        return int(lengths.sum() if self.alive is None else lengths[self.alive].sum())

    def norms(self, k1: float, b: float, average_length: float) -> npt.NDArray[np.float32]:
        """Return BM25's length term for each row; k1 and b are free at query time, so it is kept for a few."""
        wanted = (k1, b, average_length)
        if wanted not in self._norms:
            if len(self._norms) >= 4:
                self._norms.clear()
            self._norms[wanted] = (k1 * (1 - b + b * self.segment.lengths / average_length)).astype(np.float32)
        return self._norms[wanted]


class Snapshot:
    """One state of an index; it never changes, so that a search sees one truth from start to end.

    A row's number counts through all parts.
    """

    def __init__(self, views: Sequence[SegmentView], generation: int) -> None:
        self.views = [part for part in views if len(part.segment)]
        self.generation = generation
        self.size = sum(part.size() for part in self.views)
        self.average_length = max(1.0, sum(part.term_count() for part in self.views) / max(1, self.size))
        self.row_offsets = [0]
        for part in self.views[:-1]:
            self.row_offsets.append(self.row_offsets[-1] + len(part.segment))
        self.last_lookup: Any = None  # what `bm25` looked up last; both arms of a search ask for it

    def masks(self, document_ids: npt.NDArray[np.int64] | None) -> list[npt.NDArray[np.bool_] | None]:
        """Return for each part which rows a search may return: alive, and of the documents given."""
        if document_ids is None:
            return [part.alive for part in self.views]
        found: list[npt.NDArray[np.bool_] | None] = []
        for part in self.views:
            wanted = np.isin(part.segment.document_ids, document_ids)
            found.append(wanted if part.alive is None else wanted & part.alive)
        return found

    def locate(self, row: int) -> tuple[int, int]:
        """Return the part a row stands in, and its number there."""
        part = bisect_right(self.row_offsets, row) - 1
        return part, row - self.row_offsets[part]

    def chunk_id(self, row: int) -> int:
        """Return the chunk of a row."""
        part, own = self.locate(row)
        return int(self.views[part].segment.chunk_ids[own])

    def document_id(self, row: int) -> int:
        """Return the document of a row."""
        part, own = self.locate(row)
        return int(self.views[part].segment.document_ids[own])

    def order(self, row: int) -> int:
        """Return what decides between equal scores."""
        part, own = self.locate(row)
        return int(self.views[part].segment.order[own])

    def alive_rows(self) -> npt.NDArray[np.int64]:
        """Return all rows that are alive."""
        found = [
            (np.arange(len(part.segment)) if part.alive is None else np.flatnonzero(part.alive)) + first
            for part, first in zip(self.views, self.row_offsets, strict=True)
        ]
        return np.concatenate(found) if found else np.empty(0, np.int64)


class TopK:
    """Collects scored rows from all parts and gives the k best."""

    def __init__(self, snapshot: Snapshot, k: int) -> None:
        self._snapshot, self._k = snapshot, k
        self._scored_rows: list[tuple[float, int, int]] = []

    def add(self, view_index: int, rows: npt.NDArray[np.intp] | None, scores: npt.NDArray[np.float32]) -> None:
        """Take some of a part's rows, or all of them; only the k best, and what ties with the last, are looked at."""
        if rows is None or len(rows) > self._k:
            least = lower_bound(scores, self._k) if len(scores) > self._k else scores.min(initial=np.inf)
            kept = np.flatnonzero(scores >= least)
            rows, scores = kept if rows is None else rows[kept], scores[kept]
            if len(rows) > self._k:
                least = np.partition(scores, len(rows) - self._k)[len(rows) - self._k]
                kept = np.flatnonzero(scores >= least)
                rows, scores = rows[kept], scores[kept]
        first = self._snapshot.row_offsets[view_index]
        orders = self._snapshot.views[view_index].segment.order[rows].tolist()
        self._scored_rows += [
            (-score, order, row + first)
            for score, order, row in zip(scores.tolist(), orders, rows.tolist(), strict=True)
        ]

    def ranking(self) -> Ranking:
        """Return the k best, equal scores in an order that does not depend on how the index came about."""
        found = sorted(self._scored_rows)[: self._k]
        return Ranking([row for _, _, row in found], [-score for score, _, _ in found])


_GROUP_SIZE = 32


def lower_bound(scores: npt.NDArray[np.float32], k: int) -> np.float32:
    """Return a score that at least k of more than k rows reach, near the k-th best.

    The k-th best of the maxima of groups is such a score, and far cheaper to find than the k-th best of all.
    """
    size = len(scores)
    groups = size // _GROUP_SIZE
    if groups > 2 * k:
        scores = scores[: groups * _GROUP_SIZE].reshape(_GROUP_SIZE, groups).max(axis=0)
        size = groups
    bound: np.float32 = np.partition(scores, size - k)[size - k]
    return bound
