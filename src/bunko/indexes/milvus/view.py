"""Rank candidates from Milvus by what their rows say of them."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from heapq import nlargest
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from bunko.errors import IndexFailure
from bunko.indexes.milvus.cards import (
    USUAL_B,
    USUAL_K1,
    Card,
    CardReader,
    contain_grams,
    count_words,
    stack_vectors,
)
from bunko.indexes.milvus.dimensions import dimensions, term_dimensions
from bunko.indexes.milvus.filters import filter_expression
from bunko.indexes.milvus.server import MAX_RESULTS
from bunko.indexes.milvus.statistics import SearchStatistics
from bunko.indexes.moments import Moments
from bunko.indexes.term_weights import countable_terms, idf
from bunko.protocols import Store
from bunko.runtime.timing import timer
from bunko.text.sentence_codec import decode_sentences
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
    collection: str
    dimension: int
    average_length: float
    moments: Moments | None  # of its vectors; None if it has none or they are left out
    has_old_dates: bool  # of some documents


class PendingChunks(NamedTuple):
    """What is not copied yet: the chunks of some documents, and all documents whose rows are not to be searched."""

    cards: Sequence[Card]
    has_vectors: bool
    documents: Set[int]


class _Candidates(NamedTuple):
    """The rows that Milvus found, each with a product that its score is about as high as."""

    guesses: Mapping[int, float]
    products: Mapping[int, float]  # with a bounding vector
    rest: float  # no product that is missing is higher

    def batches(self, known_ids: Set[int], size: int) -> Iterator[tuple[Sequence[int], float]]:
        """Yield ids to read, with a product that no later id exceeds.

        The best guesses come first, then those with the highest products, each time twice as many.
        """
        ids = sorted(self.guesses.keys() - known_ids, key=self.guesses.__getitem__, reverse=True)
        yield ids[:size], inf
        ids = sorted(ids[size:], key=self.highest_product, reverse=True)
        while ids:
            yield ids[:size], self.highest_product(ids[0])
            ids, size = ids[size:], 2 * size

    def highest_product(self, row_id: int) -> float:
        """Return what no product of a row with a bounding vector is above."""
        return max(self.products.get(row_id, self.rest), self.rest)


class MilvusView:
    """The copies of some tools at one generation of the store; a row is a chunk id.

    Milvus finds candidates, by products of sparse or dense vectors. Those that the store no longer has are left out,
    and chunks that are not copied yet are added. All are scored here, by the cards in their rows, so that ranks do not
    depend on Milvus.
    """

    def __init__(
        self,
        # From collection, field, vectors, limit and expression to ids and products for each vector.
        search: Callable[[str, str, Sequence[Any], int, str], list[list[tuple[int, float]]]],
        reader: CardReader,
        store: Store,
        tool_ids: Sequence[int],
        without_vectors: Sequence[int],
        copies: Sequence[SearchedCopy],
        pending: Sequence[PendingChunks],
        statistics: SearchStatistics,
        on_unknown_rows: Callable[[], None],  # if Milvus has rows that the store does not have
        *,
        generation: int,
        candidates: int,
    ) -> None:
        self._search_collection, self._reader, self._store = search, reader, store
        self._tool_ids, self._without_vectors, self._copies = tool_ids, without_vectors, copies
        self._seen: dict[int, Card] = {}  # a row may be deleted while the search goes on
        self._statistics, self._on_unknown_rows, self._candidates = statistics, on_unknown_rows, candidates
        self._pending = {card.chunk_id: card for part in pending for card in part.cards}
        self._pending_with_vectors = [card for part in pending if part.has_vectors for card in part.cards]
        self._left_out = frozenset[int]().union(*(part.documents for part in pending))
        self._collections = list(dict.fromkeys(copy.collection for copy in copies))
        self._rows: list[int] | None = None
        self._has_unknown_rows = False  # it is said once, whichever arm finds them
        self.generation, self.size = generation, statistics.size
        self.notices: Sequence[str] = ()

    def rows(self) -> list[int]:
        """Return all rows, in the order they were written."""
        if self._rows is None:
            self._rows = sorted(row for tool_id in self._tool_ids for row in self._store.changes.chunk_ids(tool_id))
        return self._rows

    def chunk_ids(self, rows: Sequence[int]) -> list[int]:
        """Return the chunk ids of rows."""
        return list(rows)

    def tie_order(self, rows: Sequence[int]) -> list[int]:
        """Return the sort keys of rows among equal scores."""
        return [card.tiebreak_order for card in self._cards_of(rows)]

    def rank(
        self, terms: Sequence[QueryTerm], k: int, *, k1: float, b: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k best rows by BM25; n-grams, by presence, only add to the scores of rows that words found."""
        words, grams = _split(terms)
        if not words or not self.size:
            return EMPTY_RANKING
        statistics = self._statistics
        statistics.frequencies(term_dimensions(terms))  # all at once
        idfs, gram_idfs = statistics.idfs(words), statistics.idfs(grams)
        average = statistics.average_length
        ratio = max((highest_ratio(k1, b, average, copy.average_length) for copy in self._copies), default=1.0)
        scorer = WordScorer(words, idfs, grams, gram_idfs, k1=k1, b=b, average_length=average, ratio=ratio)
        return self._rank("sparse", word_queries(words, idfs, grams, gram_idfs), k, where, scorer)

    def max_score(self, terms: Sequence[QueryTerm], *, k1: float) -> float:
        """Return an upper bound of a row's score by words: the score of a row with unlimited occurrences of each."""
        words, _ = _split(terms)
        is_countable = countable_terms(words, self._statistics.frequencies(term_dimensions(words)))
        weights = np.array([[word.weight for word in words]]) * np.array(self._statistics.idfs(words)) * (k1 + 1)
        weights = np.where(is_countable, weights, 0.0)
        return float(sum_of_groups(words, weights)[0]) if words else 0.0

    def rank_grams(
        self, grams: Sequence[QueryTerm], k: int, *, min_share: float, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with the highest idf sum of n-grams, among rows with `min_share` of their weights."""
        if not grams or not self.size:
            return EMPTY_RANKING
        idfs = self._statistics.idfs(grams)
        scorer = GramScorer(grams, idfs, min_share=min_share)
        return self._rank("sparse", Queries([query_vector(grams, idfs)]), k, where, scorer)

    def rank_key_ranges(
        self, ranges: Sequence[tuple[int, int]], k: int, *, where: tuple[int, ...] | None = None
    ) -> Ranking:
        """Return the k rows with n-grams in the most key ranges (start, end); ranges rarer in `where` count more."""
        if not ranges or not self.size:
            return EMPTY_RANKING
        characters = dimensions(np.array([start for start, _ in ranges], np.uint64), "character")
        frequencies = self._statistics.frequencies(characters)
        query: dict[int, float] = {}
        for dimension, frequency in zip(characters.tolist(), frequencies, strict=True):
            query[dimension] = query.get(dimension, 0.0) + idf(self.size, frequency)
        cards = self._all_candidates(query, k, where)
        is_match = contain_grams(cards, characters)
        if len(cards) < self._candidates:  # these are all of them
            frequencies = is_match.sum(axis=0).tolist()
        scores = is_match @ np.array([GRAM_WEIGHT * idf(self.size, frequency) for frequency in frequencies])
        best = BestCards(k)
        best.add(cards, np.where(scores > 0, scores, _NO_MATCH))
        return best.ranking()

    def matches(self, terms: Sequence[QueryTerm], rows: Sequence[int]) -> list[list[bool]]:
        """Return for each row which of the terms it contains."""
        table: list[list[bool]] = (self._count(terms, self._cards_of(rows)) > 0).tolist()
        return table

    def term_scores(self, terms: Sequence[QueryTerm], rows: Sequence[int], *, k1: float, b: float) -> list[list[float]]:
        """Return for each row what each of the terms alone adds to its score, without regard to groups."""
        cards = self._cards_of(rows)
        counts = self._count(terms, cards)
        is_gram = np.array([term.is_gram for term in terms], bool)
        scores = np.where(is_gram, counts, saturate(counts, cards, k1, b, self._statistics.average_length) * (k1 + 1))
        weights = np.array([term.weight for term in terms]) * np.array(self._statistics.idfs(terms))
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
        scores: list[float] = (stack_vectors(self._comparable_cards(rows), len(vector)) @ vector).tolist()
        return scores

    def sentences(self, rows: Sequence[int]) -> list[SentenceSubwords | str | None]:
        """Return the subwords of each row's sentences, or its text if it was imported before they were kept."""
        cards = self._comparable_cards(rows)
        old = [card.chunk_id for card in cards if card.vector and not card.sentences]
        texts = self._store.changes.chunk_sentences(old) if old else {}
        return [decode_sentences(card.sentences) if card.sentences else texts.get(card.chunk_id) for card in cards]

    def _rank(self, field: str, queries: Queries, k: int, where: tuple[int, ...] | None, scorer: Scorer) -> Ranking:
        """Return the k best rows; candidates are read and scored until the others cannot be among them.

        Those that are gone or filtered out are made up for.
        """
        if where is not None and not where:
            return EMPTY_RANKING
        allowed, best = None if where is None else set(where), BestCards(k)
        pending = self._allowed_pending(field, allowed)
        best.add(pending, scorer.score(pending, None, best.threshold))
        first_limit = k + _MORE_THAN_WANTED
        # Products of dense vectors are nearly the final scores, so that fewer candidates do.
        wanted = max(_DENSE_FACTOR * k, _MIN_DENSE) if field == "dense" else max(self._candidates, 2 * k)
        wanted = min(max(wanted, first_limit), MAX_RESULTS)
        limit = wanted if field == "dense" else first_limit  # a graph finds more of the nearest if more are wanted
        scored_count = 0
        read_ids = set(self._pending)
        while True:
            candidates = self._candidates_of(field, queries, limit, where)
            for ids, product in candidates.batches(read_ids, first_limit):
                if best.threshold > scorer.highest(product):
                    return best.ranking()
                known = self._known_cards(ids).values()
                cards = [card for card in known if allowed is None or card.document_id in allowed]
                products = np.array([candidates.highest_product(card.chunk_id) for card in cards])
                best.add(cards, scorer.score(cards, products, best.threshold))
                read_ids.update(ids)
                scored_count += len(cards)
            are_all = candidates.rest == -inf
            if are_all or limit == MAX_RESULTS or best.threshold > scorer.highest(candidates.rest):
                return best.ranking()
            queries = queries._replace(hints=())
            if limit < wanted:
                limit = wanted
            elif queries.plain is not None and not best.is_full:
                queries = Queries([queries.plain])
            elif scored_count >= k:
                return best.ranking()
            else:
                limit = min(2 * limit, MAX_RESULTS)

    def _candidates_of(self, field: str, queries: Queries, limit: int, where: tuple[int, ...] | None) -> _Candidates:
        lists = self._search(field, [*queries.bounding, *queries.hints], limit, where)
        bounding, hints = lists[: len(queries.bounding)], lists[len(queries.bounding) :]
        products = _highest(bounding)
        rest = max((min(product for _, product in rows) for rows in bounding if len(rows) >= limit), default=-inf)
        return _Candidates(dict.fromkeys(products, -inf) | _highest(hints) if hints else products, products, rest)

    def _all_candidates(self, query: dict[int, float], k: int, where: tuple[int, ...] | None) -> list[Card]:
        """Return all candidates of a sparse query."""
        allowed = None if where is None else set(where)
        limit = min(max(self._candidates, 2 * k), MAX_RESULTS)
        while True:
            ids = [row_id for row_id, _ in self._search("sparse", [query], limit, where)[0]]
            known = self._known_cards([row_id for row_id in ids if row_id not in self._pending]).values()
            cards = [card for card in known if allowed is None or card.document_id in allowed]
            if len(cards) >= k or len(ids) < limit or limit == MAX_RESULTS:
                return cards + self._allowed_pending("sparse", allowed)
            limit = min(2 * limit, MAX_RESULTS)

    def _allowed_pending(self, field: str, allowed: set[int] | None) -> list[Card]:
        """Return the chunks that are not copied yet and that a filter allows."""
        pending = self._pending.values() if field == "sparse" else self._pending_with_vectors
        return [card for card in pending if allowed is None or card.document_id in allowed]

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
            lists = [[*rows, *answer] for rows, answer in zip(lists, answers, strict=True)]
        if len(tools_by_collection) > 1:
            lists = [nlargest(limit, rows, key=itemgetter(1)) for rows in lists]
        return lists

    def _known_cards(self, ids: Sequence[int]) -> dict[int, Card]:
        """Return the cards of those of the rows that Milvus found that the store has."""
        cards = self._reader.cards(ids, self._collections)
        known = {
            row_id: card
            for row_id, card in cards.items()
            if card.generation <= self.generation and card.document_id not in self._left_out
        }
        if len(known) < len(ids) and not self._has_unknown_rows:
            self._has_unknown_rows = True
            self._on_unknown_rows()
        self._seen |= known
        return known

    def _cards_of(self, rows: Sequence[int]) -> list[Card]:
        """Return the cards of rows of this view."""
        known = self._seen | self._pending
        if missing := [row for row in rows if row not in known]:
            known |= self._known_cards(missing)
        try:
            return [known[row] for row in rows]
        except KeyError:
            raise IndexFailure("The index has changed during the search", hint="Search again.") from None

    def _comparable_cards(self, rows: Sequence[int]) -> list[Card]:
        """Return the cards of rows, without vectors of tools whose vectors are left out."""
        return [
            card._replace(vector=b"", sentences=b"") if card.tool_id in self._without_vectors else card
            for card in self._cards_of(rows)
        ]

    def _count(self, terms: Sequence[QueryTerm], cards: Sequence[Card]) -> Scores:
        """Return how often each word is in each chunk, and 1 for each n-gram."""
        is_gram = np.array([term.is_gram for term in terms], bool)
        keys, counts = term_dimensions(terms), np.zeros((len(cards), len(terms)))
        counts[:, ~is_gram] = count_words(cards, keys[~is_gram])
        counts[:, is_gram] = contain_grams(cards, keys[is_gram])
        return counts


def _highest(lists: Sequence[Sequence[tuple[int, float]]]) -> dict[int, float]:
    """Return the highest product of each row."""
    return dict(sorted(itertools.chain.from_iterable(lists), key=itemgetter(1)))


def _split(terms: Sequence[QueryTerm]) -> tuple[list[QueryTerm], list[QueryTerm]]:
    """Return the words and the n-grams of a query."""
    return [term for term in terms if not term.is_gram], [term for term in terms if term.is_gram]


# A word has at most a handful of translations and synonyms that count, and the first three are most likely the best.
_MAX_VECTORS, _MAX_HINTS = 8, 3


class Queries(NamedTuple):
    """The vectors to search for: no score is higher than the highest product with a bounding vector."""

    bounding: Sequence[Any]
    hints: Sequence[Any] = ()  # whose best rows are likely to be among the best
    plain: Any = None  # without n-grams, in case that rows with nothing else crowd out the others


def query_vector(terms: Sequence[QueryTerm], idfs: Sequence[float]) -> dict[int, float]:
    """Return the weights of terms by dimension."""
    vector: dict[int, float] = {}
    for term, dimension, term_idf in zip(terms, term_dimensions(terms).tolist(), idfs, strict=True):
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
    return Queries([everything], by_rank[:_MAX_HINTS], plain)


_NO_MATCH = -np.inf
_LONGEST = 4  # chunks, in averages
# Products are rounded, and those of rows that were not read may differ from their scores a little more than those that
# were.
_SLACK = 1.001


class Scorer(Protocol):
    """Scores chunks; the product of their vectors in Milvus is a guess of the score."""

    def score(self, cards: Sequence[Card], products: Scores | None, threshold: float) -> Scores:
        """Return the scores of chunks, -inf if they do not match; one that cannot reach `threshold` may be lower."""

    def highest(self, product: float) -> float:
        """Return the highest score of chunks with at most this product, as far as those that were scored show."""


class WordScorer:
    """BM25 of words; n-grams, by presence, add to the scores of chunks that words found."""

    def __init__(
        self,
        words: Sequence[QueryTerm],
        idfs: Sequence[float],
        grams: Sequence[QueryTerm],
        gram_idfs: Sequence[float],
        *,
        k1: float,
        b: float,
        average_length: float,
        ratio: float,
    ) -> None:
        self._words, self._k1, self._b, self._average_length = words, k1, b, average_length
        self._weights = np.array([word.weight for word in words]) * np.array(idfs) * (k1 + 1)
        self._dimensions, self._gram_dimensions = term_dimensions(words), term_dimensions(grams)
        self._contributions = np.array([gram.weight for gram in grams]) * np.array(gram_idfs)
        # Of a score to its product, the highest so far: the average length may have changed since chunks were copied.
        self._ratio = ratio

    def score(self, cards: Sequence[Card], products: Scores | None, threshold: float) -> Scores:
        """Return the scores of chunks, -inf without any of the words."""
        counts = count_words(cards, self._dimensions)
        scores = self._weights * saturate(counts, cards, self._k1, self._b, self._average_length)
        scores = sum_of_groups(self._words, scores)
        is_match = scores > 0
        if len(self._gram_dimensions):
            reaches = np.flatnonzero(is_match & (scores + self._contributions.sum() >= threshold))
            selected = [cards[position] for position in reaches.tolist()]
            scores[reaches] += contain_grams(selected, self._gram_dimensions) @ self._contributions
        if products is not None and len(products):
            ratios = np.divide(scores, products, out=np.zeros_like(scores), where=products > 0)
            self._ratio = max(self._ratio, float(ratios.max()))
        return np.where(is_match, scores, _NO_MATCH)

    def highest(self, product: float) -> float:
        """Return the highest score of chunks with at most this product."""
        return product * self._ratio * _SLACK


def saturate(counts: Scores, cards: Sequence[Card], k1: float, b: float, average_length: float) -> Scores:
    """Return what each count of a word is worth in a chunk of its length, below 1."""
    lengths = np.array([card.length for card in cards], np.float64)[:, np.newaxis]
    norms = k1 * (1 - b + b * lengths / average_length)
    return np.divide(counts, counts + norms, out=np.zeros_like(counts), where=counts > 0)


def highest_ratio(k1: float, b: float, average_length: float, copied_average: float) -> float:
    """Return the highest ratio of a score to its product with rows of a copy, in chunks that are not very long.

    The ratio of a word's parts is monotone in its count and in the length, and that of an n-gram's is 1.
    """
    lengths = np.array([0.0, _LONGEST * max(average_length, copied_average)])
    copied = 1 + USUAL_K1 * (1 - USUAL_B + USUAL_B * lengths / copied_average)
    once = copied / (1 + k1 * (1 - b + b * lengths / average_length))
    return max(1.0, (k1 + 1) / (USUAL_K1 + 1) * max(1.0, float(once.max())))


class GramScorer:
    """The idf sum of n-grams, of chunks with `min_share` of their weights."""

    def __init__(self, grams: Sequence[QueryTerm], idfs: Sequence[float], *, min_share: float) -> None:
        self._dimensions = term_dimensions(grams)
        self._weights = np.array([gram.weight for gram in grams])
        self._idfs, self._min_share = np.array(idfs), min_share

    def score(self, cards: Sequence[Card], products: Scores | None, threshold: float) -> Scores:
        """Return the scores of chunks, -inf with too few of the n-grams."""
        has_gram = contain_grams(cards, self._dimensions)
        scores = GRAM_WEIGHT * (has_gram @ (self._weights * self._idfs))
        is_match = has_gram @ self._weights >= self._min_share * self._weights.sum() - 1e-9
        return np.where(is_match & has_gram.any(axis=1), scores, _NO_MATCH)

    def highest(self, product: float) -> float:
        """Return the score of a product: every n-gram adds as much to both."""
        return GRAM_WEIGHT * product * _SLACK


class VectorScorer:
    """Cosines."""

    def __init__(self, vector: npt.NDArray[np.float32]) -> None:
        self._vector = vector
        self._error = 1e-5  # of a product, the highest so far: some indexes compress vectors

    def score(self, cards: Sequence[Card], products: Scores | None, threshold: float) -> Scores:
        """Return the cosines of chunks, 0 without a vector."""
        scores: Scores = (stack_vectors(cards, len(self._vector)) @ self._vector).astype(np.float64)
        if products is not None and len(products):
            self._error = max(self._error, float(np.abs(scores - products).max()))
        return scores

    def highest(self, product: float) -> float:
        """Return the highest cosine of chunks with at most this product."""
        return product + 2 * self._error


class BestCards:
    """Collects scored chunks and returns the k best."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._found: list[tuple[float, int, int]] = []  # the score, negative, the order among equal ones, and the row
        self.threshold = _NO_MATCH  # the k-th best score so far

    def add(self, cards: Sequence[Card], scores: Scores) -> None:
        """Add scored chunks, without those that do not match."""
        for card, score in zip(cards, scores.tolist(), strict=True):
            if score != _NO_MATCH:
                self._found.append((-score, card.tiebreak_order, card.chunk_id))
        self._found.sort()
        if self.is_full:
            self.threshold = -self._found[self._k - 1][0]

    @property
    def is_full(self) -> bool:
        """Return whether there are k chunks that match."""
        return len(self._found) >= self._k

    def ranking(self) -> Ranking:
        """Return the k best; the order of equal scores does not depend on Milvus."""
        best = self._found[: self._k]
        return Ranking([row for _, _, row in best], [-score for score, _, _ in best])


def sum_of_groups(words: Sequence[QueryTerm], scores: Scores) -> Scores:
    """Return the sum of each row of scores; of the words of a group, only the highest counts."""
    columns: dict[int, list[int]] = {}
    for column, word in enumerate(words):
        columns.setdefault(word.group if word.group >= 0 else ~column, []).append(column)
    total = np.zeros(len(scores))
    for group in columns.values():
        total += scores[:, group].max(axis=1)
    return total
