"""Measure queries under many search configurations, and compute each ranking only once.

The lexical ranking depends on k1 and b, the vector ranking on neither, and only fusion on the weight between them: so
each ranking is computed once and fused with many weights at a time. The numbers equal those of an ordinary run; tests
compare them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bunko.embedders import embed_and_check
from bunko.evaluation import measures
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.run import fetch_sizes, may_abstain, query_measures
from bunko.indexes.embedded import bm25
from bunko.indexes.embedded.snapshot import EMPTY_RANKING, Ranking
from bunko.indexes.embedded.vectors import NearestRows, nearest
from bunko.library import catalog
from bunko.library.library import Library
from bunko.protocols import Embedder
from bunko.search import fusion
from bunko.search.query_analysis import CROSS_LANGUAGE_WEIGHT, QueryAnalysis, analyse_query
from bunko.search.rank import MAX_QUERY_CHARS, SearchRequest, fuse_adaptive, rank_lexical, rows_per_arm
from bunko.text.normalise import escape_surrogates

if TYPE_CHECKING:
    import numpy.typing as npt

    from bunko.types import Vectors

    Floats = npt.NDArray[np.float64]
    Rows = npt.NDArray[np.int64]

_CHUNK_BATCH = 500


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """A search configuration for all queries."""

    request: SearchRequest  # its query and number of results are ignored
    n_results: int
    n_chunks: int | None

    @property
    def lexical_key(self) -> tuple[object, ...]:
        """Return the options that the lexical ranking depends on: configurations that share it are cheap together."""
        if self.request.mode == "semantic":
            return ()
        return self.request.k1, self.request.b, self.request.loanwords, self.request.bridge


def embed_queries(embedder: Embedder, queries: Sequence[JudgedQuery], *, batch_size: int = 1) -> Vectors:
    """Return the vector of each query; by default queries are embedded one by one, as searches do."""
    texts = [_query_text(query) for query in queries]
    batches = (texts[start : start + batch_size] for start in range(0, len(texts), batch_size))
    return np.concatenate([embed_and_check(embedder, batch, query=True) for batch in batches])


class CachedSearch:
    """Ranks and measures the same queries over one tool, with caches for everything that configurations share."""

    def __init__(
        self, library: Library, tool: str, queries: Sequence[JudgedQuery], vectors: Vectors | None, measure: str
    ) -> None:
        self._store, self._queries, self._vectors, self._measure = library.store, queries, vectors, measure
        with self._store.read_transaction():
            stored_tool = catalog.get_tool(self._store, tool)
            self._snapshot = library.snapshot([stored_tool.id])
        embedder = library.embedder_of(stored_tool) if vectors is not None else None
        self._noise_floor = embedder.noise_floor if embedder else -1.0
        segment_orders = [view.segment.order for view in self._snapshot.views]
        self._tie_order = np.concatenate(segment_orders) if segment_orders else np.empty(0, np.uint64)
        self._masks = self._snapshot.masks(None)
        self._analysis_cache: dict[tuple[int, bool, bool], QueryAnalysis] = {}
        self._nearest_cache: dict[tuple[int, int], NearestRows | None] = {}
        self._lexical_cache: dict[tuple[object, ...], Ranking] = {}
        self._all_words_cache: dict[tuple[int, bool, bool, int], bool] = {}
        self._chunk_cache: dict[int, tuple[str, str]] = {}
        self._measure_cache: dict[tuple[object, ...], dict[str, float]] = {}

    def measure_queries(self, configs: Sequence[SearchConfig]) -> list[list[dict[str, float]]]:
        """Return the measures of each query for each configuration."""
        # Configurations that differ only in the vector weight are measured together.
        groups: dict[SearchConfig, list[int]] = {}
        for index, config in enumerate(configs):
            weight = None if config.request.vector_weight is None else 0.0
            shared_config = replace(config, request=replace(config.request, vector_weight=weight))
            groups.setdefault(shared_config, []).append(index)
        measured: list[list[dict[str, float]]] = [[{} for _ in self._queries] for _ in configs]
        for query_index in range(len(self._queries)):
            self._lexical_cache.clear()
            for shared_config, indexes in groups.items():
                weights = np.array([configs[index].request.vector_weight or 0.0 for index in indexes])
                query_values = self._measure_query(query_index, shared_config, weights)
                for index, values in zip(indexes, query_values, strict=True):
                    measured[index][query_index] = values
        return measured

    def _measure_query(self, query_index: int, config: SearchConfig, weights: Floats) -> list[dict[str, float]]:
        """Return the measures of one query for each weight; weights that get too few documents fetch more chunks."""
        query, can_abstain = self._queries[query_index], may_abstain(config.request)
        measured: list[dict[str, float] | None] = [None] * len(weights)
        pending = list(range(len(weights)))
        sizes = list(fetch_sizes(config.n_results, config.n_chunks))
        for size in sizes:
            unfinished = []
            rankings = self._rank_rows(query_index, config.request, weights[pending], size)
            for index, rows in zip(pending, rankings, strict=True):
                key = (query_index, config.n_results, size, can_abstain, rows.tobytes())
                values = self._measure_cache.get(key)
                if values is None:
                    uris = self._document_uris(rows, config.n_results)
                    if len(uris) < config.n_results and len(rows) == size != sizes[-1]:
                        unfinished.append(index)
                        continue
                    texts = [self._chunk(int(row))[1] for row in rows[: config.n_results]] if query.keywords else []
                    values = query_measures(query, uris, texts, config.n_results, can_abstain=can_abstain)
                    values = add_measure(values, query, uris, self._measure)
                    self._measure_cache[key] = values
                measured[index] = values
            pending = unfinished
            if not pending:
                break
        return [values or {} for values in measured]

    def _rank_rows(self, query_index: int, request: SearchRequest, weights: Floats, fetch_size: int) -> list[Rows]:
        """Return the best rows for each weight, as a search for `fetch_size` results ranks them."""
        is_hybrid = request.mode == "hybrid"
        k = rows_per_arm(replace(request, top_k=fetch_size))
        lexical, nearest_rows = EMPTY_RANKING, None
        if request.mode != "semantic":
            lexical = self._rank_lexical(query_index, request, k)
        if request.mode != "bm25":
            nearest_rows = self._rank_nearest(query_index, k, request.similarity_threshold)
        if nearest_rows and is_hybrid and request.fusion == "cc" and request.vector_weight is None:
            nearest_rows = nearest_rows._replace(ranking=self._drop_noise(nearest_rows.ranking, lexical))
        semantic = nearest_rows.ranking if nearest_rows else EMPTY_RANKING
        rows = np.array(list(dict.fromkeys((*lexical.rows, *semantic.rows))), np.int64)
        # This order breaks ties between equal scores; the stable sort below keeps it.
        rows = rows[np.argsort(self._tie_order[rows], kind="stable")]
        scores = self._score_rows(query_index, request, rows, lexical, nearest_rows, weights)
        orders = np.argsort(-scores, axis=1, kind="stable")
        min_score = request.min_combined_score if is_hybrid and request.fusion == "cc" else None
        if min_score is None:
            best = list(rows[orders[:, :fetch_size]])
        else:
            masks = (scores >= min_score) | self._rows_with_all_words(query_index, request, rows)
            best = [rows[order[mask[order]]][:fetch_size] for order, mask in zip(orders, masks, strict=True)]
        # Where the weight has no effect, there is one ranking for all weights.
        return best * len(weights) if len(scores) < len(weights) else best

    def _rank_lexical(self, query_index: int, request: SearchRequest, k: int) -> Ranking:
        key = (k, request.k1, request.b, request.loanwords, request.bridge)
        if key not in self._lexical_cache:
            analysis = self._analysis(query_index, request)
            self._lexical_cache[key] = rank_lexical(
                self._snapshot, analysis, k, k1=request.k1, b=request.b, masks=self._masks
            )
        return self._lexical_cache[key]

    def _rank_nearest(self, query_index: int, k: int, threshold: float | None) -> NearestRows | None:
        if (query_index, k) not in self._nearest_cache:
            text = _query_text(self._queries[query_index])
            nearest_rows = None
            if self._vectors is not None and self._snapshot.size and text.strip():
                nearest_rows = nearest(self._snapshot, self._vectors[query_index], k, masks=self._masks)
            self._nearest_cache[query_index, k] = nearest_rows
        nearest_rows = self._nearest_cache[query_index, k]
        if threshold is None or nearest_rows is None:
            return nearest_rows
        rows, scores = nearest_rows.ranking
        count = sum(1 - score <= threshold for score in scores)
        return nearest_rows._replace(ranking=Ranking(rows[:count], scores[:count]))

    def _drop_noise(self, vector_ranking: Ranking, lexical_ranking: Ranking) -> Ranking:
        """Return the rows above the noise floor or in the lexical ranking, as a search with adaptive weights does."""
        lexical_rows = set(lexical_ranking.rows)
        pairs = zip(*vector_ranking, strict=True)
        relevant = [(row, score) for row, score in pairs if row in lexical_rows or score >= self._noise_floor]
        return Ranking([row for row, _ in relevant], [score for _, score in relevant])

    def _score_rows(
        self,
        query_index: int,
        request: SearchRequest,
        rows: Rows,
        lexical_ranking: Ranking,
        nearest_rows: NearestRows | None,
        weights: Floats,
    ) -> Floats:
        """Return the scores of rows, one line per weight; a single line if the weight has no effect."""
        lexical = dict(zip(*lexical_ranking, strict=True))
        if request.mode == "bm25" or nearest_rows is None:
            return np.array([_row_scores(lexical, rows)])
        semantic = dict(zip(*nearest_rows.ranking, strict=True))
        if request.mode == "semantic":
            return np.array([_row_scores(semantic, rows)])
        if request.fusion == "rrf":
            rankings = [lexical_ranking.rows, nearest_rows.ranking.rows]
            return np.array([_row_scores(fusion.reciprocal_rank_fusion(rankings, request.rrf_k), rows)])
        if request.vector_weight is None:
            analysis = self._analysis(query_index, request)
            fused = fuse_adaptive(self._snapshot, analysis, lexical, semantic, nearest_rows, request.k1)
            return np.array([_row_scores(fused, rows)])
        lexical_scores, vector_scores = (
            np.array(_row_scores(fusion.normalise_scores(scores), rows)) for scores in (lexical, semantic)
        )
        weight_column = weights[:, None]
        combined: Floats = weight_column * vector_scores + (1 - weight_column) * lexical_scores
        return combined

    def _rows_with_all_words(self, query_index: int, request: SearchRequest, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return which rows contain all words of the query: these pass below the minimum score too."""
        analysis = self._analysis(query_index, request)
        required = [index for index, role in enumerate(analysis.roles) if role == ""]
        key = query_index, request.loanwords, request.bridge
        row_numbers = [int(row) for row in rows]
        uncached = [row for row in row_numbers if (*key, row) not in self._all_words_cache]
        for row, matches in zip(uncached, bm25.matches(self._snapshot, analysis.terms, uncached), strict=True):
            self._all_words_cache[*key, row] = bool(required) and all(matches[index] for index in required)
        return np.array([self._all_words_cache[*key, row] for row in row_numbers], bool)

    def _analysis(self, query_index: int, request: SearchRequest) -> QueryAnalysis:
        key = query_index, request.loanwords, request.bridge
        if key not in self._analysis_cache:
            weight = CROSS_LANGUAGE_WEIGHT if request.bridge else 0.0
            self._analysis_cache[key] = analyse_query(
                _query_text(self._queries[query_index]), loanwords=request.loanwords, cross_language_weight=weight
            )
        return self._analysis_cache[key]

    def _document_uris(self, rows: Iterable[np.int64], limit: int) -> list[str]:
        """Return the documents of rows without duplicates, best first."""
        row_numbers = [int(row) for row in rows]
        self._load_chunks(row_numbers)
        return list(dict.fromkeys(self._chunk_cache[row][0] for row in row_numbers))[:limit]

    def _chunk(self, row: int) -> tuple[str, str]:
        self._load_chunks([row])
        return self._chunk_cache[row]

    def _load_chunks(self, rows: Sequence[int]) -> None:
        uncached = [row for row in rows if row not in self._chunk_cache]
        for start in range(0, len(uncached), _CHUNK_BATCH):
            row_by_id = {self._snapshot.chunk_id(row): row for row in uncached[start : start + _CHUNK_BATCH]}
            for chunk_id, chunk_row in self._store.documents.chunks(list(row_by_id)).items():
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


def _row_scores(scores: Mapping[int, float], rows: Rows) -> list[float]:
    return [scores.get(int(row), 0.0) for row in rows]


def _query_text(query: JudgedQuery) -> str:
    return escape_surrogates(query.text)[:MAX_QUERY_CHARS]
