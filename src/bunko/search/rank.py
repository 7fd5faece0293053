"""Rank the rows of an index for a query: fuse its arms and select the best rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from bunko.protocols import Embedder, IndexView
from bunko.records import NearestRows
from bunko.search import fusion
from bunko.search.arms import Arms, FusedScores, highest_possible_score, rank_arms
from bunko.search.explanations import explain_rows
from bunko.search.query_analysis import CROSS_LANGUAGE_WEIGHT, NO_ANALYSIS, QueryAnalysis, analyse_query
from bunko.search.request import RankRequest
from bunko.search.similarity import similarities, sort_by_score, with_sentences_of
from bunko.types import Explanation


class RankedRow(NamedTuple):
    """A ranked row before its text is fetched."""

    row: int
    score: float
    vector_distance: float | None
    bm25_score: float | None
    combined_score: float | None
    why: Explanation | None
    sentence: int | None = None  # the position of its nearest sentence


def rank_rows(
    view: IndexView,
    query: str,
    embedder: Embedder | None,
    request: RankRequest,
    where: tuple[int, ...] | None = None,
) -> list[RankedRow]:
    """Return the best rows with their scores, of the documents with the ids `where` if given."""
    needs_words = request.mode != "semantic" or request.explain
    analysis = analyse_request(query, request) if needs_words else NO_ANALYSIS
    arms = rank_arms(view, query, analysis, embedder, request, where)
    scores = fuse(view, analysis, request, arms, noise_floor=embedder.noise_floor if embedder else -1.0)
    rows = select_rows(view, request, scores, partial(have_every_word, view, analysis))
    if request.explain and arms.nearest is not None:
        arms = arms._replace(nearest=with_sentences_of(view, arms.nearest, rows))
    explanations = explain_rows(view, analysis, request, arms, scores, rows, where) if request.explain else {}
    has_combined_score = request.has_combined_score
    sentences = arms.nearest.sentences if arms.nearest else {}
    lexical_scores, semantic_scores, final_scores = scores
    return [
        RankedRow(
            row,
            final_scores[row],
            1 - semantic_scores[row] if row in semantic_scores else None,
            lexical_scores.get(row),
            final_scores[row] if has_combined_score else None,
            explanations.get(row),
            sentences[row].position if row in sentences else None,
        )
        for row in rows
    ]


def analyse_request(query: str, request: RankRequest) -> QueryAnalysis:
    """Return the keys of a query with the expansions that a request allows."""
    weight = CROSS_LANGUAGE_WEIGHT if request.bridge else 0.0
    return analyse_query(query, loanwords=request.loanwords, cross_language_weight=weight)


def fuse(
    view: IndexView, analysis: QueryAnalysis, request: RankRequest, arms: Arms, *, noise_floor: float
) -> FusedScores:
    """Return the scores of both arms and their fusion; one arm alone is its own fusion.

    With a weight that adapts to the query, rows that only vectors found count from the noise floor on.
    """
    lexical = dict(zip(*arms.lexical, strict=True))
    if arms.nearest is None:
        return FusedScores(lexical, {}, lexical)
    semantic = dict(zip(*arms.nearest.ranking, strict=True))
    if request.mode == "semantic":
        return FusedScores(lexical, semantic, semantic)
    if request.fusion == "rrf":
        rankings = [arms.lexical.rows, arms.nearest.ranking.rows]
        return FusedScores(lexical, semantic, fusion.reciprocal_rank_fusion(rankings, request.rrf_k))
    if request.vector_weight is not None:
        return FusedScores(lexical, semantic, fusion.convex_combination(semantic, lexical, request.vector_weight))
    semantic = {row: score for row, score in semantic.items() if row in lexical or score >= noise_floor}
    return FusedScores(lexical, semantic, _fuse_adaptive(view, analysis, lexical, semantic, arms.nearest, request.k1))


def _fuse_adaptive(
    view: IndexView,
    analysis: QueryAnalysis,
    lexical_scores: Mapping[int, float],
    semantic_scores: Mapping[int, float],
    nearest_rows: NearestRows,
    k1: float,
) -> dict[int, float]:
    """Fuse the scores of both arms with a vector weight that adapts to the query."""
    lexical_only = [row for row in lexical_scores if row not in semantic_scores]
    all_similarities = dict(semantic_scores) | dict(
        zip(lexical_only, similarities(view, nearest_rows.query_vector, lexical_only), strict=True)
    )
    return fusion.adaptive_combination(
        all_similarities,
        lexical_scores,
        mean=nearest_rows.mean,
        spread=nearest_rows.spread,
        max_possible_score=highest_possible_score(view, analysis, lexical_scores, k1),
    )


def select_rows(
    view: IndexView,
    request: RankRequest,
    scores: FusedScores,
    every_word: Callable[[Sequence[int]], Sequence[bool]],
) -> list[int]:
    """Return the top rows that reach the minimum score, best first; `every_word` is `have_every_word` or a cache."""
    final_scores = scores.final
    # The ranking of one arm alone is already sorted.
    is_sorted = final_scores is scores.lexical or final_scores is scores.semantic
    rows = list(final_scores) if is_sorted else sort_by_score(view, final_scores)
    minimum = request.min_combined_score
    if minimum is not None and request.has_combined_score:
        full_matches = every_word(rows) if request.keep_full_matches else [False] * len(rows)
        pairs = zip(rows, full_matches, strict=True)
        rows = [row for row, has_all in pairs if reach_minimum(final_scores[row], has_all, minimum)]
    return rows[: request.top_k]


def have_every_word(view: IndexView, analysis: QueryAnalysis, rows: Sequence[int]) -> list[bool]:
    """Return which rows contain every word of the query."""
    words = [term for term, role in zip(analysis.terms, analysis.roles, strict=True) if role == ""]
    return [bool(words) and all(matches) for matches in view.matches(words, rows)]


def reach_minimum(scores: Any, every_word: Any, minimum: float) -> Any:
    """Return whether scores, as numbers or as arrays, reach the minimum, or a row is kept for having every word.

    The minimum removes noise. With a high vector weight, a text that contains every word may score below it.
    """
    return (scores >= minimum) | every_word
