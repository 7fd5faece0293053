"""Measure queries under many search configurations, and compute each ranking only once.

The lexical ranking depends on k1 and b, the vector ranking on neither, and only fusion on the weight between them: so
each ranking is computed once and fused for each configuration. The numbers equal those of an ordinary run; tests
compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bunko.embedders.embed import embed_and_check
from bunko.evaluation import measures
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.run import fetch_sizes, may_abstain, query_measures
from bunko.library.library import Library
from bunko.protocols import Embedder
from bunko.search.arms import Arms, rank_lexical
from bunko.search.query_analysis import QueryAnalysis, analyse_query
from bunko.search.rank import fuse, have_every_word, rank_rows, select_rows
from bunko.search.request import RankRequest, clean_query, clean_wordings
from bunko.search.similarity import CloseReading, read_closely
from bunko.types.records import EMPTY_RANKING, NearestRows, Ranking

if TYPE_CHECKING:
    from bunko.types import Vectors

_CHUNK_BATCH = 500


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """A search configuration for all queries."""

    request: RankRequest  # its query and number of results are ignored
    n_results: int
    n_chunks: int | None

    @property
    def lexical_key(self) -> tuple[object, ...]:
        """Return the options that the lexical ranking depends on: configurations that share it are cheap together."""
        if self.request.mode == "semantic":
            return ()
        return self.request.options.values_of("analysis", "words")


def embed_queries(embedder: Embedder, queries: Sequence[JudgedQuery], *, batch_size: int | None = None) -> Vectors:
    """Return the vector of each query; by default a local model embeds one by one, as searches do."""
    texts = [clean_query(query.text) for query in queries]
    if batch_size is None:
        batch_size = embedder.batch_size if embedder.is_remote else 1
    batches = (texts[start : start + batch_size] for start in range(0, len(texts), batch_size))
    return np.concatenate([embed_and_check(embedder, batch, query=True) for batch in batches])


class CachedSearch:
    """Ranks and measures the same queries over one tool, with caches for everything that configurations share."""

    def __init__(
        self,
        library: Library,
        tool: str,
        queries: Sequence[JudgedQuery],
        vectors: Vectors | None,
        measure: str,
    ) -> None:
        self._queries, self._vectors, self._measure = queries, vectors, measure
        self._documents = library.documents.stored
        with library.storage.read_transaction():
            stored_tool = library.tools.get(tool)
            self._view = library.index_view([stored_tool.id])
        self._embedder = library.embedder_of(stored_tool) if vectors is not None else None
        self._noise_floor = self._embedder.noise_floor if self._embedder else -1.0
        self._analysis_cache: dict[tuple[object, ...], QueryAnalysis] = {}
        self._nearest_cache: dict[tuple[int, int], NearestRows | None] = {}
        self._reading_cache: dict[int, CloseReading] = {}
        self._rows_read: dict[int, set[int]] = {}
        self._lexical_cache: dict[tuple[object, ...], Ranking] = {}
        self._every_word_cache: dict[tuple[object, ...], dict[int, bool]] = {}
        self._chunk_cache: dict[int, tuple[str, str]] = {}
        self._measure_cache: dict[tuple[object, ...], dict[str, float]] = {}

    def measure_queries(self, configs: Sequence[SearchConfig]) -> list[list[dict[str, float]]]:
        """Return the measures of each query for each configuration."""
        measured: list[list[dict[str, float]]] = [[] for _ in configs]
        for query_index in range(len(self._queries)):
            self._lexical_cache.clear()
            for config, query_values in zip(configs, measured, strict=True):
                query_values.append(self._measure_query(query_index, config))
        return measured

    def _measure_query(self, query_index: int, config: SearchConfig) -> dict[str, float]:
        """Return the measures of one query; more chunks are fetched if the first have too few documents."""
        query, can_abstain = self._queries[query_index], may_abstain(config.request)
        *sizes, largest = fetch_sizes(config.n_results, config.n_chunks)
        for size in (*sizes, largest):
            rows = self._rank_rows(query_index, config.request, size)
            key = (query_index, config.n_results, size, can_abstain, *rows)
            if key in self._measure_cache:
                break
            uris = self._document_uris(rows, config.n_results)
            if len(uris) < config.n_results and len(rows) == size != largest:
                continue
            texts = [self._chunk(row)[1] for row in rows[: config.n_results]] if query.keywords else []
            values = query_measures(query, uris, texts, config.n_results, can_abstain=can_abstain)
            self._measure_cache[key] = add_measure(values, query, uris, self._measure)
            break
        return self._measure_cache[key]

    def _rank_rows(self, query_index: int, request: RankRequest, fetch_size: int) -> list[int]:
        """Return the best rows, as a search for `fetch_size` results ranks them."""
        request = replace(request, row_count=fetch_size)
        query = self._queries[query_index]
        if wordings := clean_wordings(query.text, query.also, query.passage):
            # Not cached: their weights are what is tried.
            embedder = self._embedder if request.mode != "bm25" else None
            request = replace(request, query=clean_query(query.text), wordings=wordings)
            return [ranked.row for ranked in rank_rows(self._view, embedder, request)]
        lexical, nearest = EMPTY_RANKING, None
        if request.mode != "semantic":
            lexical = self._rank_lexical(query_index, request)
        if request.mode != "bm25":
            nearest = self._rank_nearest(query_index, request)
        analysis = self._analysis(query_index, request)
        arms, read = Arms(lexical, nearest), partial(self._read_closely, query_index)
        scores = fuse(self._view, analysis, request, arms, read, noise_floor=self._noise_floor)
        return select_rows(self._view, request, scores, partial(self._have_every_word, query_index, request))

    def _rank_lexical(self, query_index: int, request: RankRequest) -> Ranking:
        k = request.rows_per_arm
        options = request.options
        key = (k, *options.values_of("analysis", "words"))
        if key not in self._lexical_cache:
            analysis = self._analysis(query_index, request)
            self._lexical_cache[key] = rank_lexical(self._view, analysis, k, k1=options.k1, b=options.b)
        return self._lexical_cache[key]

    def _rank_nearest(self, query_index: int, request: RankRequest) -> NearestRows | None:
        key = query_index, request.rows_per_arm
        if key not in self._nearest_cache:
            text = clean_query(self._queries[query_index].text)
            nearest_rows = None
            if self._vectors is not None and self._view.size and text.strip():
                nearest_rows = self._view.nearest(self._vectors[query_index], request.rows_per_arm)
            self._nearest_cache[key] = nearest_rows
        return self._nearest_cache[key]

    def _read_closely(self, query_index: int, rows: Sequence[int]) -> CloseReading:
        matches, trust = self._reading_cache.get(query_index, CloseReading({}))
        read = self._rows_read.setdefault(query_index, set())
        uncached = [row for row in rows if row not in read]
        read.update(uncached)
        if uncached and self._vectors is not None:
            text = clean_query(self._queries[query_index].text)
            reading = read_closely(self._view, self._embedder, text, self._vectors[query_index], uncached)
            matches, trust = {**matches, **reading.matches}, max(trust, reading.trust)
            self._reading_cache[query_index] = CloseReading(matches, trust)
        return CloseReading({row: matches[row] for row in rows if row in matches}, trust)

    def _have_every_word(self, query_index: int, request: RankRequest, rows: Sequence[int]) -> list[bool]:
        """Return which rows contain every word of the query."""
        cache = self._every_word_cache.setdefault((query_index, *request.options.values_of("analysis")), {})
        uncached = [row for row in rows if row not in cache]
        if uncached:
            flags = have_every_word(self._view, self._analysis(query_index, request), uncached)
            cache.update(zip(uncached, flags, strict=True))
        return [cache[row] for row in rows]

    def _analysis(self, query_index: int, request: RankRequest) -> QueryAnalysis:
        key = query_index, *request.options.values_of("analysis")
        if key not in self._analysis_cache:
            self._analysis_cache[key] = analyse_query(clean_query(self._queries[query_index].text), request.options)
        return self._analysis_cache[key]

    def _document_uris(self, rows: Sequence[int], limit: int) -> list[str]:
        """Return the documents of rows without duplicates, best first."""
        self._load_chunks(rows)
        return list(dict.fromkeys(self._chunk_cache[row][0] for row in rows))[:limit]

    def _chunk(self, row: int) -> tuple[str, str]:
        self._load_chunks([row])
        return self._chunk_cache[row]

    def _load_chunks(self, rows: Sequence[int]) -> None:
        uncached = [row for row in rows if row not in self._chunk_cache]
        for start in range(0, len(uncached), _CHUNK_BATCH):
            batch = uncached[start : start + _CHUNK_BATCH]
            row_by_id = dict(zip(self._view.chunk_ids(batch), batch, strict=True))
            for chunk_id, chunk_row in self._documents.chunks(list(row_by_id)).items():
                self._chunk_cache[row_by_id[chunk_id]] = (chunk_row.uri, chunk_row.chunk.text)


def add_measure(values: dict[str, float], query: JudgedQuery, uris: Sequence[str], measure: str) -> dict[str, float]:
    """Return the values with `measure` added if its depth differs from the number of results.

    `abstention` counts queries without an answer even if there is no threshold, so that settings with and without one
    are comparable.
    """
    if measure == "abstention" and not query.is_answerable:
        return values | {measure: float(not uris)}
    kind, separator, depth = measure.partition("@")
    if measure in values or not separator or not query.is_answerable:
        return values
    values_at_depth = measures.ranking_measures(uris, query.grades, int(depth), expected=query.relevant_uris)
    return values | {measure: values_at_depth[f"{kind}@{depth}"]}
