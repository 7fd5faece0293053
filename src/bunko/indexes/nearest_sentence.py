"""Find the sentence of one text that is nearest to a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bunko.types import SENTENCE_SCALE
from bunko.types.records import SentenceMatch

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import SentenceVectors


def best_sentence(sentences: SentenceVectors | None, vector: npt.NDArray[np.float32]) -> SentenceMatch | None:
    """Return the sentence with the highest cosine, the first of equal ones; None if there is none of this size."""
    if sentences is None or not len(sentences) or sentences.shape[1] != len(vector):
        return None
    cosines = sentences.astype(np.float32) @ (vector / np.float32(SENTENCE_SCALE))
    position = int(cosines.argmax())
    # Rounded to bytes, a vector is a little longer or shorter than 1.
    return SentenceMatch(min(float(cosines[position]), 1.0), position)
