"""Turn the vectors of tokens into one vector per text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bunko.types import Vectors


def pool_tokens(states: NDArray[Any], mask: NDArray[Any], pooling: str) -> NDArray[Any]:
    """Return one row per text from the states of its tokens: mean, cls, lasttoken or max; padding does not count."""
    weights = mask[:, :, None].astype(states.dtype)
    rows: NDArray[Any]
    if pooling == "cls":
        rows = states[:, 0]
    elif pooling == "lasttoken":
        rows = states[np.arange(len(states)), np.maximum(mask.sum(axis=1), 1) - 1]
    elif pooling == "max":
        rows = np.where(weights > 0, states, -np.inf).max(axis=1)
    else:
        rows = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    return rows


def unit_vectors(rows: Vectors) -> Vectors:
    """Return rows of unit length; a zero row becomes the first axis, because every text needs a direction."""
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    rows[lengths[:, 0] == 0, 0] = lengths[lengths == 0] = 1.0
    unit: Vectors = (rows / lengths).astype(np.float32)
    return unit
