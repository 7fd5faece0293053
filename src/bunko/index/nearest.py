"""A query's vector in, the rows whose vectors are nearest by cosine out: an exact scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bunko.index.snapshot import Best, Ranking, Snapshot

if TYPE_CHECKING:
    import numpy.typing as npt


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
        segment = part.segment
        if not segment.vectors.shape[1]:
            continue
        scores = segment.vectors @ vector
        mask = masks[number]
        if mask is None:
            best.add(number, np.arange(len(segment)), scores)
        else:
            rows = np.flatnonzero(mask)
            best.add(number, rows, scores[rows])
    return best.ranking()
