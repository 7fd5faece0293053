"""Rank candidates for a reranker, and put them in the order of its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bunko.protocols import Embedder, IndexView, Store
from bunko.search.fetch import fetch_hits, filter_documents
from bunko.search.rank import rank_rows
from bunko.search.request import RankRequest, clean_query
from bunko.search.selection import ranked_candidates, select_from
from bunko.types import ArmScore, Hit


def rank_candidates(
    store: Store, view: IndexView, tools: Mapping[int, str], embedder: Embedder | None, request: RankRequest
) -> list[Hit]:
    """Return the first hits of a ranking for a reranker, and as many as the request needs; call it as `search`."""
    if request.selection is not None:
        return ranked_candidates(store, view, tools, embedder, request, request.selection)
    # No deeper than without a reranker if that is enough: the fusion is then the same.
    depth = max(request.rows_per_arm, request.rerank_count)
    deeper = replace(request, top_k=max(request.top_k, request.rerank_count), depth=depth)
    rows = rank_rows(view, clean_query(request.query), embedder, deeper, filter_documents(store, tools, request))
    return fetch_hits(store, view, tools, request, rows)


def select_reranked(request: RankRequest, candidates: Sequence[Hit], scores: Sequence[float] | None) -> list[Hit]:
    """Return the hits that a request asks for, those with a score first; without scores, in the given order.

    A hit keeps the score of its ranking: that of a reranker has another scale, and hits further down have none.
    """
    hits = list(candidates) if scores is None else [*_in_order(candidates, scores), *candidates[len(scores) :]]
    if request.selection is not None:
        return select_from(request.selection, hits)
    return hits[: request.top_k]


def _in_order(candidates: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """Return the first candidates by descending score; equal ones keep their order."""
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return [_add_score(candidates[index], ArmScore(scores[index], rank)) for rank, index in enumerate(order, 1)]


def _add_score(hit: Hit, reranker: ArmScore) -> Hit:
    explanation = replace(hit.explanation, reranker=reranker) if hit.explanation else None
    return replace(hit, explanation=explanation, reranker_score=reranker.score)
