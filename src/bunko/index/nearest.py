"""A query's vector in, the rows whose vectors are nearest by cosine out: a scan, of bytes first where rows are many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bunko.index.segment import Segment
from bunko.index.snapshot import Best, Ranking, Snapshot, lower_bound

if TYPE_CHECKING:
    import numpy.typing as npt

# So many more rows than wanted are scored again exactly after a scan of bytes.
_AGAIN, _AGAIN_AT_LEAST = 4, 64


def nearest(
    snapshot: Snapshot,
    vector: npt.NDArray[np.float32],
    k: int,
    *,
    masks: Sequence[npt.NDArray[np.bool_] | None],
) -> Ranking:
    """Return the k rows of highest cosine, best first."""
    best = Best(snapshot, k)
    for number, part in enumerate(snapshot.parts):
        segment, mask = part.segment, masks[number]
        if not segment.vectors.shape[1]:
            continue
        if len(segment.coarse):
            rows = _likely(segment, vector, max(_AGAIN * k, _AGAIN_AT_LEAST), mask)
            best.add(number, rows, segment.vectors[rows] @ vector)
        elif mask is None:
            best.add(number, np.arange(len(segment)), segment.vectors @ vector)
        else:
            rows = np.flatnonzero(mask)
            best.add(number, rows, (segment.vectors @ vector)[rows])
    return best.ranking()


def _likely(
    segment: Segment, vector: npt.NDArray[np.float32], k: int, mask: npt.NDArray[np.bool_] | None
) -> npt.NDArray[np.intp]:
    """Return rows among which the nearest are, found by a scan of their coarse form."""
    import simsimd

    coarse = np.round(vector * (127 / max(float(np.abs(vector).max()), 1e-30))).astype(np.int8)
    products = np.asarray(simsimd.cdist(coarse.reshape(1, -1), segment.coarse, metric="inner"))[0]
    scores: npt.NDArray[np.float32] = products.astype(np.float32) * segment.scales
    rows: npt.NDArray[np.intp] = np.arange(len(segment)) if mask is None else np.flatnonzero(mask)
    if mask is not None:
        scores = scores[rows]
    if len(rows) <= k:
        return rows
    return rows[np.flatnonzero(scores >= lower_bound(scores, k))]
