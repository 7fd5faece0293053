"""Rank candidates from Milvus by the terms and vectors that the store has of them."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunko.indexes.milvus.chunks import ChunkReader, Part, ScoredChunk, contain_grams, count_terms, have_grams_between
from bunko.indexes.milvus.filters import filter_expression
from bunko.indexes.milvus.queries import Queries, query_vector, word_queries
from bunko.indexes.milvus.scoring import (
    BestChunks,
    GramScorer,
    Scorer,
    VectorScorer,
    WordScorer,
    stack_vectors,
    sum_of_groups,
    term_keys,
)
from bunko.indexes.milvus.server import MAX_RESULTS
from bunko.indexes.milvus.statistics import SearchStatistics, dimension_of
from bunko.indexes.moments import Moments
from bunko.indexes.nearest_sentence import best_sentence
from bunko.indexes.term_weights import countable_terms, idf
from bunko.runtime.timing import timer
from bunko.types.records import EMPTY_RANKING, GRAM_WEIGHT, NearestRows, QueryTerm, Ranking, SentenceMatch

if TYPE_CHECKING:
    import numpy.typing as npt

_log = logging.getLogger("bunko.search")

_DENSE_FACTOR, _MIN_DENSE = 4, 100
# Candidates that are read first, in addition to as many as are wanted.
_MORE_THAN_WANTED = 20


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


class _Candidates(NamedTuple):
    """The rows that Milvus found."""

    products: Mapping[int, float]  # by id, the highest first
    hints: Sequence[Sequence[tuple[int, float]]]
    are_all: bool  # there are no others with any of the terms

    def batches(self, known_ids: Set[int], size: int) -> Iterator[tuple[Sequence[int], float]]:
        """Yield ids to read, with a product that no later id exceeds.

        The hints come first, then those with the highest products, each time twice as many.
        """
        first = dict.fromkeys(row_id for hints in self.hints for row_id, _ in hints if row_id not in known_ids)
        if first:
            yield list(first), inf
        ids = [row_id for row_id in self.products if row_id not in known_ids and row_id not in first]
        while ids:
            yield ids[:size], self.products[ids[0]]
            ids, size = ids[size:], 2 * size


class MilvusView:
    """The copies of some tools at one generation of the store; a row is a chunk id.

    Milvus finds candidates, by products of sparse or dense vectors. Those that the store no longer has are left out,
    and chunks that are not copied yet are added. All are scored here, so that ranks do not depend on Milvus.
    """

    def __init__(
        self,
        # From collection, field, vectors, limit and expression to ids and products for each vector.
        search: Callable[[str, str, Sequence[Any], int, str], list[list[tuple[int, float]]]],
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
        self._pending = {scored.chunk_id: scored for part in pending for scored in part.chunks}
        self._pending_with_vectors = [scored for part in pending if part.has_vectors for scored in part.chunks]
        self._list_rows, self._on_unknown_rows, self._candidates = list_rows, on_unknown_rows, candidates
        self._rows: list[int] | None = None
        self._has_unknown_rows = False  # it is said once, whichever arm finds them
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
        chunks = self._read(rows, "terms")
        return [chunks[row].tiebreak_order for row in rows]

    def rank(
        self, terms: Sequence[QueryTerm], k: int, *, k1: float, b: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k best rows by BM25; n-grams, by presence, only add to the scores of rows that words found."""
        words, grams = _split(terms)
        if not words or not self.size:
            return EMPTY_RANKING
        statistics = self._statistics
        statistics.load(terms)
        idfs, gram_idfs = statistics.idfs(words), statistics.idfs(grams)
        scorer = WordScorer(
            words, idfs, grams, gram_idfs, self._add_texts,
            k1=k1, b=b, average_length=statistics.average_length,
        )  # fmt: skip
        return self._rank("sparse", word_queries(words, idfs, grams, gram_idfs), k, where, scorer)

    def max_score(self, terms: Sequence[QueryTerm], *, k1: float) -> float:
        """Return an upper bound of a row's score by words: the score of a row with unlimited occurrences of each."""
        words, _ = _split(terms)
        self._statistics.load(words)
        is_countable = countable_terms(words, self._statistics.frequencies(words))
        weights = np.array([[word.weight for word in words]]) * np.array(self._statistics.idfs(words)) * (k1 + 1)
        weights = np.where(is_countable, weights, 0.0)
        return float(sum_of_groups(words, weights)[0]) if words else 0.0

    def rank_grams(
        self, grams: Sequence[QueryTerm], k: int, *, min_share: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with the highest idf sum of n-grams, among rows with `min_share` of their weights."""
        if not grams or not self.size:
            return EMPTY_RANKING
        self._statistics.load(grams)
        idfs = self._statistics.idfs(grams)
        scorer = GramScorer(grams, idfs, min_share=min_share)
        return self._rank("sparse", Queries([query_vector(grams, idfs)]), k, where, scorer)

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
        chunks = self._find_candidates(query, k, where)
        is_match = have_grams_between(chunks, ranges)
        if len(chunks) < self._candidates:  # these are all of them
            frequencies = [int(count) for count in is_match.sum(axis=0)]
        scores = is_match @ np.array([GRAM_WEIGHT * idf(self.size, frequency) for frequency in frequencies])
        best = BestChunks(k)
        best.add(chunks, np.where(scores > 0, scores, -np.inf))
        return best.ranking()

    def matches(self, terms: Sequence[QueryTerm], rows: Sequence[int]) -> list[list[bool]]:
        """Return for each row which of the terms it contains."""
        by_id = self._read(rows, "terms")
        chunks = [by_id[row] for row in rows]
        is_gram = np.array([term.is_gram for term in terms], bool)
        is_match = count_terms(chunks, term_keys(terms)) > 0
        if is_gram.any():
            self._add_texts(chunks)
            is_match[:, is_gram] = contain_grams(chunks, term_keys(terms)[is_gram])
        table: list[list[bool]] = is_match.tolist()
        return table

    def term_scores(self, terms: Sequence[QueryTerm], rows: Sequence[int], *, k1: float, b: float) -> list[list[float]]:
        """Return for each row what each of the terms alone adds to its score, without regard to groups."""
        words, grams = _split(terms)
        self._statistics.load(terms)
        by_id = self._read(rows, "terms")
        chunks = [by_id[row] for row in rows]
        weights = np.array([term.weight for term in terms]) * np.array(self._statistics.idfs(terms))
        counts = count_terms(chunks, term_keys(words))
        lengths = np.array([[chunk.length] for chunk in chunks]).reshape(len(chunks), 1)
        norms = k1 * (1 - b + b * lengths / self._statistics.average_length)
        scores = np.divide((k1 + 1) * counts, counts + norms, out=np.zeros_like(counts), where=counts > 0)
        if grams:
            self._add_texts(chunks)
            scores = np.hstack((scores, contain_grams(chunks, term_keys(grams))))
        table: list[list[float]] = (scores * weights).tolist()
        return table

    def nearest(self, vector: npt.NDArray[np.float32], k: int, *, where: tuple[int, ...] | None = None) -> NearestRows:
        """Return the k rows with the highest cosine, without the rows of tools that have no vectors."""
        size = len(vector)
        ranking = self._rank("dense", Queries([vector.tolist()]), k, where, VectorScorer(vector))
        moments = [copy.moments for copy in self._copies if copy.moments and len(copy.moments.total) == size]
        total = sum(moments, Moments.of(stack_vectors(self._pending_with_vectors, size)))
        return NearestRows(ranking, vector, *total.mean_and_spread(vector))

    def cosines(self, vector: npt.NDArray[np.float32], rows: Sequence[int]) -> list[float]:
        """Return the cosines of rows; 0 without a vector."""
        by_id = self._read(rows, "vectors")
        scores: list[float] = (stack_vectors([by_id[row] for row in rows], len(vector)) @ vector).tolist()
        return scores

    def best_sentences(self, vector: npt.NDArray[np.float32], rows: Sequence[int]) -> list[SentenceMatch | None]:
        """Return for each row its sentence with the highest cosine; None if its embedder computes none."""
        by_id = self._read(rows, "sentences")
        return [best_sentence(by_id[row].sentences, vector) if row in by_id else None for row in rows]

    def _rank(self, field: str, queries: Queries, k: int, where: tuple[int, ...] | None, scorer: Scorer) -> Ranking:
        """Return the k best rows; candidates are read and scored until the others cannot be among them.

        Those that are gone or filtered out are made up for.
        """
        if where is not None and not where:
            return EMPTY_RANKING
        allowed, best = None if where is None else set(where), BestChunks(k)
        pending = self._allowed_pending(field, allowed)
        best.add(pending, scorer.score(pending, None, best.threshold))
        # Products of dense vectors are nearly the final scores, so that fewer candidates do.
        wanted = max(_DENSE_FACTOR * k, _MIN_DENSE) if field == "dense" else max(self._candidates, 2 * k)
        limit = min(max(wanted // len(queries.bounding), k + _MORE_THAN_WANTED), MAX_RESULTS)
        scored_count = 0
        read_ids = set(self._pending)
        while True:
            candidates = self._candidates_of(field, queries, k, limit, where)
            for ids, product in candidates.batches(read_ids, k + _MORE_THAN_WANTED):
                if best.threshold > scorer.highest(product):
                    return best.ranking()
                known = self._read_known(ids, scorer.part)
                chunks = [scored for scored in known if allowed is None or scored.document_id in allowed]
                products = np.array([candidates.products.get(scored.chunk_id, inf) for scored in chunks])
                best.add(chunks, scorer.score(chunks, products, best.threshold))
                read_ids.update(ids)
                scored_count += len(chunks)
            if queries.plain is not None and not best.is_full and not candidates.are_all:
                queries = Queries([queries.plain])
            elif scored_count >= k or candidates.are_all or limit == MAX_RESULTS:
                return best.ranking()
            else:
                limit = min(2 * limit, MAX_RESULTS)

    def _candidates_of(
        self, field: str, queries: Queries, k: int, limit: int, where: tuple[int, ...] | None
    ) -> _Candidates:
        lists = self._search(field, queries.bounding, limit, where)
        products: dict[int, float] = {}
        for row_id, product in sorted(itertools.chain.from_iterable(lists), key=lambda row: row[1], reverse=True):
            products.setdefault(row_id, product)
        hints = self._search(field, queries.hints, k, where) if queries.hints else []
        return _Candidates(products, hints, all(len(rows) < limit for rows in lists))

    def _find_candidates(self, query: dict[int, float], k: int, where: tuple[int, ...] | None) -> list[ScoredChunk]:
        """Return all candidates of a sparse query, with their texts."""
        allowed = None if where is None else set(where)
        limit = min(max(self._candidates, 2 * k), MAX_RESULTS)
        while True:
            candidates = [chunk_id for chunk_id, _ in self._search("sparse", [query], limit, where)[0]]
            chunks = [
                scored
                for scored in self._read_known([row for row in candidates if row not in self._pending], "texts")
                if allowed is None or scored.document_id in allowed
            ]
            if len(chunks) >= k or len(candidates) < limit or limit == MAX_RESULTS:
                return chunks + self._allowed_pending("sparse", allowed)
            limit = min(2 * limit, MAX_RESULTS)

    def _allowed_pending(self, field: str, allowed: set[int] | None) -> list[ScoredChunk]:
        """Return the chunks that are not copied yet and that a filter allows."""
        pending = self._pending.values() if field == "sparse" else self._pending_with_vectors
        return [scored for scored in pending if allowed is None or scored.document_id in allowed]

    def _search(
        self, field: str, vectors: Sequence[Any], limit: int, where: tuple[int, ...] | None
    ) -> list[list[tuple[int, float]]]:
        """Return for each vector the rows with the highest products in the collections of this view."""
        tools_by_collection: dict[str, list[int]] = {}
        for copy in self._copies:
            if field == "sparse" or (copy.moments is not None and copy.dimension == len(vectors[0])):
                tools_by_collection.setdefault(copy.collection, []).append(copy.tool_id)
        lists: list[list[tuple[int, float]]] = [[] for _ in vectors]
        with_dates = not any(copy.has_old_dates for copy in self._copies)
        for collection, tool_ids in tools_by_collection.items():
            expression = filter_expression(tool_ids, where, with_dates=with_dates)
            with timer("milvus_query", _log):
                answers = self._search_collection(collection, field, vectors, limit, expression)
            for rows, answer in zip(lists, answers, strict=True):
                rows += answer
        return lists

    def _add_texts(self, chunks: Sequence[ScoredChunk]) -> None:
        missing = [chunk for chunk in chunks if chunk.text is None]
        texts = self._read([chunk.chunk_id for chunk in missing], "texts")
        for chunk in missing:  # the reader may have forgotten them, and read others
            chunk.text = texts[chunk.chunk_id].text

    def _read_known(self, ids: Sequence[int], part: Part) -> Iterable[ScoredChunk]:
        """Return those of the chunks that Milvus found that the store has, with a part of them."""
        chunks = self._reader.read(ids, part, self.generation)
        if len(chunks) < len(ids) and not self._has_unknown_rows:
            self._has_unknown_rows = True
            self._on_unknown_rows()
        return chunks.values()

    def _read(self, ids: Sequence[int], part: Part) -> Mapping[int, ScoredChunk]:
        """Return the chunks of rows by id, with a part of them."""
        copied = [chunk_id for chunk_id in ids if chunk_id not in self._pending]
        chunks = self._reader.read(copied, part, self.generation)
        chunks |= {chunk_id: self._pending[chunk_id] for chunk_id in ids if chunk_id in self._pending}
        if len(chunks) < len(set(ids)):
            raise KeyError("a row is not in the store")
        return chunks


def _split(terms: Sequence[QueryTerm]) -> tuple[list[QueryTerm], list[QueryTerm]]:
    """Return the words and the n-grams of a query."""
    return [term for term in terms if not term.is_gram], [term for term in terms if term.is_gram]
