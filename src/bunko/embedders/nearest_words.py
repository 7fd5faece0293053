"""Compare a query with the sentences of texts: as a whole, and word by word (late interaction).

Each subword of a query looks for its nearest one in a sentence. What the sum of all vectors blurs, it finds: 搬入 for
運び入れる, in a text about something else. Its constants were chosen on judged sets, see docs/quality.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bunko.protocols import DamagedIndex
from bunko.text.sentence_codec import unpack_sentences
from bunko.types.records import SentenceMatch

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import SentenceSubwords, Vectors

# BM25 counts words that are the same: a nearer one counts no more than this.
_MAX_COSINE = 0.4
# In a long query most subwords are beside the point: from so many different ones on, they count less and less.
_FULL_SUBWORDS, _FALL = 8, 3
_MIN_TRUST = 0.03  # below, they are not compared
_MIN_WEIGHT = 0.01  # of a subword that is compared: は and の say next to nothing
# OpenBLAS computes a product of so many multiplications in one thread; waking a second one costs a search more.
_MAX_PRODUCT = 1 << 18
# What an explanation names: at most so many pairs that are at least so near.
_MIN_SHOWN_COSINE, _MAX_SHOWN = 0.25, 5


class QueryWords(NamedTuple):
    """The different subwords of a query: their directions, how much each says, and how far they can be trusted."""

    ids: npt.NDArray[np.int32]
    units: Vectors
    weights: npt.NDArray[np.float32]  # the longer the vector, the more a subword says; they add up to 1
    trust: float  # 1 for a short query, 0 for a long one

    @classmethod
    def of(cls, ids: npt.NDArray[np.int32], rows: Vectors) -> QueryWords:
        """Return the subwords with these vectors."""
        squares = np.maximum((rows * rows).sum(axis=1), 1e-9)
        trust = min(1.0, _FULL_SUBWORDS / len(rows)) ** _FALL if len(rows) else 0.0
        if trust < _MIN_TRUST:
            return cls(ids[:0], rows[:0], squares[:0], 0.0)
        weights = squares / squares.sum()
        kept = weights >= _MIN_WEIGHT
        return cls(ids[kept], rows[kept] / np.sqrt(squares[kept])[:, None], weights[kept], trust)


def compare(
    table: npt.NDArray[np.int8],
    scales: npt.NDArray[np.float32],
    row_lengths: npt.NDArray[np.float32],
    words: QueryWords,
    vector: npt.NDArray[np.float32],
    texts: Sequence[SentenceSubwords],
) -> list[SentenceMatch]:
    """Return for each text its sentence nearest to the vector of a query, and how near the best one's words are.

    `row_lengths` are those of the table's rows, 0 where they are not known: they are computed once.
    """
    counts, sizes, lengths, tokens = unpack_sentences(texts)
    sentence_counts = np.array(counts)
    if not (sentence_counts.all() and sizes.all() and int(sizes.sum(dtype=np.intp)) == len(tokens)):
        raise DamagedIndex("The index file has arrays that do not fit together")
    # Of wrong numbers in a damaged file, a text is as near as they say.
    tokens = np.minimum(tokens, len(table) - 1).astype(np.intp)  # else each use converts them
    lengths = np.where(lengths > 0, lengths, np.inf)
    starts = np.cumsum(sizes, dtype=np.intp) - sizes  # of sentences among tokens
    firsts = np.cumsum(sentence_counts) - sentence_counts  # of texts among sentences
    # Each subword of all texts is compared once, and its cosines are looked up.
    is_present, column = np.zeros(len(table), np.bool_), np.empty(len(table), np.intp)
    is_present[tokens] = True
    distinct = is_present.nonzero()[0]
    column[distinct] = np.arange(len(distinct))
    columns = column.take(tokens)
    rows = table.take(distinct, axis=0).astype(np.float32)
    queries = np.vstack([words.units, vector[None]])
    step = max(_MAX_PRODUCT // queries.size, 1)
    products = np.empty((len(queries), len(rows)), np.float32)
    for start in range(0, len(rows), step):
        np.matmul(queries, rows[start : start + step].T, out=products[:, start : start + step])
    dots = products[-1] * scales[distinct]
    cosines = np.add.reduceat(dots.take(columns), starts) / lengths
    best = np.maximum.reduceat(cosines, firsts)
    # The first of equal ones, so that the answer does not depend on how texts are compared together.
    hits = np.flatnonzero(cosines == best.repeat(sentence_counts))
    positions = hits[np.searchsorted(hits, firsts)] - firsts
    nearness = [0.0] * len(texts)
    if len(words.units):
        products = products[:-1] / _known_lengths(row_lengths, distinct, rows)
        nearness = _nearness(products, words, columns, starts, firsts, sentence_counts)
    return list(map(SentenceMatch, np.minimum(best.round(6), 1).tolist(), positions.tolist(), nearness))


def _known_lengths(
    row_lengths: npt.NDArray[np.float32], distinct: npt.NDArray[np.intp], rows: Vectors
) -> npt.NDArray[np.float32]:
    """Return the lengths of some rows of the table, computing those that are not known."""
    lengths = row_lengths[distinct]
    unknown = (lengths == 0).nonzero()[0]
    if len(unknown):
        new_rows = rows[unknown]
        lengths[unknown] = np.maximum(np.sqrt(np.einsum("ij,ij->i", new_rows, new_rows)), 1e-9)
        row_lengths[distinct] = lengths
    return lengths


def _nearness(
    cosines: Vectors,
    words: QueryWords,
    columns: npt.NDArray[np.intp],
    starts: npt.NDArray[np.intp],
    firsts: npt.NDArray[np.intp],
    counts: npt.NDArray[np.intp],
) -> list[float]:
    """Return for each text the weighted sum of the query's best cosines, in the sentence where it is highest."""
    best = np.maximum.reduceat(cosines.take(columns, axis=1), starts, axis=1)
    # The first sentence has the title, which all others are about too.
    best = np.maximum(best, best[:, firsts].repeat(counts, axis=1))
    sums = words.weights @ np.minimum(best, _MAX_COSINE)
    nearness: list[float] = np.maximum.reduceat(sums, firsts).round(6).tolist()
    return nearness


def near_pairs(table: npt.NDArray[np.int8], words: QueryWords, text: SentenceSubwords) -> list[tuple[int, int, float]]:
    """Return the subwords of a query with their near ones in the sentence that counts, without the same ones."""
    if not len(words.ids):
        return []
    [count], sizes, _, subwords = unpack_sentences([text])
    tokens, sentences = subwords.astype(np.intp), np.repeat(np.arange(count), sizes)
    rows = table[tokens].astype(np.float32)
    cosines = words.units @ (rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-9)[:, None]).T
    scores = [_best_in(cosines, words, (sentences == number) | (sentences == 0)) for number in range(count)]
    in_reach = (sentences == int(np.argmax(scores))) | (sentences == 0)
    places = np.where(in_reach, cosines, -1.0).argmax(axis=1)
    pairs = [
        (int(word), int(tokens[place]), float(cosines[row, place]))
        for row, (word, place) in enumerate(zip(words.ids, places, strict=True))
    ]
    order = np.argsort(-words.weights * np.array([min(cosine, _MAX_COSINE) for *_, cosine in pairs]), kind="stable")
    shown = [pairs[row] for row in order if pairs[row][0] != pairs[row][1] and pairs[row][2] >= _MIN_SHOWN_COSINE]
    return shown[:_MAX_SHOWN]


def _best_in(cosines: Vectors, words: QueryWords, in_reach: npt.NDArray[np.bool_]) -> float:
    return float(words.weights @ np.minimum(cosines[:, in_reach].max(axis=1), _MAX_COSINE))
