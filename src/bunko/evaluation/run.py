"""Run judged queries against a library and measure the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bunko.errors import EmbedderError, ModelError
from bunko.evaluation import measures
from bunko.evaluation.compare import confidence_intervals
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.eval_library import JUDGED_TOOL
from bunko.library.library import Library
from bunko.runtime.observer import NO_OBSERVER, Observer
from bunko.search.request import RankRequest
from bunko.types import Answer, Mode, format_citation

# One document may have many chunks: a search fetches three chunks per document, and more if those belong to too few
# documents. Fetching far more from the start would fuse a different hybrid ranking than users get.
CHUNKS_PER_DOCUMENT = 3
_WIDEN_FACTOR = 4
_MAX_CHUNKS = 1000
_SNIPPET_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class RetrievedDocument:
    """A retrieved document with its best chunk."""

    uri: str
    score: float
    grade: float  # 0: not relevant
    citation: str
    text: str  # the beginning of the chunk


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The documents that a query retrieved, and the measures that apply to it."""

    query: JudgedQuery
    documents: tuple[RetrievedDocument, ...]
    measures: dict[str, float]
    milliseconds: float


@dataclass(frozen=True)
class Run:
    """The results of all queries in one mode and configuration."""

    name: str
    mode: Mode
    results: tuple[QueryResult, ...]

    @cached_property
    def measures(self) -> dict[str, float]:
        """The mean of each measure over the queries that it applies to."""
        return means(self.results)

    @cached_property
    def values(self) -> dict[str, dict[str, float]]:
        """The value of each measure for each query: measure → query id → value."""
        return {
            name: {result.query.id: result.measures[name] for result in self.results if name in result.measures}
            for name in self.measures
        }

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """The 95 % interval of the mean of each measure."""
        return confidence_intervals(self.values)

    def groups(self, group_of: Callable[[JudgedQuery], str]) -> dict[str, tuple[QueryResult, ...]]:
        """Return the results grouped by a property of their queries."""
        names = sorted({group_of(result.query) for result in self.results})
        return {name: tuple(result for result in self.results if group_of(result.query) == name) for name in names}


def means(results: Iterable[QueryResult]) -> dict[str, float]:
    """Return the mean of each measure over the queries that it applies to."""
    return averages(result.measures for result in results)


def averages(measure_rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each measure over the rows that have it."""
    collected: dict[str, list[float]] = {}
    for values in measure_rows:
        for name, value in values.items():
            collected.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in collected.items()}


def run_queries(
    library: Library,
    queries: Sequence[JudgedQuery],
    *,
    mode: Mode,
    n_results: int,
    n_chunks: int | None = None,
    name: str = "",
    tool: str = JUDGED_TOOL,
    with_wordings: bool = False,
    observer: Observer = NO_OBSERVER,
    **options: Any,
) -> Run:
    """Run every query and judge its first `n_results` documents, from the first `n_chunks` chunks if given.

    Options are those of a search (vector_weight, k1, b, fusion, …). Options that are not given come from the settings;
    the tool's own search settings are ignored, so that the compared settings take effect.
    """

    def search(query: JudgedQuery, top_k: int) -> Answer:
        answer = library.search(
            query.text,
            also=query.also if with_wordings else (),
            passage=query.passage if with_wordings else "",
            tool=tool,
            mode=mode,
            top_k=top_k,
            operators=False,
            refresh=False,
            use_tool_settings=False,
            **options,
        )
        if answer.mode != mode:  # the figures would be those of another mode
            raise EmbedderError(f"The mode {mode} cannot be measured", hint=" ".join(answer.notices))
        if library.settings.search.reranker and answer.hits and not answer.reranker:
            reranker = library.settings.search.reranker
            raise ModelError(f"The reranker {reranker} cannot be measured", hint=" ".join(answer.notices))
        return answer

    first_size, *larger_sizes = fetch_sizes(n_results, n_chunks)
    can_abstain = may_abstain(library.build_request("", mode=mode, top_k=first_size, **options))
    search(queries[0], first_size)  # loads the index, so that the first query's time does not include it
    results, step = [], f"Searching, {name or mode}"
    for position, query in enumerate(queries, 1):
        start = time.perf_counter()
        answer = search(query, first_size)
        milliseconds = (time.perf_counter() - start) * 1000
        documents = _retrieved_documents(answer, query, n_results)
        last_size = first_size
        for size in larger_sizes:
            if len(documents) >= n_results or len(answer.hits) < last_size:
                break
            answer, last_size = search(query, size), size
            documents = _retrieved_documents(answer, query, n_results)
        uris = [document.uri for document in documents]
        texts = [hit.chunk.text for hit in answer.hits[:n_results]]
        values = query_measures(query, uris, texts, n_results, can_abstain=can_abstain)
        results.append(QueryResult(query, documents, values, milliseconds))
        observer.on_step(step, position, len(queries))
    return Run(name or mode, mode, tuple(results))


def _retrieved_documents(answer: Answer, query: JudgedQuery, limit: int) -> tuple[RetrievedDocument, ...]:
    # Judgements are about documents. The first chunk of each is its best; the others would earn its gain again.
    documents: dict[str, RetrievedDocument] = {}
    for hit in answer.hits:
        if hit.uri not in documents:
            citation = format_citation(hit.uri, hit.chunk.first_line, hit.chunk.last_line)
            grade = query.grades.get(hit.uri, 0.0)
            snippet = hit.chunk.text[:_SNIPPET_CHARACTERS]
            documents[hit.uri] = RetrievedDocument(hit.uri, hit.score, grade, citation, snippet)
            if len(documents) == limit:
                break
    return tuple(documents.values())


def fetch_sizes(n_results: int, n_chunks: int | None) -> Iterator[int]:
    """Yield how many chunks to fetch first, then the larger sizes to try if those belong to too few documents."""
    size = min(_MAX_CHUNKS, n_chunks or n_results * CHUNKS_PER_DOCUMENT)
    yield size
    while n_chunks is None and size < _MAX_CHUNKS:
        size = min(_MAX_CHUNKS, size * _WIDEN_FACTOR)
        yield size


def query_measures(
    query: JudgedQuery, uris: Sequence[str], texts: Sequence[str], n_results: int, *, can_abstain: bool
) -> dict[str, float]:
    """Return the measures that apply to a query, from the retrieved documents and the texts of their chunks."""
    values: dict[str, float] = {}
    if query.is_answerable:
        values = measures.ranking_measures(uris, query.grades, n_results, expected=query.relevant_uris)
    if query.negatives:
        values[measures.NEGATIVE_RATE] = float(not set(uris).isdisjoint(query.negatives))
    if query.keywords:
        joined = "\n".join(texts).casefold()
        values["keywords"] = sum(keyword.casefold() in joined for keyword in query.keywords) / len(query.keywords)
    if not query.is_answerable and can_abstain:
        values["abstention"] = float(not uris)
    return values


def may_abstain(request: RankRequest) -> bool:
    """Return whether a threshold can make a search return nothing although it found candidates."""
    by_distance = request.mode != "bm25" and request.options.similarity_threshold is not None
    return by_distance or (request.mode == "hybrid" and request.options.min_combined_score is not None)
