"""One immutable state of an index: its segments, which of their rows are alive, and statistics over them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bunko.indexes.embedded.codes import alive_moments, no_codes
from bunko.indexes.embedded.segment import Segment
from bunko.indexes.embedded.sentences import no_sentences
from bunko.indexes.moments import Moments
from bunko.types.records import Ranking

if TYPE_CHECKING:
    import numpy.typing as npt

# A table with a place for each id between the first and the last may have so many places for each of them.
_MAX_PLACES = 16


@dataclass(slots=True)
class SegmentView:
    """A segment and which of its rows are still alive."""

    segment: Segment
    alive: npt.NDArray[np.bool_] | None = None  # None: all of them
    _norms: dict[tuple[float, float, float], npt.NDArray[np.float32]] = field(default_factory=dict)
    _id_order: npt.NDArray[np.intp] | None = None
    _moments: Moments | None = None

    def without_vectors(self) -> SegmentView:
        """Return the same rows without their vectors."""
        segment = self.segment
        empty = replace(
            segment,
            vectors=segment.vectors[:, :0],
            codes=no_codes(0),
            sentences=no_sentences(len(segment)),
        )
        return SegmentView(empty, self.alive)

    def without_planes(self) -> SegmentView:
        """Return the same rows without the bit planes of their vectors, so that all of them are compared."""
        codes = self.segment.codes
        return SegmentView(replace(self.segment, codes=codes._replace(planes=codes.planes[:0])), self.alive)

    def without_rows(self, is_removed: npt.NDArray[np.bool_]) -> SegmentView:
        """Return the same segment after these rows were removed."""
        alive = ~is_removed if self.alive is None else self.alive & ~is_removed
        view = SegmentView(self.segment, alive)
        if self._moments is not None:
            newly_removed = is_removed if self.alive is None else self.alive & is_removed
            view._moments = self._moments - Moments.of(self.segment.vectors[newly_removed])
        return view

    def moments(self) -> Moments:
        """Return the moments of the vectors that are alive; computed once."""
        if self._moments is None:
            self._moments = alive_moments(self.segment.vectors, self.segment.codes, self.alive)
        return self._moments

    def size(self) -> int:
        """Return how many rows are alive."""
        return len(self.segment) if self.alive is None else int(np.count_nonzero(self.alive))

    def alive_rows(self) -> npt.NDArray[np.intp]:
        """Return the positions of the rows that are alive."""
        return np.arange(len(self.segment)) if self.alive is None else np.flatnonzero(self.alive)

    def term_count(self) -> int:
        """Return the number of terms in the rows that are alive."""
        lengths = self.segment.lengths
        return int(lengths.sum() if self.alive is None else lengths[self.alive].sum())

    def norms(self, k1: float, b: float, average_length: float) -> npt.NDArray[np.float32]:
        """Return BM25's length term of each row, cached for a few values of k1 and b, which each query may set."""
        key = (k1, b, average_length)
        norms = self._norms.get(key)
        if norms is None:
            if len(self._norms) >= 4:
                self._norms.clear()
            norms = (k1 * (1 - b + b * self.segment.lengths / average_length)).astype(np.float32)
            self._norms[key] = norms
        return norms

    def id_order(self) -> npt.NDArray[np.intp]:
        """Return the positions of the rows in the order of their chunk ids; sorted once."""
        if self._id_order is None:
            self._id_order = np.argsort(self.segment.chunk_ids, kind="stable")
        return self._id_order

    def positions_of(self, chunk_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """Return the position of each chunk, -1 if it is not alive here."""
        order = self.id_order()
        positions = order[np.minimum(self.segment.chunk_ids.searchsorted(chunk_ids, sorter=order), len(order) - 1)]
        is_here = self.segment.chunk_ids[positions] == chunk_ids
        if self.alive is not None:
            is_here &= self.alive[positions]
        return np.where(is_here, positions, -1)


class Snapshot:
    """An immutable state of an index, so that a search sees the same rows from start to end.

    Rows are numbered consecutively over all segments.
    """

    def __init__(self, views: Sequence[SegmentView], generation: int) -> None:
        self.views = [view for view in views if len(view.segment)]
        self.generation = generation
        self.size = sum(view.size() for view in self.views)
        self.average_length = max(1.0, sum(view.term_count() for view in self.views) / max(1, self.size))
        self.row_offsets: list[int] = []  # the number of the first row of each segment
        next_row = 0
        for view in self.views:
            self.row_offsets.append(next_row)
            next_row += len(view.segment)
        self.last_lookup: Any = None  # the last lookup of `bm25`, which both arms of a search need

    def masks(self, document_ids: npt.NDArray[np.int64] | None) -> list[npt.NDArray[np.bool_] | None]:
        """Return for each segment which rows a search may return: those alive, and of these documents if given."""
        if document_ids is None:
            return [view.alive for view in self.views]
        masks: list[npt.NDArray[np.bool_] | None] = []
        for view in self.views:
            is_selected = are_among(view.segment.document_ids, document_ids)
            masks.append(is_selected if view.alive is None else is_selected & view.alive)
        return masks

    def locate(self, row: int) -> tuple[int, int]:
        """Return the index of a row's segment and the row's position in it."""
        view_index = bisect_right(self.row_offsets, row) - 1
        return view_index, row - self.row_offsets[view_index]

    def split_by_segment(self, rows: Sequence[int]) -> Iterator[tuple[int, npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
        """Yield the index of each segment that has some of the rows, their indexes in `rows`, and their positions."""
        row_array = np.array(rows, np.intp)
        if len(self.views) == 1 and len(rows):
            yield 0, np.arange(len(rows)), row_array
            return
        view_indexes = np.searchsorted(self.row_offsets, row_array, side="right") - 1
        for view_index in sorted(set(view_indexes.tolist())):  # np.unique loads numpy.ma
            selected = np.flatnonzero(view_indexes == view_index)
            yield view_index, selected, row_array[selected] - self.row_offsets[view_index]

    def alive_rows(self) -> npt.NDArray[np.int64]:
        """Return all rows that are alive."""
        row_arrays = [view.alive_rows() + offset for view, offset in zip(self.views, self.row_offsets, strict=True)]
        return np.concatenate(row_arrays) if row_arrays else np.empty(0, np.int64)


class TopK:
    """Collects scored rows of all segments and returns the k best."""

    def __init__(self, snapshot: Snapshot, k: int) -> None:
        self._snapshot, self._k = snapshot, k
        self._parts: list[tuple[npt.NDArray[Any], npt.NDArray[np.uint64], npt.NDArray[np.intp]]] = []

    def add(self, view_index: int, rows: npt.NDArray[np.intp] | None, scores: npt.NDArray[np.float32]) -> None:
        """Add scored rows of a segment, None meaning all; only the k best and ties with the last are kept."""
        if rows is None or len(rows) > self._k:
            threshold = lower_bound(scores, self._k) if len(scores) > self._k else scores.min(initial=np.inf)
            positions = (scores >= threshold).nonzero()[0]
            rows, scores = positions if rows is None else rows[positions], scores[positions]
            if len(rows) > self._k:
                positions = (scores >= kth_highest(scores, self._k)).nonzero()[0]
                rows, scores = rows[positions], scores[positions]
        offset = self._snapshot.row_offsets[view_index]
        orders = self._snapshot.views[view_index].segment.order[rows]
        self._parts.append((scores, orders, rows + offset if offset else rows))

    def ranking(self) -> Ranking:
        """Return the k best rows; the order of equal scores does not depend on how the index was built."""
        if not self._parts:
            return Ranking([], [])
        if len(self._parts) == 1:
            scores, orders, rows = self._parts[0]
        else:
            scores, orders, rows = (np.concatenate(arrays) for arrays in zip(*self._parts, strict=True))
        best = np.lexsort((rows, orders, -scores))[: self._k]
        return Ranking(rows[best].tolist(), scores[best].tolist())


_GROUP_SIZE = 32  # at least
_MAX_GROUPS = 64  # for each of the k best: hardly two of them are in one group
_Float = TypeVar("_Float", np.float32, np.float64)


def lower_bound(scores: npt.NDArray[_Float], k: int) -> _Float:
    """Return a score close to the k-th best that at least k rows reach; there must be more than k.

    The k-th best of the maxima of groups is such a score, and much cheaper to find than the k-th best of all.
    """
    size = len(scores)
    groups = min(size // _GROUP_SIZE, _MAX_GROUPS * k)
    if groups > 2 * k:
        group_size = size // groups
        scores = scores[: groups * group_size].reshape(group_size, groups).max(axis=0)
    return kth_highest(scores, k)


def kth_highest(scores: npt.NDArray[_Float], k: int) -> _Float:
    """Return the k-th highest score."""
    partitioned = scores.copy()
    partitioned.partition(len(scores) - k)
    score: _Float = partitioned[len(scores) - k]
    return score


def are_among(ids: npt.NDArray[np.int64], selected: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which ids are among the selected ones, as `np.isin` does, which takes ten times as long."""
    if not len(ids):
        return np.zeros(0, np.bool_)
    first, last = int(ids.min()), int(ids.max())
    if last - first >= _MAX_PLACES * len(ids):
        return np.isin(ids, selected)
    is_selected = np.zeros(last - first + 1, np.bool_)
    is_selected[selected[(selected >= first) & (selected <= last)] - first] = True
    return is_selected.take(ids - first)
