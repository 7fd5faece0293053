"""A query's vector in, the rows whose vectors are nearest by cosine out: a scan, of bytes first where rows are many.

How near rows are in general is told too: a cosine says little by itself, and much beside those of all other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.indexes.embedded.segment import Segment
from bunko.indexes.embedded.snapshot import Ranking, Snapshot, TopK, lower_bound

if TYPE_CHECKING:
    import numpy.typing as npt

# So many more rows than wanted are scored again exactly after a scan of bytes.
_RESCORE_FACTOR, _MIN_RESCORED_ROWS = 4, 64


class NearestRows(NamedTuple):
    """The nearest rows, best first, and the cosines of all rows in general."""

    ranking: Ranking
    query_vector: npt.NDArray[np.float32]
    mean: float
    spread: float


def nearest(
    snapshot: Snapshot,
    vector: npt.NDArray[np.float32],
    k: int,
    *,
    masks: Sequence[npt.NDArray[np.bool_] | None],
) -> NearestRows:
    """Return the k rows of highest cosine among those a mask leaves; the mean and the spread are those of all rows."""
    best = TopK(snapshot, k)
    number_of_rows, total, squares = 0, 0.0, 0.0
    for number, part in enumerate(snapshot.views):
        segment, mask = part.segment, masks[number]
        if not segment.vectors.shape[1]:
            continue
        scores = _approximate_cosines(segment, vector) if len(segment.coarse) else segment.vectors @ vector
        living = scores if part.alive is None else scores[part.alive]
        number_of_rows += len(living)
        total += float(living.sum(dtype=np.float64))
        squares += float(np.dot(living, living))
        rows = None if mask is None else np.flatnonzero(mask)
        if rows is not None:
            scores = scores[rows]
        if len(segment.coarse):
            again = max(_RESCORE_FACTOR * k, _MIN_RESCORED_ROWS)
            if len(scores) > again:
                kept = np.flatnonzero(scores >= lower_bound(scores, again))
                rows = kept if rows is None else rows[kept]
            scores = (segment.vectors if rows is None else segment.vectors[rows]) @ vector
        best.add(number, rows, scores)
    mean = total / max(number_of_rows, 1)
    spread = sqrt(max(squares / max(number_of_rows, 1) - mean * mean, 0.0))
    # Rounded, so that they are the same however the rows are spread over segments.
    return NearestRows(best.ranking(), vector, round(mean, 4), round(spread, 4))


def cosines(snapshot: Snapshot, vector: npt.NDArray[np.float32], rows: Sequence[int]) -> list[float]:
    """Return how near some rows are."""
    if not rows:
        return []
    if len(snapshot.views) == 1:
        vectors = snapshot.views[0].segment.vectors
        one: list[float] = (
            (vectors[np.array(rows, np.intp)] @ vector).tolist() if vectors.shape[1] else [0.0] * len(rows)
        )
        return one
    found = np.zeros(len(rows), np.float32)
    places = np.array([snapshot.locate(row) for row in rows], np.intp).reshape(-1, 2)
    for number in np.unique(places[:, 0]):
        vectors = snapshot.views[number].segment.vectors
        if vectors.shape[1]:
            which = places[:, 0] == number
            found[which] = vectors[places[which, 1]] @ vector
    near: list[float] = found.tolist()
    return near


def _approximate_cosines(segment: Segment, vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return about what the cosines are, from the rows' coarse form."""
    import simsimd

    scale = max(float(np.abs(vector).max()), 1e-30) / 127
    coarse = np.round(vector / np.float32(scale)).astype(np.int8)
    products = np.asarray(simsimd.cdist(coarse.reshape(1, -1), segment.coarse, metric="inner"))[0]
    scores: npt.NDArray[np.float32] = products.astype(np.float32) * (segment.scales * np.float32(scale))
    return scores
