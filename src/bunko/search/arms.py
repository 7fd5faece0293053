"""Rank rows by each arm of a search: by words and n-grams, and by vectors."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from bunko.embedders.embed import embed_and_check
from bunko.errors import QueryError
from bunko.protocols import Embedder, IndexView
from bunko.runtime.timing import timer
from bunko.search import fusion
from bunko.search.fusion import AdaptiveWeights
from bunko.search.query_analysis import QueryAnalysis
from bunko.search.request import RankRequest
from bunko.search.similarity import CloseReading
from bunko.text import ngrams
from bunko.types.records import EMPTY_RANKING, NearestRows, QueryTerm, Ranking

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_log = logging.getLogger("bunko.search")

# A row found by n-grams alone must contain this share of the query's n-grams, or unrelated texts would match.
_MIN_GRAM_OVERLAP = 0.5
# Hiragana bigrams count half: 食べる and 比べる share one, and nothing else.
_HIRAGANA_WEIGHT = 0.5
# A hit by n-grams alone scores well below every hit by words, also after normalisation.
_GRAM_ONLY_FACTOR = 0.5
# The best rows by words are looked at to tell words from their translations.
_READ_FOR_WORDS = 60
# A row with every word of a query covers at least this share of it, however long the row is.
_MIN_COVERAGE = 0.6


class Arms(NamedTuple):
    """The rankings of a search before they are fused; an arm that the search does not use is empty."""

    lexical: Ranking
    nearest: NearestRows | None

    @property
    def semantic(self) -> Ranking:
        """Return the ranking by vectors."""
        return self.nearest.ranking if self.nearest else EMPTY_RANKING


class FusedScores(NamedTuple):
    """The scores of rows by each arm and in the end."""

    lexical: Mapping[int, float]
    semantic: Mapping[int, float]  # the similarities of the rows that vectors found
    final: Mapping[int, float]
    similar: Mapping[int, float] = MappingProxyType({})  # the similarities of all rows whose final score has one
    lost: Mapping[int, float] = MappingProxyType({})  # what is taken from each similarity for words that are not near
    reading: CloseReading = CloseReading(MappingProxyType({}))

    def by_meaning(self) -> dict[int, float]:
        """Return what the rows that vectors found are ranked by: their similarities, less what each has lost."""
        return {row: fusion.take_away(score, self.lost.get(row, 0.0)) for row, score in self.semantic.items()}


def rank_lexical(
    view: IndexView, analysis: QueryAnalysis, k: int, *, k1: float, b: float, where: tuple[int, ...] | None = None
) -> Ranking:
    """Return the k best rows by words, filled up with rows found by grams if words find too few."""
    ranking = view.rank(analysis.terms, max(k, _READ_FOR_WORDS), k1=k1, b=b, where=where)
    ranking = Ranking(_words_before_translations(view, analysis, ranking.rows)[:k], ranking.scores[:k])
    if len(ranking.rows) >= k or not analysis.grams or not view.size:
        return ranking
    word_rows = set(ranking.rows)
    ceiling = ranking.scores[-1] * _GRAM_ONLY_FACTOR if ranking.scores else float("inf")
    gram_ranking = _rank_grams(view, analysis, k, where)
    extra = [(-min(score, ceiling), row) for row, score in zip(*gram_ranking, strict=True) if row not in word_rows][
        : k - len(word_rows)
    ]
    if extra and -extra[0][0] == ceiling:  # scores above the ceiling have become ties
        orders = view.tie_order([row for _, row in extra])
        extra = [pair for pair, _ in sorted(zip(extra, orders, strict=True), key=lambda item: (item[0][0], item[1]))]
    return Ranking([*ranking.rows, *(row for _, row in extra)], [*ranking.scores, *(-score for score, _ in extra)])


def _words_before_translations(view: IndexView, analysis: QueryAnalysis, rows: Sequence[int]) -> Sequence[int]:
    """Return rows so that none precedes, by translations, all others with the same words as the query writes them.

    The best of those others comes right before it, and the scores stay with the places: a translation is worth no more
    than the word itself, but it still finds what nothing else in the query's language is about.
    """
    roles = analysis.roles
    words = [term for term, role in zip(analysis.terms, roles, strict=True) if role in ("", "part")]
    translations = [term for term, role in zip(analysis.terms, roles, strict=True) if role in ("loanword", "bridge")]
    if not translations:
        return rows
    first_rows = rows[:_READ_FOR_WORDS]
    translated = _matching_groups(view, translations, first_rows)
    literal = _matching_groups(view, words, first_rows) if any(translated) else []
    if not any(literal) or all(map(frozenset.issubset, translated, literal)):
        return rows
    order: dict[int, None] = {}
    for position, row_translated in enumerate(translated):
        if position not in order and not row_translated <= literal[position]:
            groups = row_translated | literal[position]
            others = (*order, *range(position + 1, len(literal)))
            order.setdefault(next((other for other in others if groups <= literal[other]), position))
        order.setdefault(position)
    return [*(first_rows[position] for position in order), *rows[_READ_FOR_WORDS:]]


def _matching_groups(view: IndexView, terms: Sequence[QueryTerm], rows: Sequence[int]) -> list[frozenset[int]]:
    """Return the groups of the terms that each row contains."""
    groups = [term.group for term in terms]
    none = frozenset[int]()  # of most rows, where the terms are translations
    return [frozenset(compress(groups, matches)) if True in matches else none for matches in view.matches(terms, rows)]


def _rank_grams(view: IndexView, analysis: QueryAnalysis, k: int, where: tuple[int, ...] | None) -> Ranking:
    if ranges := single_char_ranges(analysis):
        return view.rank_key_ranges(ranges, k, where=where)
    return view.rank_grams(gram_terms(analysis), k, min_share=_MIN_GRAM_OVERLAP, where=where)


def single_char_ranges(analysis: QueryAnalysis) -> list[tuple[int, int]]:
    """Return the ranges of keys that match a query of single characters; none if it has a longer n-gram."""
    if not all(map(ngrams.is_single_char, analysis.grams)):
        return []
    return [ngrams.pair_key_range(gram.spelling) for gram in analysis.grams]


def gram_terms(analysis: QueryAnalysis) -> list[QueryTerm]:
    """Return the n-grams of a query as they rank rows without any of its words."""
    return [
        QueryTerm(gram.key, _HIRAGANA_WEIGHT if ngrams.is_hiragana(gram) else 1.0, is_gram=True)
        for gram in analysis.grams
    ]


def highest_possible_score(
    view: IndexView, analysis: QueryAnalysis, lexical_scores: Mapping[int, float], k1: float
) -> float:
    """Return the score of a row with all that a query asks for, by which the best score is judged.

    The best row may have every word and still score low, because it is long. And if it has none of them, n-grams are
    all that the query can be found by, as a code inside a longer word. Neither makes a query one for vectors.
    """
    possible = view.max_score(analysis.terms, k1=k1)
    best_row = max(lexical_scores, key=lexical_scores.__getitem__, default=None)
    if best_row is None or lexical_scores[best_row] >= _MIN_COVERAGE * possible:
        return possible
    best_score = lexical_scores[best_row]
    matches = view.matches(analysis.terms, [best_row])[0]
    found_roles = {role for role, is_match in zip(analysis.roles, matches, strict=True) if is_match} - {"gram"}
    if not found_roles:
        return best_score / _gram_share(view, analysis, best_row)
    has_every_word = all(is_match for role, is_match in zip(analysis.roles, matches, strict=True) if role == "")
    return best_score / _MIN_COVERAGE if has_every_word else possible


def adaptive_weights(
    view: IndexView,
    analysis: QueryAnalysis,
    request: RankRequest,
    lexical: Mapping[int, float],
    nearest: NearestRows,
) -> AdaptiveWeights | None:
    """Return the weights that adapt to the query; None if the request has others."""
    if not request.has_adaptive_weight:
        return None
    return fusion.adaptive_weights(
        max(lexical.values(), default=0.0),
        spread=nearest.spread,
        max_possible_score=highest_possible_score(view, analysis, lexical, request.options.k1),
        factor=request.options.meaning,
    )


def _gram_share(view: IndexView, analysis: QueryAnalysis, row: int) -> float:
    """Return the share of a query's n-grams that a row has; all, for a query of single characters."""
    if single_char_ranges(analysis):
        return 1.0
    grams = gram_terms(analysis)
    weights = [gram.weight for gram, is_match in zip(grams, view.matches(grams, [row])[0], strict=True) if is_match]
    return sum(weights) / sum(gram.weight for gram in grams) if weights else 1.0


def embed_queries(
    view: IndexView, embedder: Embedder | None, texts: Sequence[str]
) -> list[npt.NDArray[np.float32] | None]:
    """Return the vectors of a query and its wordings, all at once; None for an empty one, or if the index is empty."""
    if embedder is None:
        raise QueryError(
            "This search needs vectors, but embedding.provider is none",
            hint="Search with mode bm25, or set embedding.provider and import again.",
        )
    if not view.size or not texts[0].strip():
        return [None] * len(texts)
    with timer("query_embedding", _log):
        return list(embed_and_check(embedder, texts, query=True))


def rank_semantic(
    view: IndexView,
    vector: npt.NDArray[np.float32],
    k: int,
    where: tuple[int, ...] | None,
) -> NearestRows:
    """Return the k nearest rows."""
    with timer("vector_query", _log):
        return view.nearest(vector, k, where=where)
