"""Questions over one library in, the measures of each under many settings out, with every search done once.

What words find depends on k1 and b, what vectors find on neither, and the weight between them on both: so each arm is
asked once, and many weights are fused at a time. The numbers are those of a plain run; tests compare them.
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
    """One way of asking all questions."""

    request: SearchRequest  # its query and number of results mean nothing
    n_results: int
    n_chunks: int | None

    @property
    def lexical_key(self) -> tuple[object, ...]:
        """Return what the ranking by words depends on: asks that share it are cheap together."""
        if self.request.mode == "semantic":
            return ()
        return self.request.k1, self.request.b, self.request.loanwords, self.request.bridge


def embed_queries(embedder: Embedder, queries: Sequence[JudgedQuery], *, batch_size: int = 1) -> Vectors:
    """Return the vector of each question; embedded one by one as searches do it, unless more may go together."""
    texts = [_query_text(query) for query in queries]
    some = (texts[at : at + batch_size] for at in range(0, len(texts), batch_size))
    return np.concatenate([embed_and_check(embedder, one, query=True) for one in some])


class CachedSearch:
    """The questions laid out over one library."""

    def __init__(
        self, library: Library, tool: str, queries: Sequence[JudgedQuery], vectors: Vectors | None, measure: str
    ) -> None:
        self._store, self._queries, self._vectors, self._measure = library.store, queries, vectors, measure
        with self._store.read_transaction():
            named = catalog.get_tool(self._store, tool)
            self._snapshot = library.snapshot([named.id])
        embedder = library.embedder_of(named) if vectors is not None else None
        self._noise_floor = embedder.noise_floor if embedder else -1.0
        parts = [part.segment.order for part in self._snapshot.views]
        self._tie_order = np.concatenate(parts) if parts else np.empty(0, np.uint64)
        self._masks = self._snapshot.masks(None)
        self._analysis_cache: dict[tuple[int, bool, bool], QueryAnalysis] = {}
        self._nearest_cache: dict[tuple[int, int], NearestRows | None] = {}
        self._lexical_cache: dict[tuple[object, ...], Ranking] = {}
        self._all_words_cache: dict[tuple[int, bool, bool, int], bool] = {}
        self._chunk_cache: dict[int, tuple[str, str]] = {}
        self._measure_cache: dict[tuple[object, ...], dict[str, float]] = {}

    def measure_queries(self, configs: Sequence[SearchConfig]) -> list[list[dict[str, float]]]:
        """Return for each way of asking the measures of each question."""
        together: dict[SearchConfig, list[int]] = {}
        for at, ask in enumerate(configs):
            weight = None if ask.request.vector_weight is None else 0.0
            together.setdefault(replace(ask, request=replace(ask.request, vector_weight=weight)), []).append(at)
        found: list[list[dict[str, float]]] = [[{} for _ in self._queries] for _ in configs]
        for number in range(len(self._queries)):
            self._lexical_cache.clear()
            for shape, members in together.items():
                weights = np.array([configs[at].request.vector_weight or 0.0 for at in members])
                for at, values in zip(members, self._measure_query(number, shape, weights), strict=True):
                    found[at][number] = values
        return found

    def _measure_query(self, query_index: int, config: SearchConfig, weights: Floats) -> list[dict[str, float]]:
        """Return the measures of one question for each weight; more chunks are looked at for those that need them."""
        query, abstaining = self._queries[query_index], may_abstain(config.request)
        found: list[dict[str, float] | None] = [None] * len(weights)
        open_ones = list(range(len(weights)))
        all_widths = list(fetch_sizes(config.n_results, config.n_chunks))
        for width in all_widths:
            left = []
            rankings = self._rank_rows(query_index, config.request, weights[open_ones], width)
            for at, rows in zip(open_ones, rankings, strict=True):
                key = (query_index, config.n_results, width, abstaining, rows.tobytes())
                values = self._measure_cache.get(key)
                if values is None:
                    names = self._document_uris(rows, config.n_results)
                    if len(names) < config.n_results and len(rows) == width != all_widths[-1]:
                        left.append(at)
                        continue
                    texts = [self._chunk(int(row))[1] for row in rows[: config.n_results]] if query.keywords else []
                    values = query_measures(query, names, texts, config.n_results, can_abstain=abstaining)
                    values = add_measure(values, query, names, self._measure)
                    self._measure_cache[key] = values
                found[at] = values
            open_ones = left
            if not open_ones:
                break
        return [one or {} for one in found]

    def _rank_rows(self, query_index: int, request: SearchRequest, weights: Floats, fetch_size: int) -> list[Rows]:
        """Return for each weight the best rows, as a search for so many results ranks them."""
        hybrid = request.mode == "hybrid"
        fetch = rows_per_arm(replace(request, top_k=fetch_size))
        like, close = EMPTY_RANKING, None
        if request.mode != "semantic":
            like = self._rank_lexical(query_index, request, fetch)
        if request.mode != "bm25":
            close = self._rank_nearest(query_index, fetch, request.similarity_threshold)
        if close and hybrid and request.fusion == "cc" and request.vector_weight is None:
            close = close._replace(ranking=self._drop_noise(close.ranking, like))
        near = close.ranking if close else EMPTY_RANKING
        rows = np.array(list(dict.fromkeys((*like.rows, *near.rows))), np.int64)
        # Equal scores are told apart by this order, and a stable sort keeps it.
        rows = rows[np.argsort(self._tie_order[rows], kind="stable")]
        scores = self._score_rows(query_index, request, rows, like, close, weights)
        ranked = np.argsort(-scores, axis=1, kind="stable")
        least = request.min_combined_score if hybrid and request.fusion == "cc" else None
        if least is None:
            best = list(rows[ranked[:, :fetch_size]])
        else:
            kept = (scores >= least) | self._rows_with_all_words(query_index, request, rows)
            best = [rows[order[keep[order]]][:fetch_size] for order, keep in zip(ranked, kept, strict=True)]
        # Without weights to tell them apart there is one ranking for all.
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
            found = None
            if self._vectors is not None and self._snapshot.size and text.strip():
                found = nearest(self._snapshot, self._vectors[query_index], k, masks=self._masks)
            self._nearest_cache[query_index, k] = found
        found = self._nearest_cache[query_index, k]
        if threshold is None or found is None:
            return found
        rows, scores = found.ranking
        kept = sum(1 - score <= threshold for score in scores)
        return found._replace(ranking=Ranking(rows[:kept], scores[:kept]))

    def _drop_noise(self, vector_ranking: Ranking, lexical_ranking: Ranking) -> Ranking:
        """Return what is near enough to mean something or holds words too, as a search that weighs each query does."""
        by_words = set(lexical_ranking.rows)
        pairs = zip(*vector_ranking, strict=True)
        kept = [(row, score) for row, score in pairs if row in by_words or score >= self._noise_floor]
        return Ranking([row for row, _ in kept], [score for _, score in kept])

    def _score_rows(
        self,
        query_index: int,
        request: SearchRequest,
        rows: Rows,
        lexical_ranking: Ranking,
        nearest_chunks: NearestRows | None,
        weights: Floats,
    ) -> Floats:
        """Return the scores of rows, one line for each weight; a single line where weights mean nothing."""
        by_words = dict(zip(*lexical_ranking, strict=True))
        if request.mode == "bm25" or nearest_chunks is None:
            return np.array([_row_scores(by_words, rows)])
        by_vector = dict(zip(*nearest_chunks.ranking, strict=True))
        if request.mode == "semantic":
            return np.array([_row_scores(by_vector, rows)])
        if request.fusion == "rrf":
            return np.array(
                [
                    _row_scores(
                        fusion.reciprocal_rank_fusion(
                            [lexical_ranking.rows, nearest_chunks.ranking.rows], request.rrf_k
                        ),
                        rows,
                    )
                ]
            )
        if request.vector_weight is None:
            analysis = self._analysis(query_index, request)
            found = fuse_adaptive(self._snapshot, analysis, by_words, by_vector, nearest_chunks, request.k1)
            return np.array([_row_scores(found, rows)])
        words, vector = (np.array(_row_scores(fusion.normalise_scores(one), rows)) for one in (by_words, by_vector))
        columns = weights[:, None]
        combined: Floats = columns * vector + (1 - columns) * words
        return combined

    def _rows_with_all_words(self, query_index: int, request: SearchRequest, rows: Rows) -> npt.NDArray[np.bool_]:
        """Say which rows hold all words asked for: these are not held back."""
        analysis = self._analysis(query_index, request)
        needed = [at for at, role in enumerate(analysis.roles) if role == ""]
        key = query_index, request.loanwords, request.bridge
        own = [int(row) for row in rows]
        new = [row for row in own if (*key, row) not in self._all_words_cache]
        for row, held in zip(new, bm25.matches(self._snapshot, analysis.terms, new), strict=True):
            self._all_words_cache[*key, row] = bool(needed) and all(held[at] for at in needed)
        return np.array([self._all_words_cache[*key, row] for row in own], bool)

    def _analysis(self, query_index: int, request: SearchRequest) -> QueryAnalysis:
        key = query_index, request.loanwords, request.bridge
        if key not in self._analysis_cache:
            across = CROSS_LANGUAGE_WEIGHT if request.bridge else 0.0
            self._analysis_cache[key] = analyse_query(
                _query_text(self._queries[query_index]), loanwords=request.loanwords, cross_language_weight=across
            )
        return self._analysis_cache[key]

    def _document_uris(self, rows: Iterable[np.int64], limit: int) -> list[str]:
        """Return the documents of rows, each once, the best first."""
        own = [int(row) for row in rows]
        self._load_chunks(own)
        return list(dict.fromkeys(self._chunk_cache[row][0] for row in own))[:limit]

    def _chunk(self, row: int) -> tuple[str, str]:
        self._load_chunks([row])
        return self._chunk_cache[row]

    def _load_chunks(self, rows: Sequence[int]) -> None:
        new = [row for row in rows if row not in self._chunk_cache]
        for at in range(0, len(new), _CHUNK_BATCH):
            ids = {self._snapshot.chunk_id(row): row for row in new[at : at + _CHUNK_BATCH]}
            for chunk_id, stored in self._store.chunks(list(ids)).items():
                self._chunk_cache[ids[chunk_id]] = (stored.uri, stored.chunk.text)


def add_measure(values: dict[str, float], query: JudgedQuery, uris: Sequence[str], measure: str) -> dict[str, float]:
    """Return values with the measure that is wanted, where its depth is not the number of results.

    Of questions without an answer, one that no threshold holds back counts too: settings with one and without compare.
    """
    if measure == "abstention" and not query.is_answerable:
        return values | {measure: float(not uris)}
    kind, at, depth = measure.partition("@")
    if measure in values or not at or not query.is_answerable:
        return values
    deep = measures.ranking_measures(uris, query.grades, int(depth), expected=query.relevant_uris)
    return values | {measure: deep[f"{kind}@{depth}"]}


def _row_scores(scores: Mapping[int, float], rows: Rows) -> list[float]:
    return [scores.get(int(row), 0.0) for row in rows]


def _query_text(query: JudgedQuery) -> str:
    return escape_surrogates(query.text)[:MAX_QUERY_CHARS]
