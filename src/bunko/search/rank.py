"""Rank the chunks of an index for a query: by words, grams and vectors, fused and explained."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bunko.embedders import embed_and_check
from bunko.errors import QueryError
from bunko.indexes.embedded import bm25
from bunko.indexes.embedded.bm25 import QueryTerm
from bunko.indexes.embedded.snapshot import EMPTY_RANKING, Ranking, Snapshot
from bunko.indexes.embedded.vectors import NearestRows, cosines, nearest
from bunko.protocols import Embedder, Store
from bunko.records import NO_FILTER, ChunkRow, Filter
from bunko.search import fusion
from bunko.search.query_analysis import CROSS_LANGUAGE_WEIGHT, QueryAnalysis, analyse_query
from bunko.text import ngrams
from bunko.text.normalise import escape_surrogates
from bunko.timing import timer
from bunko.types import FUSIONS, MODES, ArmScore, Explanation, Fusion, Hit, Mode

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_] | None

_log = logging.getLogger("bunko.search")

# Nobody types more; a longer query is a pasted document, and its beginning says what it is about.
MAX_QUERY_CHARS = 2000
# A row found by grams alone must contain this share of the query's grams, or unrelated texts would match.
_MIN_GRAM_OVERLAP = 0.5
# Hiragana bigrams count half: 食べる and 比べる share one, and nothing else.
_HIRAGANA_WEIGHT = 0.5
# A hit by grams alone scores well below every hit by words, also after normalisation.
_GRAM_ONLY_FACTOR = 0.5
# Roles that an explanation lists as expansions of a query word.
_EXPANSION_ROLES = ("loanword", "bridge", "synonym", "gram")
# Rows that each arm contributes to a fusion: with fewer, one outlier changes the normalisation.
_MIN_FETCH = 30


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A query and how to rank its results."""

    query: str
    mode: Mode = "bm25"
    top_k: int = 5
    fusion: Fusion = "cc"
    vector_weight: float | None = None  # None: chosen by how much of the query the best text contains
    k1: float = 1.2
    b: float = 0.75
    rrf_k: float = 60
    similarity_threshold: float | None = None  # maximum cosine distance of a vector hit
    min_combined_score: float | None = None
    loanwords: bool = True
    bridge: bool = True  # also search for translations of the words
    where: Filter = NO_FILTER
    explain: bool = False

    def __post_init__(self) -> None:
        """Reject invalid values and name the allowed ones."""
        if self.mode not in MODES:
            raise QueryError(f"Unknown search mode {self.mode!r}", hint=f"Use one of: {', '.join(MODES)}.")
        if self.fusion not in FUSIONS:
            raise QueryError(f"Unknown fusion {self.fusion!r}", hint=f"Use one of: {', '.join(FUSIONS)}.")
        if not 1 <= self.top_k <= 1000:
            raise QueryError(f"{self.top_k} results cannot be returned", hint="Ask for 1 to 1000.")


# The search settings a tool may override: their range if the first value is a float, else their allowed values.
_TOOL_SETTING_LIMITS: dict[str, tuple[object, ...]] = {
    "mode": MODES,
    "fusion": FUSIONS,
    "vector_weight": (0.0, 1.0),
    "k1": (0.0, 100.0),
    "b": (0.0, 1.0),
    "rrf_k": (1.0, 10_000.0),
    "loanwords": (True, False),
}


def tool_search_settings(options: object) -> dict[str, Any]:
    """Return the valid search settings among a tool's options; invalid and unknown ones are dropped."""
    if not isinstance(options, dict):
        return {}
    return {name: value for name, value in options.items() if is_tool_search_setting(name, value)}


def is_tool_search_setting(name: object, value: object) -> bool:
    """Return whether a tool may override a search setting with this value."""
    allowed = _TOOL_SETTING_LIMITS.get(name, ()) if isinstance(name, str) else ()
    if allowed and type(allowed[0]) is float:
        low, high = allowed
        return type(value) in (int, float) and low <= value <= high  # type: ignore[operator]
    return any(type(value) is type(choice) and value == choice for choice in allowed)


def search(
    store: Store, snapshot: Snapshot, tools: Mapping[int, str], embedder: Embedder | None, request: SearchRequest
) -> list[Hit]:
    """Return the best hits of some tools; call it inside the store's `reading` with a snapshot taken there."""
    query = escape_surrogates(request.query)[:MAX_QUERY_CHARS]
    _log.debug('[search] query="%s", top_k=%d', query, request.top_k)
    with timer("search_total", _log):
        masks = snapshot.masks(None)
        if request.where:
            documents = [document_id for tool in tools for document_id in store.documents.select(tool, request.where)]
            masks = snapshot.masks(np.array(documents, np.int64))
        ranked_rows = rank_rows(snapshot, query, embedder, request, masks)
        ids = [snapshot.chunk_id(ranked_row.row) for ranked_row in ranked_rows]
        chunks = store.documents.chunks(ids)
        hits = [
            _build_hit(chunks[chunk_id], ranked_row, tools)
            for chunk_id, ranked_row in zip(ids, ranked_rows, strict=True)
        ]
        _log.debug("[search] results: %d chunks returned", len(hits))
        for rank, hit in enumerate(hits, 1):
            _log.debug('[search]   [%d] score=%.2f file=%s heading="%s"', rank, hit.score, hit.uri, hit.chunk.heading)
    return hits


def _build_hit(chunk_row: ChunkRow, ranked_row: RankedRow, tools: Mapping[int, str]) -> Hit:
    return Hit(
        tools[chunk_row.tool_id],
        chunk_row.uri,
        chunk_row.title,
        chunk_row.date,
        chunk_row.tags,
        chunk_row.content_hash,
        chunk_row.chunk,
        ranked_row.score,
        ranked_row.vector_distance,
        ranked_row.bm25_score,
        ranked_row.combined_score,
        ranked_row.why,
    )


class RankedRow(NamedTuple):
    """A ranked row before its text is fetched."""

    row: int
    score: float
    vector_distance: float | None
    bm25_score: float | None
    combined_score: float | None
    why: Explanation | None


def rank_rows(
    snapshot: Snapshot,
    query: str,
    embedder: Embedder | None,
    request: SearchRequest,
    masks: Sequence[Mask],
    *,
    cached_nearest: NearestRows | None = None,
) -> list[RankedRow]:
    """Return the best rows with their scores; `cached_nearest` is an earlier result of `rank_semantic`, if any."""
    analysis = analyse_query(
        query, loanwords=request.loanwords, cross_language_weight=CROSS_LANGUAGE_WEIGHT if request.bridge else 0.0
    )
    fetch = rows_per_arm(request)
    lexical_ranking, nearest_rows = EMPTY_RANKING, None
    if request.mode != "semantic":
        with timer("bm25_query", _log):
            lexical_ranking = rank_lexical(snapshot, analysis, fetch, k1=request.k1, b=request.b, masks=masks)
    if request.mode != "bm25":
        nearest_rows = cached_nearest or rank_semantic(
            snapshot, query, embedder, fetch, request.similarity_threshold, masks
        )
    scores = _fuse_arms(snapshot, analysis, request, embedder, lexical_ranking, nearest_rows)
    semantic_ranking = nearest_rows.ranking if nearest_rows else EMPTY_RANKING
    rows, explanations = _select_rows(snapshot, analysis, request, scores, lexical_ranking, semantic_ranking)
    has_combined_score = _has_combined_score(request)
    lexical_scores, semantic_scores, final_scores = scores
    return [
        RankedRow(
            row,
            final_scores[row],
            1 - semantic_scores[row] if row in semantic_scores else None,
            lexical_scores.get(row),
            final_scores[row] if has_combined_score else None,
            explanations[row] if request.explain else None,
        )
        for row in rows
    ]


class _Scores(NamedTuple):
    lexical: Mapping[int, float]
    semantic: Mapping[int, float]
    final: Mapping[int, float]


def _fuse_arms(
    snapshot: Snapshot,
    analysis: QueryAnalysis,
    request: SearchRequest,
    embedder: Embedder | None,
    lexical_ranking: Ranking,
    nearest_rows: NearestRows | None,
) -> _Scores:
    """Return the scores of both arms and their fusion; one arm alone is its own fusion."""
    lexical = dict(zip(*lexical_ranking, strict=True))
    if nearest_rows is None:
        return _Scores(lexical, {}, lexical)
    semantic = dict(zip(*nearest_rows.ranking, strict=True))
    if request.mode == "semantic":
        return _Scores(lexical, semantic, semantic)
    if request.fusion == "rrf":
        rankings = [lexical_ranking.rows, nearest_rows.ranking.rows]
        return _Scores(lexical, semantic, fusion.reciprocal_rank_fusion(rankings, request.rrf_k))
    if request.vector_weight is not None:
        return _Scores(lexical, semantic, fusion.convex_combination(semantic, lexical, request.vector_weight))
    noise_floor = embedder.noise_floor if embedder else -1.0
    semantic = {row: score for row, score in semantic.items() if row in lexical or score >= noise_floor}
    return _Scores(lexical, semantic, fuse_adaptive(snapshot, analysis, lexical, semantic, nearest_rows, request.k1))


def _has_combined_score(request: SearchRequest) -> bool:
    return request.mode == "hybrid" and request.fusion == "cc"


def _select_rows(
    snapshot: Snapshot,
    analysis: QueryAnalysis,
    request: SearchRequest,
    scores: _Scores,
    lexical_ranking: Ranking,
    semantic_ranking: Ranking,
) -> tuple[list[int], dict[int, Explanation]]:
    """Return the top rows that reach the minimum score, best first, with their explanations where needed."""
    final_scores = scores.final
    # The ranking of one arm alone is already sorted.
    is_sorted = final_scores is scores.lexical or final_scores is scores.semantic
    rows = list(final_scores) if is_sorted else _sort_rows(snapshot, final_scores)
    min_score = request.min_combined_score if _has_combined_score(request) else None
    if min_score is None:
        rows = rows[: request.top_k]
        if not request.explain:
            return rows, {}
        return rows, _explain_rows(snapshot, analysis, rows, lexical_ranking, semantic_ranking)
    explanations = _explain_rows(snapshot, analysis, rows, lexical_ranking, semantic_ranking)
    rows = [row for row in rows if final_scores[row] >= min_score or _has_every_word(analysis, explanations[row])]
    return rows[: request.top_k], explanations


def _sort_rows(snapshot: Snapshot, scores: Mapping[int, float]) -> list[int]:
    """Return rows by descending score; ties are broken only where there are any."""
    rows = sorted(scores, key=scores.__getitem__, reverse=True)
    if any(scores[row] == scores[next_row] for row, next_row in itertools.pairwise(rows)):
        rows.sort(key=lambda row: (-scores[row], snapshot.order(row)))
    return rows


def fuse_adaptive(
    snapshot: Snapshot,
    analysis: QueryAnalysis,
    lexical_scores: Mapping[int, float],
    semantic_scores: Mapping[int, float],
    nearest_rows: NearestRows,
    k1: float,
) -> dict[int, float]:
    """Fuse the scores of both arms with a vector weight that adapts to the query."""
    lexical_only = [row for row in lexical_scores if row not in semantic_scores]
    all_cosines = dict(semantic_scores) | dict(
        zip(lexical_only, cosines(snapshot, nearest_rows.query_vector, lexical_only), strict=True)
    )
    return fusion.adaptive_combination(
        all_cosines,
        lexical_scores,
        mean=nearest_rows.mean,
        spread=nearest_rows.spread,
        max_possible_score=bm25.max_possible_score(snapshot, analysis.terms, k1=k1),
    )


def rows_per_arm(request: SearchRequest) -> int:
    """Return how many rows each arm contributes to a request."""
    return request.top_k if request.mode != "hybrid" else max(3 * request.top_k, _MIN_FETCH)


def rank_lexical(
    snapshot: Snapshot, analysis: QueryAnalysis, k: int, *, k1: float, b: float, masks: Sequence[Mask]
) -> Ranking:
    """Return the k best rows by words, filled up with rows found by grams if words find too few."""
    ranking = bm25.rank_terms(snapshot, analysis.terms, k, k1=k1, b=b, masks=masks)
    if len(ranking.rows) >= k or not analysis.grams or not snapshot.size:
        return ranking
    word_rows = set(ranking.rows)
    ceiling = ranking.scores[-1] * _GRAM_ONLY_FACTOR if ranking.scores else float("inf")
    gram_ranking = _rank_grams(snapshot, analysis, k, masks)
    extra = [(-min(score, ceiling), row) for row, score in zip(*gram_ranking, strict=True) if row not in word_rows][
        : k - len(word_rows)
    ]
    if extra and -extra[0][0] == ceiling:  # scores above the ceiling have become ties
        extra.sort(key=lambda scored_row: (scored_row[0], snapshot.order(scored_row[1])))
    return Ranking([*ranking.rows, *(row for _, row in extra)], [*ranking.scores, *(-score for score, _ in extra)])


def _rank_grams(snapshot: Snapshot, analysis: QueryAnalysis, k: int, masks: Sequence[Mask]) -> Ranking:
    single = [gram for gram in analysis.grams if ngrams.is_single_char(gram)]
    if len(single) == len(analysis.grams):
        ranges = [ngrams.pair_key_range(gram.spelling) for gram in single]
        return bm25.rank_key_ranges(snapshot, ranges, k, masks=masks)
    terms = [
        QueryTerm(gram.key, _HIRAGANA_WEIGHT if ngrams.is_hiragana(gram) else 1.0, is_gram=True)
        for gram in analysis.grams
    ]
    return bm25.rank_gram_overlap(snapshot, terms, k, min_share=_MIN_GRAM_OVERLAP, masks=masks)


def rank_semantic(
    snapshot: Snapshot,
    query: str,
    embedder: Embedder | None,
    k: int,
    threshold: float | None,
    masks: Sequence[Mask],
) -> NearestRows | None:
    """Return the k nearest rows within a distance threshold, or None if the index or the query is empty."""
    if embedder is None:
        raise QueryError(
            "This search needs vectors, but embedding.provider is none",
            hint="Use --mode bm25, or set embedding.provider and import again.",
        )
    if not snapshot.size or not query.strip():
        return None
    with timer("query_embedding", _log):
        vector = embed_and_check(embedder, [query], query=True)[0]
    with timer("vector_query", _log):
        nearest_rows = nearest(snapshot, vector, k, masks=masks)
    if threshold is not None:
        rows, scores = nearest_rows.ranking
        count = sum(1 - score <= threshold for score in scores)
        nearest_rows = nearest_rows._replace(ranking=Ranking(rows[:count], scores[:count]))
    return nearest_rows


def _explain_rows(
    snapshot: Snapshot,
    analysis: QueryAnalysis,
    rows: Sequence[int],
    lexical_ranking: Ranking,
    semantic_ranking: Ranking,
) -> dict[int, Explanation]:
    lexical_scores, semantic_scores = _arm_scores(lexical_ranking), _arm_scores(semantic_ranking)
    explanations = {}
    for row, matches in zip(rows, bm25.matches(snapshot, analysis.terms, rows), strict=True):
        matched = [i for i, is_match in enumerate(matches) if is_match]
        terms = tuple(analysis.spellings[i] for i in matched if analysis.roles[i] in ("", "part"))
        expansions = tuple(
            (analysis.roles[i], analysis.spellings[i]) for i in matched if analysis.roles[i] in _EXPANSION_ROLES
        )
        lane = "vector" if row not in lexical_scores else "gram"
        if any(analysis.roles[i] != "gram" for i in matched):
            lane = "word"
        explanations[row] = Explanation(lane, terms, expansions, lexical_scores.get(row), semantic_scores.get(row))
    return explanations


def _arm_scores(ranking: Ranking) -> dict[int, ArmScore]:
    return {row: ArmScore(score, rank) for rank, (row, score) in enumerate(zip(*ranking, strict=True), 1)}


def _has_every_word(analysis: QueryAnalysis, explanation: Explanation) -> bool:
    """Return whether a row contains every word of the query: thresholds remove noise, and such a row is not noise."""
    needed = {spelling for spelling, role in zip(analysis.spellings, analysis.roles, strict=True) if role == ""}
    return bool(needed) and needed <= set(explanation.terms)


def log_answer(query: str, hits: Sequence[Hit]) -> None:
    """Log a query and its hits."""
    log = logging.getLogger("bunko.retrieve")
    log.info('RAG retrieve: query="%s"', query)
    for rank, hit in enumerate(hits, 1):
        distance = "none" if hit.vector_distance is None else f"{hit.vector_distance:.3f}"
        log.info('RAG result %d: distance=%s source="%s"', rank, distance, hit.uri)
        log.debug('RAG result %d text: "%s"', rank, hit.chunk.text[:100])
