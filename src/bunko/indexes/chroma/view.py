"""Answer vectors from Chroma and everything else from the segments of the embedded index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bunko.errors import IndexFailure
from bunko.indexes.embedded.view import EmbeddedView
from bunko.indexes.moments import Moments
from bunko.types.records import NearestRows, QueryTerm, Ranking

if TYPE_CHECKING:
    import numpy.typing as npt

    # The ids of the nearest chunks of all tools of a view, in any order; raises `IndexFailure`.
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
        self.term_scores, self.best_sentences = segments.term_scores, segments.best_sentences

    def rank(
        self, terms: Sequence[QueryTerm], k: int, *, k1: float, b: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k best rows by BM25 over words, with n-grams as an additional signal."""
        return self._segments.rank(terms, k, k1=k1, b=b, where=where)

    def rank_grams(
        self, grams: Sequence[QueryTerm], k: int, *, min_share: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with the highest idf sum of n-grams, among rows with `min_share` of their weights."""
        return self._segments.rank_grams(grams, k, min_share=min_share, where=where)

    def rank_key_ranges(
        self, ranges: Sequence[tuple[int, int]], k: int, *, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with n-grams in the most key ranges."""
        return self._segments.rank_key_ranges(ranges, k, where=where)

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
