"""Search for hits: rank rows and fetch their chunks."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from bunko.protocols import Embedder, IndexView, Store
from bunko.records import ChunkRow
from bunko.search.rank import RankedRow, rank_rows
from bunko.search.request import RankRequest, clean_query
from bunko.timing import timer
from bunko.types import Hit

_log = logging.getLogger("bunko.search")


def search(
    store: Store, view: IndexView, tools: Mapping[int, str], embedder: Embedder | None, request: RankRequest
) -> list[Hit]:
    """Return the best hits of some tools; call it inside the store's `read_transaction` with a view taken there."""
    query = clean_query(request.query)
    _log.debug('[search] query="%s", top_k=%d', query, request.top_k)
    with timer("search_total", _log):
        where = None
        if request.where:
            where = tuple(document_id for tool in tools for document_id in store.documents.select(tool, request.where))
        ranked_rows = rank_rows(view, query, embedder, request, where)
        ids = view.chunk_ids([ranked_row.row for ranked_row in ranked_rows])
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


def log_answer(query: str, hits: Sequence[Hit]) -> None:
    """Log a query and its hits."""
    log = logging.getLogger("bunko.retrieve")
    log.info('RAG retrieve: query="%s"', query)
    for rank, hit in enumerate(hits, 1):
        distance = "none" if hit.vector_distance is None else f"{hit.vector_distance:.3f}"
        log.info('RAG result %d: distance=%s source="%s"', rank, distance, hit.uri)
        log.debug('RAG result %d text: "%s"', rank, hit.chunk.text[:100])
