"""A query in, hits out: words and grams and a vector are looked up, fused, filtered and explained."""

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
from bunko.indexes.embedded.bm25 import GRAM_WEIGHT, QueryTerm
from bunko.indexes.embedded.snapshot import EMPTY_RANKING, Ranking, Snapshot
from bunko.indexes.embedded.vectors import NearestRows, cosines, nearest
from bunko.protocols import Embedder, Store
from bunko.records import NO_FILTER, ChunkRow, Filter
from bunko.search import fusion
from bunko.text import analyzer, bridge, ngrams
from bunko.text.normalise import escape_surrogates
from bunko.timing import timer
from bunko.types import FUSIONS, MODES, ArmScore, Explanation, Fusion, Hit, Mode

if TYPE_CHECKING:
    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_] | None

_log = logging.getLogger("bunko.search")

# Nobody types more; a longer query is a pasted document, and its beginning says what it is about.
MAX_QUERY_CHARS = 2000
_MAX_TERMS = 128
# A fallback hit must hold this share of the query's grams, or an unrelated text would answer.
_MIN_GRAM_OVERLAP = 0.5
# Pairs of hiragana count half: 食べる and 比べる have one in common, and nothing else.
_HIRAGANA_WEIGHT = 0.5
# A hit by grams alone stands well below every hit by words, after normalisation too.
_GRAM_ONLY_FACTOR = 0.5
# What a sure meaning in the other language counts beside the word itself: chosen on judged sets, see docs/quality.md.
CROSS_LANGUAGE_WEIGHT = 0.7
# What may stand for a word of the query, as an explanation names it.
_EXPANSION_ROLES = ("loanword", "bridge", "synonym", "gram")
# How many each arm contributes to a fusion: fewer make the normalisation jump with every outlier.
_MIN_FETCH = 30


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What is asked, and how it is to be answered."""

    query: str
    mode: Mode = "bm25"
    top_k: int = 5
    fusion: Fusion = "cc"
    vector_weight: float | None = None  # not given: from how much of the query a text holds by words
    k1: float = 1.2
    b: float = 0.75
    rrf_k: float = 60
    similarity_threshold: float | None = None  # the largest cosine distance a vector hit may have
    min_combined_score: float | None = None
    loanwords: bool = True
    bridge: bool = True  # words of the other language that mean the same
    where: Filter = NO_FILTER
    explain: bool = False

    def __post_init__(self) -> None:
        """Refuse what makes no sense, with the allowed values in the message."""
        if self.mode not in MODES:
            raise QueryError(f"There is no search mode {self.mode!r}", hint=f"Use one of: {', '.join(MODES)}.")
        if self.fusion not in FUSIONS:
            raise QueryError(f"There is no fusion {self.fusion!r}", hint=f"Use one of: {', '.join(FUSIONS)}.")
        if not 1 <= self.top_k <= 1000:
            raise QueryError(f"{self.top_k} results cannot be returned", hint="Ask for 1 to 1000.")


# What a tool may decide for its own searches: in which limits, or among what.
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
    """Return what a tool says about its own searches; what makes no sense, or is not its business, is left out."""
    if not isinstance(options, dict):
        return {}
    return {name: value for name, value in options.items() if is_tool_search_setting(name, value)}


def is_tool_search_setting(name: object, value: object) -> bool:
    """Say whether a tool may decide this for its own searches."""
    allowed = _TOOL_SETTING_LIMITS.get(name, ()) if isinstance(name, str) else ()
    if allowed and type(allowed[0]) is float:
        low, high = allowed
        return type(value) in (int, float) and low <= value <= high  # type: ignore[operator]
    return any(type(value) is type(one) and value == one for one in allowed)


@dataclass(frozen=True, slots=True)
class QueryAnalysis:
    """What a query comes to: the keys to look up, and the spelling of each."""

    terms: tuple[QueryTerm, ...]
    spellings: tuple[str, ...]
    roles: tuple[str, ...]  # "" a word of the query; loanword, bridge, synonym, part, gram: what stands beside it
    grams: tuple[ngrams.Gram, ...]


def analyse_query(query: str, *, loanwords: bool = True, cross_language_weight: float = 0.0) -> QueryAnalysis:
    """Return the keys of a query: its words with others that mean the same, then pairs of characters.

    `across` is what a sure meaning in the other language counts beside the word itself; 0 leaves the words as they are.
    """
    found: dict[str, _TermInfo] = {}
    asking: dict[str, _TermInfo] = {}
    meant: list[tuple[str, bridge.Meaning, int]] = []
    numbers = itertools.count()
    for run in analyzer.runs(query):
        in_order = analyzer.terms_by_word(run)
        compound = False
        for at, terms in enumerate(in_order):
            told, compound = compound, False  # the last word has said what this one means together with it
            side = asking if terms and terms[0].spelling in analyzer.QUESTION_WORDS else found
            group = next(numbers)
            for term in terms:
                if term.role == "part":
                    group = next(numbers)
                if loanwords or term.role != "loanword":
                    # A loanword and the English it comes from are one thing: whichever counts more in a text counts.
                    side.setdefault(term.spelling, _TermInfo(term.role, 1.0, group))
                if cross_language_weight and side is found and term.role != "loanword" and not told:
                    after = in_order[at + 1] if at + 1 < len(in_order) else ()
                    both = bridge.meanings(term.spelling + after[0].spelling) if after else ()
                    meant += [("bridge", one, group) for one in both or bridge.meanings(term.spelling)]
                    meant += [("synonym", one, group) for one in bridge.synonyms(term.spelling) if not both]
                    compound = bool(both)
    found = found or asking
    for role, meaning, group in meant:
        found.setdefault(meaning.spelling, _TermInfo(role, cross_language_weight * meaning.weight, group))
    names = list(found.items())[:_MAX_TERMS]
    wanted = [QueryTerm(analyzer.term_key(spelling), asked.weight, group=asked.group) for spelling, asked in names]
    pieces = ngrams.query_grams(query)[:_MAX_TERMS]
    roles = [(spelling, asked.role) for spelling, asked in names]
    for gram in pieces:
        if gram.is_distinctive:
            wanted.append(QueryTerm(gram.key, GRAM_WEIGHT, is_gram=True))
            roles.append((gram.spelling, "gram"))
    return QueryAnalysis(
        tuple(wanted), tuple(name for name, _ in roles), tuple(role for _, role in roles), tuple(pieces)
    )


class _TermInfo(NamedTuple):
    role: str
    weight: float
    group: int


def search(
    store: Store, snapshot: Snapshot, tools: Mapping[int, str], embedder: Embedder | None, request: SearchRequest
) -> list[Hit]:
    """Return the best hits of some tools; call it inside the store's `reading` with a snapshot taken there."""
    query = escape_surrogates(request.query)[:MAX_QUERY_CHARS]
    _log.debug('[search] query="%s", top_k=%d', query, request.top_k)
    with timer("search_total", _log):
        masks = snapshot.masks(None)
        if request.where:
            documents = [one for tool in tools for one in store.select_documents(tool, request.where)]
            masks = snapshot.masks(np.array(documents, np.int64))
        found = rank_rows(snapshot, query, embedder, request, masks)
        ids = [snapshot.chunk_id(one.row) for one in found]
        chunks = store.chunks(ids)
        hits = [_build_hit(chunks[chunk_id], one, tools) for chunk_id, one in zip(ids, found, strict=True)]
        _log.debug("[search] results: %d chunks returned", len(hits))
        for rank, hit in enumerate(hits, 1):
            _log.debug('[search]   [%d] score=%.2f file=%s heading="%s"', rank, hit.score, hit.uri, hit.chunk.heading)
    return hits


def _build_hit(chunk_row: ChunkRow, ranked_row: RankedRow, tools: Mapping[int, str]) -> Hit:
    return Hit(
        tools[chunk_row.tool_id], chunk_row.uri, chunk_row.title, chunk_row.date, chunk_row.tags, chunk_row.content_hash, chunk_row.chunk,  # noqa: E501
        ranked_row.score, ranked_row.vector_distance, ranked_row.bm25_score, ranked_row.combined_score, ranked_row.why,
    )  # fmt: skip


class RankedRow(NamedTuple):
    """A row that answers, before its text is fetched."""

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
    """Return the best rows with each arm's view of them; `known` is what `semantic` gave for `fetched` rows before."""
    mode = request.mode
    fetch = rows_per_arm(request)
    analysis = analyse_query(
        query, loanwords=request.loanwords, cross_language_weight=CROSS_LANGUAGE_WEIGHT if request.bridge else 0.0
    )
    like, near, close = EMPTY_RANKING, EMPTY_RANKING, None
    if mode != "semantic":
        with timer("bm25_query", _log):
            like = rank_lexical(snapshot, analysis, fetch, k1=request.k1, b=request.b, masks=masks)
    if mode != "bm25":
        close = cached_nearest or rank_semantic(snapshot, query, embedder, fetch, request.similarity_threshold, masks)
        near = close.ranking if close else EMPTY_RANKING
    like_scores, near_scores = dict(zip(*like, strict=True)), dict(zip(*near, strict=True))
    if mode == "bm25" or close is None:
        scores = like_scores
    elif mode == "semantic":
        scores = near_scores
    elif request.fusion == "rrf":
        scores = fusion.reciprocal_rank_fusion([like.rows, near.rows], request.rrf_k)
    elif request.vector_weight is not None:
        scores = fusion.convex_combination(near_scores, like_scores, request.vector_weight)
    else:
        floor = embedder.noise_floor if embedder else -1.0
        near_scores = {row: score for row, score in near_scores.items() if row in like_scores or score >= floor}
        scores = fuse_adaptive(snapshot, analysis, like_scores, near_scores, close, request.k1)
    # One arm alone is in order already.
    rows = list(scores) if scores is like_scores or scores is near_scores else _sort_rows(snapshot, scores)
    combined = mode == "hybrid" and request.fusion == "cc"
    least = request.min_combined_score if combined else None
    whys: dict[int, Explanation] = {}
    if request.explain or least is not None:
        whys = _explain_rows(snapshot, analysis, rows if least is not None else rows[: request.top_k], like, near)
    if least is not None:
        rows = [row for row in rows if scores[row] >= least or _has_every_word(analysis, whys[row])]
    return [
        RankedRow(
            row,
            scores[row],
            1 - near_scores[row] if row in near_scores else None,
            like_scores.get(row),
            scores[row] if combined else None,
            whys[row] if request.explain else None,
        )
        for row in rows[: request.top_k]
    ]


def _sort_rows(snapshot: Snapshot, scores: Mapping[int, float]) -> list[int]:
    """Return rows, the best first; where none are equal, nothing has to decide between them."""
    rows = sorted(scores, key=scores.__getitem__, reverse=True)
    if any(scores[one] == scores[other] for one, other in itertools.pairwise(rows)):
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
    """Return the scores of both arms together, with the weight that suits this query."""
    others = [row for row in lexical_scores if row not in semantic_scores]
    cosine = dict(semantic_scores) | dict(
        zip(others, cosines(snapshot, nearest_rows.query_vector, others), strict=True)
    )
    possible = bm25.max_possible_score(snapshot, analysis.terms, k1=k1)
    return fusion.adaptive_combination(
        cosine, lexical_scores, mean=nearest_rows.mean, spread=nearest_rows.spread, max_possible_score=possible
    )


def rows_per_arm(request: SearchRequest) -> int:
    """Return how many rows each arm gives to a request."""
    return request.top_k if request.mode != "hybrid" else max(3 * request.top_k, _MIN_FETCH)


def rank_lexical(
    snapshot: Snapshot, analysis: QueryAnalysis, k: int, *, k1: float, b: float, masks: Sequence[Mask]
) -> Ranking:
    """Return the k best rows by words, filled up by grams where words find too few."""
    found = bm25.rank_terms(snapshot, analysis.terms, k, k1=k1, b=b, masks=masks)
    if len(found.rows) >= k or not analysis.grams or not snapshot.size:
        return found
    words = set(found.rows)
    ceiling = found.scores[-1] * _GRAM_ONLY_FACTOR if found.scores else float("inf")
    more = [(-min(score, ceiling), row) for row, score in zip(*_rank_grams(snapshot, analysis, k, masks), strict=True)]
    more = [one for one in more if one[1] not in words][: k - len(words)]
    if more and -more[0][0] == ceiling:  # those that reach it are equal now
        more.sort(key=lambda one: (one[0], snapshot.order(one[1])))
    return Ranking([*found.rows, *(row for _, row in more)], [*found.scores, *(-score for score, _ in more)])


def _rank_grams(snapshot: Snapshot, analysis: QueryAnalysis, k: int, masks: Sequence[Mask]) -> Ranking:
    single = [gram for gram in analysis.grams if ngrams.is_single_char(gram)]
    if len(single) == len(analysis.grams):
        ranges = [ngrams.pair_key_range(gram.spelling) for gram in single]
        return bm25.rank_key_ranges(snapshot, ranges, k, masks=masks)
    wanted = [
        QueryTerm(gram.key, _HIRAGANA_WEIGHT if ngrams.is_hiragana(gram) else 1.0, is_gram=True)
        for gram in analysis.grams
    ]
    return bm25.rank_gram_overlap(snapshot, wanted, k, min_share=_MIN_GRAM_OVERLAP, masks=masks)


def rank_semantic(
    snapshot: Snapshot,
    query: str,
    embedder: Embedder | None,
    k: int,
    threshold: float | None,
    masks: Sequence[Mask],
) -> NearestRows | None:
    """Return the k rows whose vectors are nearest, those no further away than a threshold; None if there is nothing."""
    if embedder is None:
        raise QueryError(
            "This search needs vectors, and embedding.provider is none",
            hint="Use --mode bm25, or set embedding.provider and import again.",
        )
    if not snapshot.size or not query.strip():
        return None
    with timer("query_embedding", _log):
        vector = embed_and_check(embedder, [query], query=True)[0]
    with timer("vector_query", _log):
        found = nearest(snapshot, vector, k, masks=masks)
    if threshold is not None:
        rows, scores = found.ranking
        number = sum(1 - score <= threshold for score in scores)
        found = found._replace(ranking=Ranking(rows[:number], scores[:number]))
    return found


def _explain_rows(
    snapshot: Snapshot,
    analysis: QueryAnalysis,
    rows: Sequence[int],
    lexical_ranking: Ranking,
    semantic_ranking: Ranking,
) -> dict[int, Explanation]:
    like_arms, near_arms = _arm_scores(lexical_ranking), _arm_scores(semantic_ranking)
    found = {}
    for row, held in zip(rows, bm25.matches(snapshot, analysis.terms, rows), strict=True):
        matched = [i for i, has in enumerate(held) if has]
        terms = tuple(analysis.spellings[i] for i in matched if analysis.roles[i] in ("", "part"))
        beside = tuple(
            (analysis.roles[i], analysis.spellings[i]) for i in matched if analysis.roles[i] in _EXPANSION_ROLES
        )
        lane = "vector" if row not in like_arms else "gram"
        if any(analysis.roles[i] != "gram" for i in matched):
            lane = "word"
        found[row] = Explanation(lane, terms, beside, like_arms.get(row), near_arms.get(row))
    return found


def _arm_scores(ranking: Ranking) -> dict[int, ArmScore]:
    return {row: ArmScore(score, rank) for rank, (row, score) in enumerate(zip(*ranking, strict=True), 1)}


def _has_every_word(analysis: QueryAnalysis, explanation: Explanation) -> bool:
    """Say whether a hit holds all words asked for: thresholds are for noise, and such a text is none."""
    needed = {spelling for spelling, role in zip(analysis.spellings, analysis.roles, strict=True) if role == ""}
    return bool(needed) and needed <= set(explanation.terms)


def log_answer(query: str, hits: Sequence[Hit]) -> None:
    """Log a query and what it found, for whoever asked to see that."""
    log = logging.getLogger("bunko.retrieve")
    log.info('RAG retrieve: query="%s"', query)
    for rank, hit in enumerate(hits, 1):
        distance = "none" if hit.vector_distance is None else f"{hit.vector_distance:.3f}"
        log.info('RAG result %d: distance=%s source="%s"', rank, distance, hit.uri)
        log.debug('RAG result %d text: "%s"', rank, hit.chunk.text[:100])
