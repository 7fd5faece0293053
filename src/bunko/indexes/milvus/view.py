"""Rank candidates from Milvus by the terms and vectors that the store has of them."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from bunko.indexes.milvus.chunks import ChunkReader, Part, ScoredChunk, contain_grams, count_terms, have_grams_between
from bunko.indexes.milvus.dimensions import USUAL_B, USUAL_K1, dimension_of
from bunko.indexes.milvus.filters import filter_expression
from bunko.indexes.milvus.server import MAX_RESULTS
from bunko.indexes.milvus.statistics import SearchStatistics
from bunko.indexes.moments import Moments
from bunko.indexes.term_weights import countable_terms, idf
from bunko.runtime.timing import timer
from bunko.types.records import EMPTY_RANKING, GRAM_WEIGHT, NearestRows, QueryTerm, Ranking

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import SentenceSubwords

    Scores = npt.NDArray[np.float64]


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

    def sentences(self, rows: Sequence[int]) -> list[SentenceSubwords | str | None]:
        """Return the subwords of each row's sentences, or its text if it was imported before they were kept."""
        by_id = self._read(rows, "sentences")
        return [by_id[row].sentences if row in by_id else None for row in rows]

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


# A word has at most a handful of translations and synonyms that count.
_MAX_VECTORS = 8


class Queries(NamedTuple):
    """The vectors to search for: no score is higher than the highest product with a bounding vector."""

    bounding: Sequence[Any]
    hints: Sequence[Any] = ()  # whose best rows are likely to be among the best
    plain: Any = None  # without n-grams, in case that rows with nothing else crowd out the others


def query_vector(terms: Sequence[QueryTerm], idfs: Sequence[float]) -> dict[int, float]:
    """Return the weights of terms by dimension."""
    vector: dict[int, float] = {}
    for term, term_idf in zip(terms, idfs, strict=True):
        dimension = dimension_of(term.key, "gram" if term.is_gram else "word")
        vector[dimension] = vector.get(dimension, 0.0) + term.weight * term_idf
    return vector


def word_queries(
    words: Sequence[QueryTerm], idfs: Sequence[float], grams: Sequence[QueryTerm], gram_idfs: Sequence[float]
) -> Queries:
    """Return the vectors that find the chunks with the best words of each group, and n-grams."""
    groups: dict[int, list[int]] = {}
    for position, word in enumerate(words):
        groups.setdefault(word.group if word.group >= 0 else ~position, []).append(position)
    for positions in groups.values():
        positions.sort(key=lambda position: words[position].weight * idfs[position], reverse=True)
    gram_vector = query_vector(grams, gram_idfs)

    def vector_of(positions: Sequence[int]) -> dict[int, float]:
        return query_vector([words[position] for position in positions], [idfs[position] for position in positions]) | (
            gram_vector
        )

    everything = vector_of(range(len(words)))
    plain = query_vector(words, idfs) if grams else None
    ranks = min(max(map(len, groups.values())), _MAX_VECTORS)
    if ranks == 1:
        return Queries([everything], plain=plain)
    by_rank = []
    for rank in range(ranks):
        # The last vector has all that are left, so that no product is lower than a score.
        end = None if rank == _MAX_VECTORS - 1 else rank + 1
        by_rank.append(vector_of([position for group in groups.values() for position in group[rank:end] or group[-1:]]))
    if sum(len(group) > 1 for group in groups.values()) == 1:
        return Queries(by_rank, plain=plain)
    return Queries([everything], by_rank, plain)


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
        # Of a score to its product, the highest so far: the average length may have changed since chunks were copied.
        self._ratio = _highest_ratio(k1, b)

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


def _highest_ratio(k1: float, b: float) -> float:
    """Return the highest ratio of BM25 with these constants to BM25 with the usual ones, in texts of usual lengths."""
    counts, lengths = np.array([[1.0], [2.0], [4.0], [16.0], [256.0]]), np.array([0.1, 0.5, 1.0, 2.0, 4.0])

    def weights(k1: float, b: float) -> npt.NDArray[np.float64]:
        return (k1 + 1) * counts / (counts + k1 * (1 - b + b * lengths))

    return float((weights(k1, b) / weights(USUAL_K1, USUAL_B)).max())


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
