"""Answer the questions of search from a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bunko.indexes.embedded import bm25, vectors
from bunko.indexes.embedded.snapshot import SegmentView, Snapshot
from bunko.protocols.index import DamagedIndex
from bunko.types.records import NearestRows, QueryTerm, Ranking

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.protocols import Store
    from bunko.types import SentenceSubwords

    Masks = Sequence[npt.NDArray[np.bool_] | None]


class _Reading:
    """Raises the errors of impossible numbers in a file as damage of that file."""

    def __init__(self, views: Sequence[SegmentView]) -> None:
        self._views = views

    def __enter__(self) -> None:
        """Begin to read."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Raise damage, unless this process built all segments itself: then it is a bug."""
        if isinstance(error, IndexError | ValueError) and any(view.segment.stamp for view in self._views):
            raise DamagedIndex(f"An index file has impossible values: {error}") from error


class EmbeddedView(Snapshot):
    """A snapshot that search can query; its rows are numbered over all segments."""

    notices: Sequence[str] = ()

    def __init__(self, views: Sequence[SegmentView], generation: int, store: Store | None = None) -> None:
        super().__init__(views, generation)
        self._store = store  # of texts
        self._reading = _Reading(views)
        self._alive_masks: Masks = self.masks(None)
        self._last_masks: tuple[tuple[int, ...], Masks] | None = None

    def rows(self) -> list[int]:
        """Return all rows that are alive, in the order they were written."""
        with self._reading:
            rows: list[int] = self.alive_rows().tolist()
            return rows

    def chunk_ids(self, rows: Sequence[int]) -> list[int]:
        """Return the chunk ids of rows."""
        with self._reading:
            return self._values([view.segment.chunk_ids for view in self.views], rows)

    def rows_of(self, chunk_ids: Sequence[int]) -> list[int]:
        """Return the rows of those of these chunks that are alive, in the same order."""
        with self._reading:
            wanted = np.array(chunk_ids, np.int64)
            found = np.full(len(wanted), -1, np.int64)
            for view, offset in zip(self.views, self.row_offsets, strict=True):
                positions = view.positions_of(wanted)
                found[positions >= 0] = positions[positions >= 0] + offset
            rows: list[int] = found[found >= 0].tolist()
            return rows

    def tie_order(self, rows: Sequence[int]) -> list[int]:
        """Return the sort keys of rows among equal scores."""
        with self._reading:
            return self._values([view.segment.order for view in self.views], rows)

    def rank(
        self, terms: Sequence[QueryTerm], k: int, *, k1: float, b: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k best rows by BM25 over words, with n-grams as an additional signal."""
        with self._reading:
            return bm25.rank_terms(self, terms, k, k1=k1, b=b, masks=self._masks_of(where))

    def max_score(self, terms: Sequence[QueryTerm], *, k1: float) -> float:
        """Return an upper bound of a row's score by words."""
        with self._reading:
            return bm25.max_possible_score(self, terms, k1=k1)

    def rank_grams(
        self, grams: Sequence[QueryTerm], k: int, *, min_share: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with the highest idf sum of n-grams, among rows with `min_share` of their weights."""
        with self._reading:
            return bm25.rank_gram_overlap(self, grams, k, min_share=min_share, masks=self._masks_of(where))

    def rank_key_ranges(
        self, ranges: Sequence[tuple[int, int]], k: int, *, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with n-grams in the most key ranges."""
        with self._reading:
            return bm25.rank_key_ranges(self, ranges, k, masks=self._masks_of(where))

    def matches(self, terms: Sequence[QueryTerm], rows: Sequence[int]) -> list[list[bool]]:
        """Return for each row which of the terms it contains."""
        with self._reading:
            return bm25.matches(self, terms, rows)

    def term_scores(self, terms: Sequence[QueryTerm], rows: Sequence[int], *, k1: float, b: float) -> list[list[float]]:
        """Return for each row what each of the terms alone adds to its score."""
        with self._reading:
            return bm25.term_scores(self, terms, rows, k1=k1, b=b)

    def nearest(self, vector: npt.NDArray[np.float32], k: int, *, where: tuple[int, ...] | None = None) -> NearestRows:
        """Return the k rows with the highest cosine."""
        with self._reading:
            return vectors.nearest(self, vector, k, masks=self._masks_of(where))

    def sampled_recall(self, k: int, sample_count: int) -> tuple[int, int] | None:
        """Search with vectors of some rows; return how many of their k nearest rows were found, and of how many."""
        with self._reading:
            return vectors.sampled_recall(self, k, sample_count)

    def cosines(self, vector: npt.NDArray[np.float32], rows: Sequence[int]) -> list[float]:
        """Return the cosines of rows."""
        with self._reading:
            return vectors.cosines(self, vector, rows)

    def sentences(self, rows: Sequence[int]) -> list[SentenceSubwords | str | None]:
        """Return the subwords of each row's sentences, or its text if it was imported before they were kept."""
        found: list[SentenceSubwords | str | None] = [None] * len(rows)
        old: dict[int, int] = {}  # chunk ids and places
        with self._reading:
            for view_index, selected, positions in self.split_by_segment(rows):
                segment = self.views[view_index].segment
                starts, subwords = segment.sentences
                columns = (array.tolist() for array in (selected, positions, starts[positions], starts[positions + 1]))
                for place, position, start, end in zip(*columns, strict=True):
                    if end > start:
                        found[place] = subwords[start:end]
                    elif segment.vectors[position].any():
                        old[segment.chunk_ids.item(position)] = place
        if old and self._store is not None:
            for chunk_id, sentences in self._store.changes.chunk_sentences(list(old)).items():
                found[old[chunk_id]] = sentences
        return found

    def _values(self, columns: Sequence[npt.NDArray[Any]], rows: Sequence[int]) -> list[int]:
        """Return the value of each row in a column of its segment."""
        if len(columns) == 1:
            values: list[int] = columns[0][np.array(rows, np.intp)].tolist()
            return values
        return [columns[view_index].item(position) for view_index, position in map(self.locate, rows)]

    def _masks_of(self, where: tuple[int, ...] | None) -> Masks:
        """Return which rows may be returned; the last filter is cached, because both arms of a search need it."""
        if where is None:
            return self._alive_masks
        last = self._last_masks
        if last is None or last[0] is not where:
            last = self._last_masks = where, self.masks(np.array(where, np.int64))
        return last[1]
