"""Rank the rows of an index for a query: fuse its arms and select the best rows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from bunko.protocols import Embedder, IndexView
from bunko.runtime.timing import timer
from bunko.search import fusion
from bunko.search.arms import (
    Arms,
    FusedScores,
    adaptive_weights,
    embed_queries,
    highest_possible_score,
    rank_lexical,
    rank_semantic,
)
from bunko.search.explanations import explain_rows
from bunko.search.fusion import AdaptiveWeights
from bunko.search.query_analysis import NO_ANALYSIS, QueryAnalysis, analyse_query
from bunko.search.request import CLOSELY_READ, FIRST_ROWS, RankRequest
from bunko.search.similarity import ReadClosely, lost_points, read_closely, similarities, sort_by_score
from bunko.search.wordings import DEPTH, PROTECTED_ROWS, CombinedScores, combine, keep_full_matches
from bunko.types import Explanation, WordingScore
from bunko.types.records import EMPTY_RANKING, NearestRows, SentenceMatch, Wording

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_log = logging.getLogger("bunko.search")


class RankedRow(NamedTuple):
    """A ranked row before its text is fetched."""

    row: int
    score: float
    vector_distance: float | None
    bm25_score: float | None
    combined_score: float | None
    why: Explanation | None
    sentence: int | None = None  # the position of its nearest sentence


class RankedText(NamedTuple):
    """A query or one of its wordings, and the rows that it finds by itself."""

    analysis: QueryAnalysis
    arms: Arms
    scores: FusedScores  # `final` as shown, between 0 and 1
    rows: list[int]  # best first
    read: ReadClosely


def rank_rows(
    view: IndexView, embedder: Embedder | None, request: RankRequest, where: tuple[int, ...] | None = None
) -> list[RankedRow]:
    """Return the best rows with their scores, of the documents with the ids `where` if given."""
    options = request.options
    weights = {wording: getattr(options, f"{wording.kind}_weight") for wording in request.wordings}
    if not all(weights.values()):
        weights = {wording: weight for wording, weight in weights.items() if weight}
        request = replace(request, wordings=tuple(weights))
    texts = [request.query, *(wording.text for wording in weights)]
    vectors = embed_queries(view, embedder, texts) if request.mode != "bm25" else [None] * len(texts)
    query_request = request
    if weights:
        # With other wordings, near words gain nothing on judged sets: see docs/quality.md.
        request = replace(request, options=replace(options, nearest_words=0.0))
        rows, depth = max(request.row_count, DEPTH), max(request.rows_per_arm, DEPTH)
        query_request = replace(request, row_count=rows, depth=depth)
    ranked_query = rank_text(view, embedder, texts[0], vectors[0], query_request, where)
    if not weights:
        return _build_rows(view, request, [ranked_query], ranked_query.rows, ranked_query.scores.final, where)
    # A wording is ranked as deep as it counts, whatever the page.
    wording_request = replace(request, row_count=DEPTH, depth=DEPTH)
    ranked_wordings = [
        rank_text(view, embedder, text, vector, wording_request, where)
        for text, vector in zip(texts[1:], vectors[1:], strict=True)
    ]
    wording_scores = [wording.scores.final for wording in ranked_wordings]
    combined = combine(ranked_query.scores.final, list(zip(weights.values(), wording_scores, strict=True)))
    first = ranked_query.rows[:PROTECTED_ROWS]
    best = sort_by_score(view, combined.final)
    best = keep_full_matches(best, first, have_every_word(view, ranked_query.analysis, first))[: request.row_count]
    return _build_rows(view, request, [ranked_query, *ranked_wordings], best, combined.final, where, combined)


def rank_text(
    view: IndexView,
    embedder: Embedder | None,
    text: str,
    vector: npt.NDArray[np.float32] | None,
    request: RankRequest,
    where: tuple[int, ...] | None = None,
) -> RankedText:
    """Return the rows that a text finds by its words and by its vector, as the request ranks them.

    Without an embedder the vector alone is compared: all rows count, however far they are, and none is read closely.
    """
    options = request.options
    needs_words = request.mode != "semantic" or request.explain or request.wordings
    analysis = analyse_query(text, options) if needs_words else NO_ANALYSIS
    lexical, nearest = EMPTY_RANKING, None
    if request.mode != "semantic":
        with timer("bm25_query", _log):
            lexical = rank_lexical(view, analysis, request.rows_per_arm, k1=options.k1, b=options.b, where=where)
    if vector is not None:
        nearest = rank_semantic(view, vector, request.rows_per_arm, where)
    arms = Arms(lexical, nearest)
    read = partial(read_closely, view, embedder, text if options.nearest_words else "", vector)
    scores = fuse(view, analysis, request, arms, read, noise_floor=embedder.noise_floor if embedder else -1.0)
    rows = select_rows(view, request, scores, partial(have_every_word, view, analysis))
    scores = scores._replace(final=shown_scores(view, analysis, request, scores, rows))
    return RankedText(analysis, arms, scores, rows, read)


def _build_rows(
    view: IndexView,
    request: RankRequest,
    ranked_texts: Sequence[RankedText],
    rows: Sequence[int],
    final: Mapping[int, float],
    where: tuple[int, ...] | None,
    combined: CombinedScores | None = None,
) -> list[RankedRow]:
    """Return rows with what the query says of them, or a wording of those that the query does not find."""
    rows_by_text: dict[int, list[int]] = {}
    for row in rows:
        rows_by_text.setdefault(_source_index(row, ranked_texts, combined), []).append(row)
    explanations: dict[int, Explanation] = {}
    sentences: dict[int, SentenceMatch] = {}
    for index, its_rows in rows_by_text.items():
        ranked = ranked_texts[index]
        matches = ranked.scores.reading.matches
        if request.explain:
            matches = {**matches, **ranked.read([row for row in its_rows if row not in matches]).matches}
            explanations |= explain_rows(
                view, ranked.analysis, request, ranked.arms, ranked.scores, matches, its_rows, where
            )
        sentences |= {row: matches[row] for row in its_rows if row in matches}
    if combined is not None:
        ranks = [{row: rank for rank, row in enumerate(text.rows, 1)} for text in ranked_texts]
        explanations = {
            row: replace(why, wordings=_wording_scores(row, request, ranked_texts, ranks, combined))
            for row, why in explanations.items()
        }
    lexical_scores, semantic_scores = ranked_texts[0].scores[:2]
    has_combined_score = request.has_combined_score
    return [
        RankedRow(
            row,
            final[row],
            1 - semantic_scores[row] if row in semantic_scores else None,
            lexical_scores.get(row),
            final[row] if has_combined_score else None,
            explanations.get(row),
            sentences[row].position if row in sentences else None,
        )
        for row in rows
    ]


def _source_index(row: int, ranked_texts: Sequence[RankedText], combined: CombinedScores | None) -> int:
    """Return which text explains a row: the query if it finds it, else the wording that adds most to it."""
    if combined is None or row in ranked_texts[0].scores.final:
        return 0
    finders = [index for index, text in enumerate(ranked_texts) if row in text.scores.final]
    return max(finders, key=lambda index: combined.gains[index - 1].get(row, 0.0))


def _wording_scores(
    row: int,
    request: RankRequest,
    ranked_texts: Sequence[RankedText],
    ranks: Sequence[Mapping[int, int]],
    combined: CombinedScores,
) -> tuple[WordingScore, ...]:
    """Return what the query and each wording add to the score of a row."""
    added = [gains.get(row, 0.0) for gains in combined.gains]
    added = [combined.final[row] - sum(added), *added]
    wordings = [Wording("query", request.query), *request.wordings]
    columns = zip(wordings, ranked_texts, ranks, combined.weights, added, strict=True)
    return tuple(
        WordingScore(wording.kind, wording.text, text.scores.final.get(row), rank_of.get(row), weight, points)
        for wording, text, rank_of, weight, points in columns
    )


def fuse(
    view: IndexView, analysis: QueryAnalysis, request: RankRequest, arms: Arms, read: ReadClosely, *, noise_floor: float
) -> FusedScores:
    """Return the scores of both arms and their fusion; one arm alone is its own fusion.

    The best rows by whole texts are read closely, and fused again with what that finds; the others rank as if they had
    the fewest near words. With a weight that adapts to the query, rows that only vectors found count from the noise
    floor on.
    """
    lexical = dict(zip(*arms.lexical, strict=True))
    if arms.nearest is None:
        return FusedScores(lexical, {}, lexical)
    options, nearest = request.options, arms.nearest
    cosines = dict(zip(*nearest.ranking, strict=True))
    if request.has_adaptive_weight:
        cosines = {row: score for row, score in cosines.items() if row in lexical or score >= noise_floor}
    found = set(cosines)
    if request.has_adaptive_weight:
        lexical_only = [row for row in lexical if row not in cosines]
        cosines |= zip(lexical_only, view.cosines(nearest.query_vector, lexical_only), strict=True)
    weights = adaptive_weights(view, analysis, request, lexical, nearest)
    combine = partial(_combine, view, request, weights, lexical, nearest)
    # Whatever the depth, the same rows: a longer list begins with the rows of a shorter one.
    first = {*arms.lexical.rows[:FIRST_ROWS], *nearest.ranking.rows[: max(FIRST_ROWS, CLOSELY_READ[request.mode])]}
    best = [row for row in sort_by_score(view, combine(found, cosines, {})) if row in first]
    rows_read = best[: CLOSELY_READ[request.mode]]
    reading = read(rows_read)
    similar = similarities(cosines, reading, options.nearest_sentence)
    if options.similarity_threshold is not None:
        found = {row for row in found if 1 - similar[row] <= options.similarity_threshold}
        similar = {row: score for row, score in similar.items() if row in found or row in lexical}
    lost = lost_points(reading, options.nearest_words, nearest.spread)
    if lost:  # what cannot be read, for it has no vector of this embedder, loses as much as others
        mean, most = sum(lost.values()) / len(lost), min(lost.values())
        lost = dict.fromkeys(similar, most) | dict.fromkeys(set(rows_read) & similar.keys(), mean) | lost
    final = combine(found, similar, lost)
    return FusedScores(lexical, {row: similar[row] for row in found}, final, similar, lost, reading)


def _combine(
    view: IndexView,
    request: RankRequest,
    weights: AdaptiveWeights | None,
    lexical: Mapping[int, float],
    nearest: NearestRows,
    found: Set[int],
    similar: Mapping[int, float],
    lost: Mapping[int, float],
) -> dict[int, float]:
    """Fuse the scores by words with the similarities of the rows that vectors found, less what each has lost."""
    if weights is not None:
        return fusion.adaptive_combination(similar, lexical, weights, mean=nearest.mean, lost=lost)
    semantic = {row: similar[row] for row in found}
    if lost:
        semantic = {row: fusion.take_away(score, lost.get(row, 0.0)) for row, score in semantic.items()}
    options = request.options
    if request.mode == "semantic":
        return semantic
    if options.vector_weight is not None and options.fusion == "cc":
        return fusion.convex_combination(semantic, lexical, options.vector_weight)
    return fusion.reciprocal_rank_fusion([list(lexical), sort_by_score(view, semantic)], options.rrf_k)


def shown_scores(
    view: IndexView, analysis: QueryAnalysis, request: RankRequest, scores: FusedScores, rows: Sequence[int]
) -> dict[int, float]:
    """Return the scores of rows between 0 and 1.

    Words alone add up without an end: their scores count relative to a row with all that the query asks for. A cosine
    may be negative, and a fusion a rounding error above 1.
    """
    highest = 1.0
    if scores.final is scores.lexical and rows:
        best = max(scores.lexical.values())
        # Without a word that can be counted, as for a single character, only the best row tells what is possible.
        highest = max(highest_possible_score(view, analysis, scores.lexical, request.options.k1), best) or 1.0
    shown = {row: scores.final[row] / highest for row in rows}
    if rows and (min(shown.values()) < 0 or max(shown.values()) > 1):
        shown = {row: min(max(score, 0.0), 1.0) for row, score in shown.items()}
    return shown


def select_rows(
    view: IndexView,
    request: RankRequest,
    scores: FusedScores,
    every_word: Callable[[Sequence[int]], Sequence[bool]],
) -> list[int]:
    """Return the top rows that reach the minimum score, best first; `every_word` is `have_every_word` or a cache."""
    final_scores = scores.final
    # The ranking by words alone is already sorted.
    rows = list(final_scores) if final_scores is scores.lexical else sort_by_score(view, final_scores)
    minimum = request.options.min_combined_score
    if minimum is not None and request.has_combined_score:
        # The minimum removes noise. With a high vector weight, a text that contains every word may score below it.
        full_matches = every_word(rows) if request.options.keep_full_matches else [False] * len(rows)
        pairs = zip(rows, full_matches, strict=True)
        rows = [row for row, is_full_match in pairs if is_full_match or final_scores[row] >= minimum]
    return rows[: request.row_count]


def have_every_word(view: IndexView, analysis: QueryAnalysis, rows: Sequence[int]) -> list[bool]:
    """Return which rows contain every word of the query."""
    words = [term for term, role in zip(analysis.terms, analysis.roles, strict=True) if role == ""]
    return [bool(words) and all(matches) for matches in view.matches(words, rows)]
