"""Compare a query with texts and with their sentences.

One vector says what a long text is about as a whole; the sentence that answers a query may say something else. So the
similarity of a text is the mean of its own cosine and that of its nearest sentence, where an index has sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bunko.protocols import IndexView
from bunko.types.records import NearestRows, Ranking, SentenceMatch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# The nearest rows by their own vectors whose sentences are compared, as a multiple of the rows wanted.
_CANDIDATE_FACTOR, _MIN_CANDIDATES = 2, 60


def most_similar(
    view: IndexView, vector: npt.NDArray[np.float32], k: int, *, where: tuple[int, ...] | None = None
) -> NearestRows:
    """Return the k rows that are most similar to a query, among the rows with the highest cosine."""
    nearest = view.nearest(vector, max(_CANDIDATE_FACTOR * k, _MIN_CANDIDATES), where=where)
    rows, cosines = nearest.ranking
    matches = view.best_sentences(vector, rows)
    scores = dict(zip(rows, _mean_cosines(cosines, matches), strict=True))
    best = sort_by_score(view, scores)[:k]
    sentences = {row: match for row, match in zip(rows, matches, strict=True) if match is not None}
    return nearest._replace(ranking=Ranking(best, [scores[row] for row in best]), sentences=sentences)


def similarities(view: IndexView, vector: npt.NDArray[np.float32], rows: Sequence[int]) -> list[float]:
    """Return how similar rows are to a query; 0 without a vector."""
    return _mean_cosines(view.cosines(vector, rows), view.best_sentences(vector, rows))


def with_sentences_of(view: IndexView, nearest: NearestRows, rows: Sequence[int]) -> NearestRows:
    """Return nearest rows that know the nearest sentences of these rows, and of no others."""
    sentences = dict(zip(rows, view.best_sentences(nearest.query_vector, rows), strict=True))
    return nearest._replace(sentences={row: match for row, match in sentences.items() if match is not None})


def sort_by_score(view: IndexView, scores: Mapping[int, float]) -> list[int]:
    """Return rows by descending score; ties are broken only where there are any."""
    rows = sorted(scores, key=scores.__getitem__, reverse=True)
    if len(set(scores.values())) < len(rows):
        orders = dict(zip(rows, view.tie_order(rows), strict=True))
        rows.sort(key=lambda row: (-scores[row], orders[row]))
    return rows


def _mean_cosines(cosines: Sequence[float], matches: Sequence[SentenceMatch | None]) -> list[float]:
    return [
        cosine if match is None else (cosine + match.cosine) / 2 for cosine, match in zip(cosines, matches, strict=True)
    ]
