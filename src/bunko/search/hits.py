"""Search for hits: rank rows, fetch their chunks, and select some."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from bunko.protocols import Embedder, IndexView, Store
from bunko.search.fetch import fetch_hits, filter_documents
from bunko.search.rank import rank_rows
from bunko.search.request import RankRequest, clean_query
from bunko.search.selection import select_hits
from bunko.timing import timer
from bunko.types import Hit

_log = logging.getLogger("bunko.search")


def search(
    store: Store, view: IndexView, tools: Mapping[int, str], embedder: Embedder | None, request: RankRequest
) -> list[Hit]:
    """Return the best hits of some tools; call it inside the store's `read_transaction` with a view taken there.

    For a reranker, all candidates are returned: `select_reranked` returns the best of them.
    """
    query = clean_query(request.query)
    _log.debug('[search] query="%s", top_k=%d', query, request.top_k)
    with timer("search_total", _log):
        if request.rerank_count:
            from bunko.search.rerank import rank_candidates

            hits = rank_candidates(store, view, tools, embedder, request)
        elif request.selection is not None:
            hits = select_hits(store, view, tools, embedder, request, request.selection)
        else:
            ranked_rows = rank_rows(view, query, embedder, request, filter_documents(store, tools, request))
            hits = fetch_hits(store, view, tools, request, ranked_rows)
        if request.explain and request.explain_texts:
            from bunko.search.explained_texts import explain_texts

            hits = explain_texts(hits, query, embedder)
        _log.debug("[search] results: %d chunks returned", len(hits))
        for rank, hit in enumerate(hits if _log.isEnabledFor(logging.DEBUG) else (), 1):
            _log.debug('[search]   [%d] score=%.2f file=%s heading="%s"', rank, hit.score, hit.uri, hit.chunk.heading)
    return hits


def log_answer(query: str, hits: Sequence[Hit]) -> None:
    """Log a query and its hits."""
    log = logging.getLogger("bunko.retrieve")
    log.info('RAG retrieve: query="%s"', query)
    for rank, hit in enumerate(hits, 1):
        distance = "none" if hit.vector_distance is None else f"{hit.vector_distance:.3f}"
        log.info('RAG result %d: distance=%s source="%s"', rank, distance, hit.uri)
        log.debug('RAG result %d text: "%s"', rank, hit.chunk.text[:100])
