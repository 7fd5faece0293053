"""Score candidates by words, n-grams or vectors, and say how high those may score that were not read yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bunko.indexes.milvus.chunks import Part, ScoredChunk, contain_grams, count_terms
from bunko.types.records import GRAM_WEIGHT, QueryTerm, Ranking

if TYPE_CHECKING:
    import numpy.typing as npt

    Scores = npt.NDArray[np.float64]

_NO_MATCH = -np.inf
# Products are rounded, and those of rows that were not read may differ from their scores a little more than those that
# were.
_SLACK = 1.001


class Scorer(Protocol):
    """Scores chunks; the product of their vectors in Milvus is a guess of the score."""

    part: Part  # what must be read of a chunk

    def score(self, chunks: Sequence[ScoredChunk], products: Scores | None, threshold: float) -> Scores:
        """Return the scores of chunks, -inf if they do not match; one that cannot reach `threshold` may be lower."""

    def highest(self, product: float) -> float:
        """Return the highest score of chunks with at most this product, as far as those that were scored show."""


class WordScorer:
    """BM25 of words; n-grams, by presence, add to the scores of chunks that words found."""

    part: Part = "terms"

    def __init__(
        self,
        words: Sequence[QueryTerm],
        idfs: Sequence[float],
        grams: Sequence[QueryTerm],
        gram_idfs: Sequence[float],
        add_texts: Callable[[Sequence[ScoredChunk]], None],
        *,
        k1: float,
        b: float,
        average_length: float,
    ) -> None:
        self._words, self._add_texts = words, add_texts
        self._k1, self._b, self._average_length = k1, b, average_length
        self._weights = np.array([word.weight for word in words]) * np.array(idfs) * (k1 + 1)
        self._keys, self._gram_keys = term_keys(words), term_keys(grams)
        self._contributions = np.array([gram.weight for gram in grams]) * np.array(gram_idfs)
        self._ratio = 1.0  # of a score to its product, the highest so far: the average length may have changed

    def score(self, chunks: Sequence[ScoredChunk], products: Scores | None, threshold: float) -> Scores:
        """Return the scores of chunks, -inf without any of the words."""
        counts = count_terms(chunks, self._keys)
        lengths = np.array([[chunk.length] for chunk in chunks]).reshape(len(chunks), 1)
        norms = self._k1 * (1 - self._b + self._b * lengths / self._average_length)
        scores = np.divide(self._weights * counts, counts + norms, out=np.zeros_like(counts), where=counts > 0)
        scores = sum_of_groups(self._words, scores)
        is_match = scores > 0
        if len(self._gram_keys):
            reaches = np.flatnonzero(is_match & (scores + self._contributions.sum() >= threshold))
            selected = [chunks[position] for position in reaches.tolist()]
            self._add_texts(selected)
            scores[reaches] += contain_grams(selected, self._gram_keys) @ self._contributions
        if products is not None and len(products):
            # A product of infinity: Milvus did not say.
            ratios = np.divide(scores, products, out=np.zeros_like(scores), where=products > 0)
            self._ratio = max(self._ratio, float(ratios.max()))
        return np.where(is_match, scores, _NO_MATCH)

    def highest(self, product: float) -> float:
        """Return the highest score of chunks with at most this product."""
        return product * self._ratio * _SLACK


class GramScorer:
    """The idf sum of n-grams, of chunks with `min_share` of their weights."""

    part: Part = "texts"

    def __init__(self, grams: Sequence[QueryTerm], idfs: Sequence[float], *, min_share: float) -> None:
        self._keys = term_keys(grams)
        self._weights = np.array([gram.weight for gram in grams])
        self._idfs, self._min_share = np.array(idfs), min_share

    def score(self, chunks: Sequence[ScoredChunk], products: Scores | None, threshold: float) -> Scores:
        """Return the scores of chunks, -inf with too few of the n-grams."""
        has_gram = contain_grams(chunks, self._keys)
        scores = GRAM_WEIGHT * (has_gram @ (self._weights * self._idfs))
        is_match = has_gram @ self._weights >= self._min_share * self._weights.sum() - 1e-9
        return np.where(is_match & has_gram.any(axis=1), scores, _NO_MATCH)

    def highest(self, product: float) -> float:
        """Return the score of a product: every n-gram adds as much to both."""
        return GRAM_WEIGHT * product * _SLACK


class VectorScorer:
    """Cosines."""

    part: Part = "vectors"

    def __init__(self, vector: npt.NDArray[np.float32]) -> None:
        self._vector = vector
        self._error = 1e-5  # of a product, the highest so far: some indexes compress vectors

    def score(self, chunks: Sequence[ScoredChunk], products: Scores | None, threshold: float) -> Scores:
        """Return the cosines of chunks, 0 without a vector."""
        scores: Scores = (stack_vectors(chunks, len(self._vector)) @ self._vector).astype(np.float64)
        if products is not None and len(products):
            self._error = max(self._error, float(np.abs(scores - products).max()))
        return scores

    def highest(self, product: float) -> float:
        """Return the highest cosine of chunks with at most this product."""
        return product + 2 * self._error


class BestChunks:
    """Collects scored chunks and returns the k best."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._chunks: list[ScoredChunk] = []
        self._scores: list[float] = []
        self.threshold = _NO_MATCH  # the k-th best score so far

    def add(self, chunks: Sequence[ScoredChunk], scores: npt.NDArray[Any]) -> None:
        """Add scored chunks, without those that do not match."""
        for chunk, score in zip(chunks, scores.tolist(), strict=True):
            if score != _NO_MATCH:
                self._chunks.append(chunk)
                self._scores.append(score)
        if len(self._scores) >= self._k:
            self.threshold = sorted(self._scores, reverse=True)[self._k - 1]

    @property
    def is_full(self) -> bool:
        """Return whether there are k chunks that match."""
        return len(self._chunks) >= self._k

    def ranking(self) -> Ranking:
        """Return the k best; the order of equal scores does not depend on Milvus."""
        keys = ((-score, chunk.tiebreak_order) for chunk, score in zip(self._chunks, self._scores, strict=True))
        best = sorted(zip(keys, (chunk.chunk_id for chunk in self._chunks), strict=True))[: self._k]
        return Ranking([row for _, row in best], [-score for (score, _), _ in best])


def term_keys(terms: Sequence[QueryTerm]) -> npt.NDArray[np.uint64]:
    """Return the keys of terms."""
    return np.array([term.key for term in terms], np.uint64)


def sum_of_groups(words: Sequence[QueryTerm], scores: Scores) -> Scores:
    """Return the sum of each row of scores; of the words of a group, only the highest counts."""
    columns: dict[int, list[int]] = {}
    for column, word in enumerate(words):
        columns.setdefault(word.group if word.group >= 0 else ~column, []).append(column)
    total = np.zeros(len(scores))
    for group in columns.values():
        total += scores[:, group].max(axis=1)
    return total


def stack_vectors(chunks: Sequence[ScoredChunk], size: int) -> npt.NDArray[np.float32]:
    """Return the vectors of chunks, zeros for one without a vector of this size."""
    vectors = np.zeros((len(chunks), size), np.float32)
    for position, scored in enumerate(chunks):
        if scored.vector is not None and len(scored.vector) == size:
            vectors[position] = scored.vector
    return vectors
