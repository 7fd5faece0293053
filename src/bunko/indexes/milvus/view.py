"""Rank candidates from Milvus by the terms and vectors that the store has of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunko.indexes.milvus.chunks import ChunkReader, ScoredChunk, contain_grams, count_terms
from bunko.indexes.milvus.filters import filter_expression
from bunko.indexes.milvus.server import MAX_RESULTS
from bunko.indexes.milvus.statistics import SearchStatistics, dimension_of, idf
from bunko.indexes.moments import Moments
from bunko.records import EMPTY_RANKING, GRAM_WEIGHT, NearestRows, QueryTerm, Ranking
from bunko.timing import timer

if TYPE_CHECKING:
    import numpy.typing as npt

_log = logging.getLogger("bunko.search")

_DENSE_FACTOR, _MIN_DENSE = 4, 100


class SearchedCopy(NamedTuple):
    """The copy of a tool that a view searches."""

    tool_id: int
    id: str
    collection: str
    dimension: int
    moments: Moments | None  # of its vectors; None if it has none or they are left out
    has_old_dates: bool  # of some documents


class PendingChunks(NamedTuple):
    """Chunks of a tool that are not copied yet."""

    chunks: Sequence[ScoredChunk]
    has_vectors: bool


class MilvusView:
    """The copies of some tools at one generation of the store; a row is a chunk id.

    Milvus finds candidates, by products of sparse or dense vectors. Those that the store no longer has are left out,
    and chunks that are not copied yet are added. All are scored here, so that ranks do not depend on Milvus.
    """

    def __init__(
        self,
        search: Callable[[str, str, Any, int, str], list[int]],  # collection, field, vector, limit, expression
        reader: ChunkReader,
        copies: Sequence[SearchedCopy],
        pending: Sequence[PendingChunks],
        statistics: SearchStatistics,
        list_rows: Callable[[], list[int]],
        on_unknown_rows: Callable[[], None],  # if Milvus has rows that the store does not have
        *,
        generation: int,
        candidates: int,
    ) -> None:
        self._search_collection, self._reader, self._copies, self._statistics = search, reader, copies, statistics
        self._pending = {scored.chunk.chunk_id: scored for part in pending for scored in part.chunks}
        self._pending_with_vectors = [scored for part in pending if part.has_vectors for scored in part.chunks]
        self._list_rows, self._on_unknown_rows, self._candidates = list_rows, on_unknown_rows, candidates
        self._rows: list[int] | None = None
        self.generation, self.size = generation, statistics.size
        self.notices: Sequence[str] = ()

    def rows(self) -> list[int]:
        """Return all rows, in the order they were written."""
        if self._rows is None:
            self._rows = self._list_rows()
        return self._rows

    def chunk_ids(self, rows: Sequence[int]) -> list[int]:
        """Return the chunk ids of rows."""
        return list(rows)

    def tie_order(self, rows: Sequence[int]) -> list[int]:
        """Return the sort keys of rows among equal scores."""
        chunks = self._read(rows)
        return [chunks[row].chunk.tiebreak_order for row in rows]

    def rank(
        self, terms: Sequence[QueryTerm], k: int, *, k1: float, b: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k best rows by BM25; n-grams, by presence, only add to the scores of rows that words found."""
        words, grams = _split(terms)
        if not words or not self.size:
            return EMPTY_RANKING
        self._statistics.load(terms)
        idfs = self._statistics.idfs(words)
        query = _query_vector(words, idfs, "word")
        chunks = self._find_candidates("sparse", query, k, where)
        scores = self._word_scores(chunks, words, idfs, k1, b)
        chunks, scores = _select(chunks, scores, scores > 0)
        if grams and chunks:
            contributions = np.array([gram.weight for gram in grams]) * np.array(self._statistics.idfs(grams))
            if len(scores) > k:  # the others cannot reach the best k
                threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
                chunks, scores = _select(chunks, scores, scores + contributions.sum() >= threshold)
            scores = scores + contain_grams(chunks, _keys(grams)) @ contributions
        return _best(chunks, scores, k)

    def max_score(self, terms: Sequence[QueryTerm], *, k1: float) -> float:
        """Return an upper bound of a row's score by words: the score of a row with unlimited occurrences of each."""
        words, _ = _split(terms)
        self._statistics.load(words)
        weights = np.array([[word.weight for word in words]]) * np.array(self._statistics.idfs(words)) * (k1 + 1)
        return float(_sum_of_groups(words, weights)[0]) if words else 0.0

    def rank_grams(
        self, grams: Sequence[QueryTerm], k: int, *, min_share: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with the highest idf sum of n-grams, among rows with `min_share` of their weights."""
        if not grams or not self.size:
            return EMPTY_RANKING
        self._statistics.load(grams)
        idfs = self._statistics.idfs(grams)
        chunks = self._find_candidates("sparse", _query_vector(grams, idfs, "gram"), k, where)
        weights = np.array([gram.weight for gram in grams])
        has_gram = contain_grams(chunks, _keys(grams))
        scores = GRAM_WEIGHT * (has_gram @ (weights * np.array(idfs)))
        is_match = has_gram @ weights >= min_share * weights.sum() - 1e-9
        return _best(*_select(chunks, scores, is_match & has_gram.any(axis=1)), k)

    def rank_key_ranges(
        self, ranges: Sequence[tuple[int, int]], k: int, *, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with n-grams in the most key ranges (start, end); ranges rarer in `where` count more."""
        if not ranges or not self.size:
            return EMPTY_RANKING
        frequencies = [self._statistics.frequency(start, "character") for start, _ in ranges]
        query: dict[int, float] = {}
        for (start, _), frequency in zip(ranges, frequencies, strict=True):
            dimension = dimension_of(start, "character")
            query[dimension] = query.get(dimension, 0.0) + idf(self.size, frequency)
        chunks = self._find_candidates("sparse", query, k, where)
        is_match = np.array(
            [[_has_key_between(scored, start, end) for start, end in ranges] for scored in chunks], bool
        ).reshape(len(chunks), len(ranges))
        if len(chunks) < self._candidates:  # these are all of them
            frequencies = [int(count) for count in is_match.sum(axis=0)]
        scores = is_match @ np.array([GRAM_WEIGHT * idf(self.size, frequency) for frequency in frequencies])
        return _best(*_select(chunks, scores, scores > 0), k)

    def matches(self, terms: Sequence[QueryTerm], rows: Sequence[int]) -> list[list[bool]]:
        """Return for each row which of the terms it contains."""
        by_id = self._read(rows)
        chunks = [by_id[row] for row in rows]
        keys, is_gram = _keys(terms), np.array([term.is_gram for term in terms], bool)
        is_match = count_terms(chunks, keys) > 0
        if is_gram.any():
            is_match[:, is_gram] = contain_grams(chunks, keys[is_gram])
        table: list[list[bool]] = is_match.tolist()
        return table

    def nearest(self, vector: npt.NDArray[np.float32], k: int, *, where: tuple[int, ...] | None = None) -> NearestRows:
        """Return the k rows with the highest cosine, without the rows of tools that have no vectors."""
        size = len(vector)
        chunks = self._find_candidates("dense", vector.tolist(), k, where)
        scores = _products(chunks, vector)
        moments = [copy.moments for copy in self._copies if copy.moments and len(copy.moments.total) == size]
        total = sum(moments, Moments.of(_stack(self._pending_with_vectors, size)))
        return NearestRows(_best(chunks, scores, k), vector, *total.mean_and_spread(vector))

    def cosines(self, vector: npt.NDArray[np.float32], rows: Sequence[int]) -> list[float]:
        """Return the cosines of rows; 0 without a vector."""
        by_id = self._read(rows)
        scores: list[float] = _products([by_id[row] for row in rows], vector).tolist()
        return scores

    def _find_candidates(self, field: str, query: Any, k: int, where: tuple[int, ...] | None) -> list[ScoredChunk]:
        """Return chunks that may be among the k best; those that are gone or filtered out are made up for."""
        if where is not None and not where:
            return []
        allowed = None if where is None else set(where)
        # Products of dense vectors are nearly the final scores, so that fewer candidates do.
        wanted = max(_DENSE_FACTOR * k, _MIN_DENSE) if field == "dense" else max(self._candidates, 2 * k)
        limit = min(wanted, MAX_RESULTS)
        while True:
            found = self._search(field, query, limit, where)
            known = self._read(found, complete=False)
            if len(known) < len(found):
                self._on_unknown_rows()
            chunks = [
                scored
                for chunk_id, scored in known.items()
                if chunk_id not in self._pending and (allowed is None or scored.chunk.document_id in allowed)
            ]
            if len(chunks) >= k or len(found) < limit or limit == MAX_RESULTS:
                break
            limit = min(2 * limit, MAX_RESULTS)
        pending = self._pending.values() if field == "sparse" else self._pending_with_vectors
        return chunks + [scored for scored in pending if allowed is None or scored.chunk.document_id in allowed]

    def _search(self, field: str, query: Any, limit: int, where: tuple[int, ...] | None) -> list[int]:
        """Return the ids of the rows with the highest products in the collections of this view."""
        tools_by_collection: dict[str, list[int]] = {}
        for copy in self._copies:
            if field == "sparse" or (copy.moments is not None and copy.dimension == len(query)):
                tools_by_collection.setdefault(copy.collection, []).append(copy.tool_id)
        ids: list[int] = []
        with_dates = not any(copy.has_old_dates for copy in self._copies)
        for collection, tool_ids in tools_by_collection.items():
            expression = filter_expression(tool_ids, where, with_dates=with_dates)
            with timer("milvus_query", _log):
                ids += self._search_collection(collection, field, query, limit, expression)
        return ids

    def _read(self, ids: Sequence[int], *, complete: bool = True) -> Mapping[int, ScoredChunk]:
        """Return chunks by id; with `complete`, ids that the store does not have are an error."""
        chunks = self._reader.read([chunk_id for chunk_id in ids if chunk_id not in self._pending], self.generation)
        chunks |= {chunk_id: self._pending[chunk_id] for chunk_id in ids if chunk_id in self._pending}
        if complete and len(chunks) < len(set(ids)):
            raise KeyError("a row is not in the store")
        return chunks

    def _word_scores(
        self, chunks: Sequence[ScoredChunk], words: Sequence[QueryTerm], idfs: Sequence[float], k1: float, b: float
    ) -> npt.NDArray[np.float64]:
        counts = count_terms(chunks, _keys(words))
        lengths = np.array([[scored.length] for scored in chunks]).reshape(len(chunks), 1)
        norms = k1 * (1 - b + b * lengths / self._statistics.average_length)
        weights = np.array([word.weight for word in words]) * np.array(idfs) * (k1 + 1)
        scores = np.divide(weights * counts, counts + norms, out=np.zeros_like(counts), where=counts > 0)
        return _sum_of_groups(words, scores)


def _split(terms: Sequence[QueryTerm]) -> tuple[list[QueryTerm], list[QueryTerm]]:
    """Return the words and the n-grams of a query."""
    return [term for term in terms if not term.is_gram], [term for term in terms if term.is_gram]


def _keys(terms: Sequence[QueryTerm]) -> npt.NDArray[np.uint64]:
    return np.array([term.key for term in terms], np.uint64)


def _query_vector(terms: Sequence[QueryTerm], idfs: Sequence[float], kind: Any) -> dict[int, float]:
    """Return the weights of terms by dimension."""
    vector: dict[int, float] = {}
    for term, term_idf in zip(terms, idfs, strict=True):
        dimension = dimension_of(term.key, kind)
        vector[dimension] = vector.get(dimension, 0.0) + term.weight * term_idf
    return vector


def _sum_of_groups(words: Sequence[QueryTerm], scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the sum of each row of scores; of the words of a group, only the highest counts."""
    columns: dict[int, list[int]] = {}
    for column, word in enumerate(words):
        columns.setdefault(word.group if word.group >= 0 else ~column, []).append(column)
    total = np.zeros(len(scores))
    for group in columns.values():
        total += scores[:, group].max(axis=1)
    return total


def _select(
    chunks: Sequence[ScoredChunk], scores: npt.NDArray[np.float64], mask: npt.NDArray[np.bool_]
) -> tuple[list[ScoredChunk], npt.NDArray[np.float64]]:
    return [scored for scored, is_selected in zip(chunks, mask, strict=True) if is_selected], scores[mask]


def _best(chunks: Sequence[ScoredChunk], scores: npt.NDArray[Any], k: int) -> Ranking:
    """Return the k rows with the highest scores."""
    orders = (scored.chunk.tiebreak_order for scored in chunks)
    ids = (scored.chunk.chunk_id for scored in chunks)
    best = sorted(zip((-scores).tolist(), orders, ids, strict=True))[:k]
    return Ranking([row for _, _, row in best], [-score for score, _, _ in best])


def _has_key_between(scored: ScoredChunk, start: int, end: int) -> bool:
    first, last = np.searchsorted(scored.gram_keys, np.array([start, end], np.uint64))
    return bool(first < last)


def _products(chunks: Sequence[ScoredChunk], vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the product of each chunk's vector with a vector, 0 without one."""
    products: npt.NDArray[np.float32] = _stack(chunks, len(vector)) @ vector
    return products


def _stack(chunks: Sequence[ScoredChunk], size: int) -> npt.NDArray[np.float32]:
    vectors = np.zeros((len(chunks), size), np.float32)
    for position, scored in enumerate(chunks):
        vector = scored.chunk.vector
        if vector is not None and len(vector) == size:
            vectors[position] = vector
    return vectors
