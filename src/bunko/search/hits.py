"""Find the hits of a search: rank rows, fetch their chunks, and go deeper until enough of them are selected."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from bunko.protocols import DamagedIndex, Embedder, IndexView, Store
from bunko.runtime.timing import timer
from bunko.search.explanations import explain_texts
from bunko.search.query_analysis import analyse_query
from bunko.search.rank import RankedRow, rank_rows
from bunko.search.request import MAX_HITS, RankRequest, Selection
from bunko.search.selection import SelectedHits, allows_text
from bunko.text import ngrams
from bunko.text.phrases import fold_text
from bunko.types import Hit
from bunko.types.records import ChunkRow, QueryTerm, SelectedDocuments

_log = logging.getLogger("bunko.search")

# If the first rows are too few, this many times as many are ranked.
_DEPTH_FACTOR = 8
# A phrase in more rows than these is in enough of the first rows of any ranking.
MAX_PHRASE_ROWS = 1000
_MAX_GRAMS = 128
# A lower share of the best possible score by words is few. On four judged sets, 0 to 16 % of the questions whose first
# document is right are below, and 11 to 81 % of those with no right one among the first five.
_FEW_WORDS = 0.3


def find_hits(
    store: Store, view: IndexView, tools: Mapping[int, str], embedder: Embedder | None, request: RankRequest
) -> list[Hit]:
    """Return the best hits of some tools; call it inside the store's `read_transaction` with a view taken there.

    A longer list begins with the same hits as a shorter one of the same request. For a reranker, all candidates are
    returned: `select_reranked` returns the best of them.
    """
    _log.debug('[search] query="%s", top_k=%d', request.query, request.row_count)
    with timer("search_total", _log):
        where = None
        if request.where:
            ids = chain.from_iterable(store.documents.select(tool, request.where) for tool in tools)
            where = SelectedDocuments.of(ids, request.where)
        if request.selection is not None:
            selected, candidates = SelectedHits(request.selection), []
            for hit in _ranked_hits(store, view, tools, embedder, request, request.selection, where):
                if selected.add(hit):
                    candidates.append(hit)
                if selected.is_complete and len(candidates) >= request.rerank_count:
                    break
            hits = candidates if request.rerank_count else selected.finish()
        else:
            # For a reranker no deeper than without it if that is enough: the fusion is then the same.
            depth = max(request.rows_per_arm, request.rerank_count)
            deeper = replace(request, row_count=max(request.row_count, request.rerank_count), depth=depth)
            hits = fetch_hits(store, view, tools, request, rank_rows(view, embedder, deeper, where))
        if request.explain and request.explain_texts:
            hits = explain_texts(hits, request, embedder)
        _log.debug("[search] results: %d chunks returned", len(hits))
        for rank, hit in enumerate(hits if _log.isEnabledFor(logging.DEBUG) else (), 1):
            _log.debug('[search]   [%d] score=%.2f file=%s heading="%s"', rank, hit.score, hit.uri, hit.chunk.heading)
    return hits


def _ranked_hits(
    store: Store,
    view: IndexView,
    tools: Mapping[int, str],
    embedder: Embedder | None,
    request: RankRequest,
    selection: Selection,
    where: tuple[int, ...] | None,
) -> Iterator[Hit]:
    """Yield hits, best first, with the phrases of a selection as far as the index can tell.

    If more are needed, the rows of a deeper ranking follow those of the first, whose order stays.
    """
    rows_with_phrases: set[int] | None = None
    if selection.phrases:
        rows_with_phrases, where = _find_phrases(store, view, selection, where)
    depth = max(request.rows_to_select_from, request.rows_per_arm, request.rerank_count)
    max_depth = max(depth, MAX_HITS)
    batch = selection.already_returned + selection.limit
    # Twice as many are enough for most passages; to build and explain more rows takes longer than to rank them.
    row_count = MAX_HITS if selection.new_ranges is None else min(2 * batch, MAX_HITS)
    seen_rows: set[int] = set()
    while rows_with_phrases is None or not rows_with_phrases <= seen_rows:
        ranked_rows = rank_rows(view, embedder, replace(request, row_count=row_count, depth=depth), where)
        new_rows = [ranked_row for ranked_row in ranked_rows if ranked_row.row not in seen_rows]
        seen_rows.update(ranked_row.row for ranked_row in new_rows)
        rows = [row for row in new_rows if rows_with_phrases is None or row.row in rows_with_phrases]
        for start in range(0, len(rows), batch):
            yield from fetch_hits(store, view, tools, request, rows[start : start + batch])
        # The last may stand higher than by its score, for having every word; the one before it does not.
        last_score = max((row.score for row in rows[-2:]), default=0.0)
        is_below_minimum = selection.min_score is not None and rows and last_score < selection.min_score
        if is_below_minimum:
            return
        if len(ranked_rows) == row_count < MAX_HITS:
            row_count = MAX_HITS
            continue
        if not new_rows or depth >= max_depth or len(seen_rows) >= view.size:
            return
        depth = min(depth * _DEPTH_FACTOR, max_depth)


def _find_phrases(
    store: Store, view: IndexView, selection: Selection, where: tuple[int, ...] | None
) -> tuple[set[int] | None, tuple[int, ...] | None]:
    """Return the rows that contain the phrases and their documents; None and `where` if there are very many."""
    candidates: set[int] | None = None
    for phrase in selection.phrases:
        rows = _rows_with_grams(view, phrase, where)
        if rows is not None:
            candidates = rows if candidates is None else candidates & rows
    if candidates is None:
        return None, where
    rows_by_id = dict(zip(view.chunk_ids(list(candidates)), candidates, strict=True))
    matching = {
        chunk_id: chunk_row
        for chunk_id, chunk_row in store.documents.chunks(list(rows_by_id)).items()
        if allows_text(selection, chunk_row.chunk.text_to_index(chunk_row.title))
    }
    document_ids = {chunk_row.document_id for chunk_row in matching.values()}
    return {rows_by_id[chunk_id] for chunk_id in matching}, tuple(sorted(document_ids))


def _rows_with_grams(view: IndexView, phrase: str, where: tuple[int, ...] | None) -> set[int] | None:
    """Return the rows that have all n-grams of a phrase; None if it has none, or if there are too many rows."""
    grams = ngrams.query_grams(fold_text(phrase))
    longer = [gram for gram in grams if not ngrams.is_single_char(gram)][:_MAX_GRAMS]
    if longer:
        terms = [QueryTerm(gram.key, 1.0, is_gram=True) for gram in longer]
        rows = view.rank_grams(terms, MAX_PHRASE_ROWS, min_share=1.0, where=where).rows
    elif grams:
        rows = view.rank_key_ranges([ngrams.pair_key_range(grams[0].spelling)], MAX_PHRASE_ROWS, where=where).rows
    else:
        return None
    return None if len(rows) == MAX_PHRASE_ROWS else set(rows)


def fetch_hits(
    store: Store, view: IndexView, tools: Mapping[int, str], request: RankRequest, ranked_rows: Sequence[RankedRow]
) -> list[Hit]:
    """Return the hits of ranked rows, with their documents if the request asks for them."""
    ids = view.chunk_ids([ranked_row.row for ranked_row in ranked_rows])
    chunks = store.documents.chunks(ids, read_documents=request.read_documents)
    if any(chunk_id not in chunks or chunks[chunk_id].tool_id not in tools for chunk_id in ids):
        raise DamagedIndex("The index has chunks that the library does not have")
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


def shares_few_words(view: IndexView, request: RankRequest, hits: Sequence[Hit]) -> bool:
    """Return whether even the best of the hits has few of the words of its query, so that other wordings may help."""
    if request.mode == "semantic":
        return False
    options = request.options
    possible = view.max_score(analyse_query(request.query, options).terms, k1=options.k1)
    return max(hit.bm25_score or 0.0 for hit in hits) < _FEW_WORDS * possible


def log_answer(query: str, hits: Sequence[Hit]) -> None:
    """Log a query and its hits."""
    log = logging.getLogger("bunko.retrieve")
    log.info('RAG retrieve: query="%s"', query)
    for rank, hit in enumerate(hits, 1):
        distance = "none" if hit.vector_distance is None else f"{hit.vector_distance:.3f}"
        log.info('RAG result %d: distance=%s source="%s"', rank, distance, hit.uri)
        log.debug('RAG result %d text: "%s"', rank, hit.chunk.text[:100])
