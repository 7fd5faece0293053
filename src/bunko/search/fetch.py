"""Fetch the chunks of ranked rows, and the documents that a filter allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from bunko.protocols import IndexView, Store
from bunko.records import ChunkRow, SelectedDocuments
from bunko.search.rank import RankedRow
from bunko.search.request import RankRequest
from bunko.types import Hit


def filter_documents(store: Store, tools: Mapping[int, str], request: RankRequest) -> tuple[int, ...] | None:
    """Return the ids of the documents that match the filter of a request, None without a filter."""
    if not request.where:
        return None
    ids = chain.from_iterable(store.documents.select(tool, request.where) for tool in tools)
    return SelectedDocuments.of(ids, request.where)


def fetch_hits(
    store: Store, view: IndexView, tools: Mapping[int, str], request: RankRequest, ranked_rows: Sequence[RankedRow]
) -> list[Hit]:
    """Return the hits of ranked rows, with their documents if the request asks for them."""
    ids = view.chunk_ids([ranked_row.row for ranked_row in ranked_rows])
    chunks = store.documents.chunks(ids, read_documents=request.read_documents)
    return [
        _build_hit(chunks[chunk_id], ranked_row, tools) for chunk_id, ranked_row in zip(ids, ranked_rows, strict=True)
    ]


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
        sentence=ranked_row.sentence,
        document=chunk_row.document,
    )
