"""Find the rows with the highest cosine: by a scan of vectors, in large segments by one of their codes.

The mean and spread of all cosines are returned too: a cosine alone says little, but much in relation to all others.

`np.vecdot` takes a row by itself, so that equal rows have equal products. The product of a whole matrix, which BLAS
computes, is hardly faster in one thread, and wakes others that wait for each other if a program has not limited them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from bunko.indexes.embedded.candidates import candidates
from bunko.indexes.embedded.snapshot import Snapshot, TopK
from bunko.indexes.moments import mean_and_spread
from bunko.types.records import NearestRows

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import Vectors

# Copying a row costs as much as comparing this many.
_GATHER_COST = 4
_SAME_COSINE = 1e-6

# NaN and infinity, which only a damaged file has, are an error at the end instead of a warning for each operation.
_ignore_warnings = np.errstate(invalid="ignore", over="ignore")


@_ignore_warnings
def nearest(
    snapshot: Snapshot,
    vector: npt.NDArray[np.float32],
    k: int,
    *,
    masks: Sequence[npt.NDArray[np.bool_] | None],
) -> NearestRows:
    """Return the k rows with the highest cosine among the masked ones; mean and spread are over all rows."""
    top = TopK(snapshot, k)
    row_count, total, squares = 0, 0.0, 0.0
    for view_index, view in enumerate(snapshot.views):
        segment, mask = view.segment, masks[view_index]
        if segment.vectors.shape[1] != len(vector):  # it has none, or none of this embedder
            continue
        if not len(segment.codes.scales):
            scores = np.vecdot(segment.vectors, vector)
            alive_scores = scores if view.alive is None else scores[view.alive]
            row_count += len(alive_scores)
            total += float(alive_scores.sum(dtype=np.float64))
            squares += float(np.dot(alive_scores, alive_scores))
            rows = None if mask is None else np.flatnonzero(mask)
            top.add(view_index, rows, scores if rows is None else scores[rows])
            continue
        moments = view.moments()
        segment_total, segment_squares = moments.sums(vector)
        row_count, total, squares = row_count + moments.count, total + segment_total, squares + segment_squares
        rows = candidates(segment.codes, vector, k, mask)
        top.add(view_index, rows, _products(segment.vectors, rows, vector))
    ranking = top.ranking()
    if not all(map(isfinite, (total, squares, *ranking.scores))):
        raise ValueError("the index has vectors that are not numbers")
    return NearestRows(ranking, vector, *mean_and_spread(row_count, total, squares))


def sampled_recall(snapshot: Snapshot, k: int, sample_count: int) -> tuple[int, int] | None:
    """Search with vectors of some rows, and return how many of their k nearest rows were found, and of how many.

    None if `nearest` is exact, because no segment is large enough to have bit planes.
    """
    large_views = [view for view in snapshot.views if len(view.segment.codes.planes)]
    if not large_views:
        return None
    found, total = 0, 0
    exact = Snapshot([view.without_planes() for view in snapshot.views], snapshot.generation)
    masks = snapshot.masks(None)
    for view in large_views:
        alive_rows = view.alive_rows()
        for row in alive_rows[:: max(1, len(alive_rows) // sample_count)][:sample_count].tolist():
            vector = view.segment.vectors[row]
            expected = nearest(exact, vector, k, masks=masks).ranking.scores
            scores = nearest(snapshot, vector, k, masks=masks).ranking.scores
            # Rows as near as the last one count as found: which of them is returned makes no difference.
            found += sum(score >= expected[-1] - _SAME_COSINE for score in scores)
            total += len(expected)
    return found, total


@_ignore_warnings
def cosines(snapshot: Snapshot, vector: npt.NDArray[np.float32], rows: Sequence[int]) -> list[float]:
    """Return the cosines of rows."""
    if not rows:
        return []
    if len(snapshot.views) == 1:
        vectors = snapshot.views[0].segment.vectors
        if vectors.shape[1] != len(vector):
            return [0.0] * len(rows)
        return _finite(np.vecdot(vectors[np.array(rows, np.intp)], vector))
    scores = np.zeros(len(rows), np.float32)
    for view_index, selected, positions in snapshot.split_by_segment(rows):
        vectors = snapshot.views[view_index].segment.vectors
        if vectors.shape[1] == len(vector):
            scores[selected] = np.vecdot(vectors[positions], vector)
    return _finite(scores)


def _finite(scores: npt.NDArray[np.float32]) -> list[float]:
    if not np.isfinite(scores).all():
        raise ValueError("the index has vectors that are not numbers")
    score_list: list[float] = scores.tolist()
    return score_list


def _products(vectors: Vectors, rows: npt.NDArray[np.intp], vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the products of rows with a vector."""
    products: npt.NDArray[np.float32]
    if len(rows) * _GATHER_COST > len(vectors):  # as with many equal texts, or a query that is near nothing
        products = np.vecdot(vectors, vector)[rows]
    else:
        products = np.vecdot(vectors[rows], vector)
    return products
