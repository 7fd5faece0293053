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


class Table(NamedTuple):
    """The vectors of all subwords."""

    rows: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]
    lengths: npt.NDArray[np.float32]  # of rows; 0 until one is compared for the first time

    def lengths_of(self, subwords: npt.NDArray[np.intp]) -> npt.NDArray[np.float32]:
        """Return the lengths of the rows of subwords."""
        unknown = subwords[self.lengths[subwords] == 0]
        if len(unknown):
            rows = self.rows[unknown].astype(np.float32)
            self.lengths[unknown] = np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1e-9)
        return self.lengths[subwords]

    def products(self, queries: Vectors, subwords: npt.NDArray[np.intp]) -> Vectors:
        """Return the products of queries with the rows of subwords, of as many at a time as fit the cache."""
        step = max(_MAX_PRODUCT // queries.size, 1)
        products = np.empty((len(queries), len(subwords)), np.float32)
        small, rows = (np.empty((step, self.rows.shape[1]), dtype) for dtype in (np.int8, np.float32))
        for start in range(0, len(subwords), step):
            block = subwords[start : start + step]
            size = len(block)
            rows[:size] = np.take(self.rows, block, axis=0, out=small[:size], mode="clip")
            np.matmul(queries, rows[:size].T, out=products[:, start : start + size])
        return products


def compare(
    table: Table, words: QueryWords, vector: npt.NDArray[np.float32], texts: Sequence[SentenceSubwords]
) -> list[SentenceMatch]:
    """Return for each text its sentence nearest to the vector of a query, and how near the best one's words are."""
    try:
        sentence_counts, sizes, lengths, tokens = unpack_sentences(texts)
    except ValueError as error:
        raise DamagedIndex("The index file has arrays that do not fit together") from error
    # Of wrong numbers in a damaged file, a text is as near as they say.
    tokens = np.minimum(tokens, len(table.rows) - 1).astype(np.intp)
    lengths = np.where(lengths > 0, lengths, np.inf)
    starts = np.cumsum(sizes, dtype=np.intp) - sizes  # of sentences among tokens
    firsts = np.cumsum(sentence_counts) - sentence_counts  # of texts among sentences
    # Each subword of all texts is compared once, and its cosines are looked up.
    is_present = np.zeros(len(table.rows), np.bool_)
    is_present[tokens] = True
    distinct = is_present.nonzero()[0]
    column = np.empty(len(table.rows), np.intp)
    column[distinct] = np.arange(len(distinct))
    columns = column.take(tokens)
    products = table.products(np.vstack([words.units, vector[None]]), distinct)
    dots = (products[-1] * table.scales[distinct]).take(columns)
    cosines = np.add.reduceat(dots, starts) / lengths
    best = np.maximum.reduceat(cosines, firsts)
    # The first of equal ones, so that the answer does not depend on how texts are compared together.
    hits = np.flatnonzero(cosines == best.repeat(sentence_counts))
    positions = hits[np.searchsorted(hits, firsts)] - firsts
    nearness = _nearness(products[:-1] / table.lengths_of(distinct), words, columns, starts, firsts, sentence_counts)
    return list(map(SentenceMatch, np.minimum(best.round(6), 1).tolist(), positions.tolist(), nearness))


def _nearness(
    cosines: Vectors,
    words: QueryWords,
    columns: npt.NDArray[np.intp],
    starts: npt.NDArray[np.intp],
    firsts: npt.NDArray[np.intp],
    counts: npt.NDArray[np.intp],
) -> list[float]:
    """Return for each text the weighted sum of the query's best cosines, in the sentence where it is highest."""
    if not len(cosines):
        return [0.0] * len(firsts)
    best = np.maximum.reduceat(cosines.take(columns, axis=1), starts, axis=1)
    # The first sentence has the title, which all others are about too.
    best = np.maximum(best, best[:, firsts].repeat(counts, axis=1))
    sums = words.weights @ np.minimum(best, _MAX_COSINE)
    nearness: list[float] = np.maximum.reduceat(sums, firsts).round(6).tolist()
    return nearness


def near_pairs(table: Table, words: QueryWords, text: SentenceSubwords) -> list[tuple[int, int, float]]:
    """Return the subwords of a query with their near ones in the sentence that counts, without the same ones."""
    if not len(words.ids):
        return []
    [count], sizes, _, subwords = unpack_sentences([text])
    tokens, sentences = subwords.astype(np.intp), np.repeat(np.arange(count), sizes)
    cosines = table.products(words.units, tokens) / table.lengths_of(tokens)
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
