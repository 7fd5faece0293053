"""Answer vectors from Chroma and everything else from the segments of the embedded index; keep the moments."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.errors import IndexFailure
from bunko.indexes.embedded.segment import Segment
from bunko.indexes.embedded.view import EmbeddedView
from bunko.indexes.moments import Moments
from bunko.protocols import Store
from bunko.runtime import array_file
from bunko.runtime.array_file import DamagedArrayFile
from bunko.types.records import NearestRows, Ranking

if TYPE_CHECKING:
    import numpy.typing as npt

    FindNearest = Callable[[npt.NDArray[np.float32], int, Sequence[int] | None], list[int]]


# With more documents than this, a filter costs more to send than to apply to the local vectors.
_MAX_FILTERED_DOCUMENTS = 500


class ChromaView:
    """A state of the segments whose nearest rows Chroma finds; their scores are computed from the segments.

    If Chroma cannot be used or has another state, the vectors in the segments answer instead, and a notice says so.
    """

    def __init__(
        self,
        segments: EmbeddedView,
        find_nearest: FindNearest,
        moments: Callable[[], Moments | None],
        notices: list[str],  # that finding the nearest rows may add
    ) -> None:
        self._segments, self._find_nearest = segments, find_nearest
        self._moments = moments
        self.generation, self.size = segments.generation, segments.size
        self.notices: Sequence[str] = notices
        self.rows, self.chunk_ids, self.tie_order = segments.rows, segments.chunk_ids, segments.tie_order
        self.max_score, self.matches, self.cosines = segments.max_score, segments.matches, segments.cosines
        self.term_scores, self.sentences = segments.term_scores, segments.sentences
        self.rank, self.rank_grams, self.rank_key_ranges = segments.rank, segments.rank_grams, segments.rank_key_ranges

    def nearest(self, vector: npt.NDArray[np.float32], k: int, *, where: tuple[int, ...] | None = None) -> NearestRows:
        """Return the k rows with the highest cosine."""
        moments = self._moments()
        if (
            moments is None
            or len(moments.total) != len(vector)
            or (where is not None and len(where) > _MAX_FILTERED_DOCUMENTS)
        ):
            return self._segments.nearest(vector, k, where=where)
        try:
            rows = self._find_rows(vector, k, where)
        except IndexFailure as failure:
            notice = f"{failure.message}, so the library's own vectors were searched. {failure.hint}".rstrip()
            self.notices = [*dict.fromkeys((*self.notices, notice))]
            return self._segments.nearest(vector, k, where=where)
        scores = self._segments.cosines(vector, rows)
        order = self._segments.tie_order(rows)
        best = sorted(zip([-score for score in scores], order, rows, strict=True))[:k]
        ranking = Ranking([row for _, _, row in best], [-score for score, _, _ in best])
        return NearestRows(ranking, vector, *moments.mean_and_spread(vector))

    def _find_rows(self, vector: npt.NDArray[np.float32], k: int, where: tuple[int, ...] | None) -> list[int]:
        """Return at least the k nearest rows, if there are as many; hits that are no longer rows are made up for."""
        if where is not None and not where:
            return []
        limit = k
        while True:
            chunk_ids = self._find_nearest(vector, limit, where)
            rows = self._segments.rows_of(chunk_ids)
            if len(rows) >= min(k, self.size) or len(chunk_ids) < limit:
                return rows
            limit *= 2


_log = logging.getLogger("bunko.index")

_FORMAT = 1
# Computing the moments of a smaller segment takes a few milliseconds: reading a file would not be faster.
_MIN_SAVED_ROWS = 4096
_MAX_CACHED_SEGMENTS = 32


class LocalMoments:
    """The moments of the vectors of each tool, cached as long as its segments do not change."""

    def __init__(self, store: Store, folder: Path | None) -> None:
        self._store, self._folder = store, folder
        self._by_tool: dict[int, tuple[EmbeddedView, Moments | None]] = {}
        self._by_segment: list[tuple[Segment, Moments]] = []

    def sum_of(self, views: Mapping[int, EmbeddedView]) -> Moments | None:
        """Return the moments of all vectors of some tools; None if they have none, or of several dimensions."""
        moments = [tool_moments for tool_id, view in views.items() if (tool_moments := self._of_tool(tool_id, view))]
        if len({len(tool_moments.total) for tool_moments in moments}) != 1:
            return None
        return reduce(add, moments)

    def save(self, tool_id: int, view: EmbeddedView) -> None:
        """Save the moments of the segment that the embedded index has saved, if that is large and new."""
        segment = view.views[0].segment if view.views else None
        if self._folder is None or segment is None or "nonce" not in segment.stamp or len(segment) < _MIN_SAVED_ROWS:
            return
        if self._load(tool_id, segment) is None:
            moments = self._of_segment(tool_id, segment)
            arrays = {
                "count": np.array([moments.count], np.int64),
                "total": moments.total,
                "products": moments.products,
            }
            try:
                stamp = {"segment": segment.stamp["nonce"]}
                mode = self._store.files.mode()
                array_file.save_arrays(self._path(tool_id), arrays, format_version=_FORMAT, stamp=stamp, mode=mode)
            except OSError as error:
                _log.warning("Cannot write %s (%s); searches continue without it.", self._path(tool_id).name, error)

    def drop(self, tool_id: int) -> None:
        """Delete the saved moments of a tool."""
        self._by_tool.pop(tool_id, None)
        if self._folder is not None:
            with suppress(OSError):
                self._path(tool_id).unlink()

    def _of_tool(self, tool_id: int, view: EmbeddedView) -> Moments | None:
        """Return the moments of the segments of a tool, less those of their deleted rows."""
        cached = self._by_tool.get(tool_id)
        if cached is None or cached[0] is not view:
            parts = []
            for segment_view in view.views:
                segment, alive = segment_view.segment, segment_view.alive
                if not segment.vectors.shape[1]:
                    continue
                moments = self._of_segment(tool_id, segment)
                parts.append(moments if alive is None else moments - Moments.of(segment.vectors[~alive]))
            is_uniform = len({len(moments.total) for moments in parts}) == 1
            cached = self._by_tool[tool_id] = view, reduce(add, parts) if is_uniform else None
        return cached[1]

    def _of_segment(self, tool_id: int, segment: Segment) -> Moments:
        for cached_segment, moments in self._by_segment:
            if cached_segment is segment:
                return moments
        moments = self._load(tool_id, segment) or Moments.of(segment.vectors)
        self._by_segment = [*self._by_segment[1 - _MAX_CACHED_SEGMENTS :], (segment, moments)]
        return moments

    def _load(self, tool_id: int, segment: Segment) -> Moments | None:
        """Return the saved moments of a segment, or None."""
        if self._folder is None or len(segment) < _MIN_SAVED_ROWS or "nonce" not in segment.stamp:
            return None
        try:
            arrays, stamp = array_file.load_arrays(self._path(tool_id), format_version=_FORMAT, verify_checksum=True)
        except (OSError, DamagedArrayFile):
            return None
        dimension = segment.vectors.shape[1]
        expected: dict[str, Any] = {
            "count": ((1,), np.int64),
            "total": ((dimension,), np.float64),
            "products": ((dimension, dimension), np.float64),
        }
        shapes = {name: (array.shape, array.dtype) for name, array in arrays.items()}
        if stamp != {"segment": segment.stamp["nonce"]} or shapes != expected:
            return None
        return Moments(int(arrays["count"][0]), np.array(arrays["total"]), np.array(arrays["products"]))

    def _path(self, tool_id: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{self._store.id[:12]}-tool{tool_id}.moments"
