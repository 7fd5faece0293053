"""Compare a query with texts, and read the first of them closely: sentence by sentence and word by word.

One vector says what a long text is about as a whole; the sentence that answers a query may say something else. So the
similarity of a text that is read closely lies between its own cosine and that of its nearest sentence. And each word of
the query looks for its nearest one: texts without it fall behind, by how much they lack it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

from bunko.errors import EmbedderError
from bunko.protocols import Embedder, IndexView, SentenceReader
from bunko.types.records import SentenceMatch

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


# Rows that differ less have all the same words, but for rounding.
_MIN_DEVIATION = 1e-5


class CloseReading(NamedTuple):
    """What a close reading of rows found: their nearest sentences, and how much the words of the query can tell."""

    matches: Mapping[int, SentenceMatch]  # by row; an embedder may not know any
    trust: float = 0.0


# Reads some rows closely.
ReadClosely = Callable[[Sequence[int]], CloseReading]


def read_closely(
    view: IndexView,
    embedder: Embedder | None,
    query: str,
    vector: npt.NDArray[np.float32] | None,
    rows: Sequence[int],
) -> CloseReading:
    """Compare a query with the sentences of rows."""
    if vector is None or not isinstance(embedder, SentenceReader):
        return CloseReading({})
    sentences = {row: text for row, text in zip(rows, view.sentences(rows), strict=True) if text is not None}
    try:
        matches, trust = embedder.compare(query, vector, list(sentences.values()))
    except EmbedderError:  # it cannot split texts now: whole texts are compared
        return CloseReading({})
    return CloseReading(dict(zip(sentences, matches, strict=True)), trust)


def similarities(cosines: Mapping[int, float], reading: CloseReading, share: float) -> dict[int, float]:
    """Return the similarity of rows; of those that were read closely, the nearest sentence has a share of it."""
    matches = reading.matches
    return {
        row: (1 - share) * cosine + share * matches[row].cosine if row in matches else cosine
        for row, cosine in cosines.items()
    }


def lost_points(reading: CloseReading, weight: float, spread: float) -> dict[int, float]:
    """Return by how much each row that was read falls behind the one with the nearest words, as a cosine.

    Rows are compared with each other: a spread of their nearness is worth `weight` spreads of all cosines.
    """
    nearness = {row: match.nearness for row, match in reading.matches.items()}
    mean = sum(nearness.values()) / max(len(nearness), 1)
    deviation = sqrt(sum([(value - mean) ** 2 for value in nearness.values()]) / max(len(nearness), 1))
    if not weight * reading.trust or deviation < _MIN_DEVIATION:
        return {}
    factor, highest = weight * reading.trust * spread / deviation, max(nearness.values())
    return {row: factor * (value - highest) for row, value in nearness.items()}


def sort_by_score(view: IndexView, scores: Mapping[int, float]) -> list[int]:
    """Return rows by descending score; ties are broken only where there are any."""
    rows = sorted(scores, key=scores.__getitem__, reverse=True)
    if len(set(scores.values())) < len(rows):
        orders = dict(zip(rows, view.tie_order(rows), strict=True))
        rows.sort(key=lambda row: (-scores[row], orders[row]))
    return rows
