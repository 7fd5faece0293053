"""A library and judged questions in, what each question found and how good that is out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bunko.evaluation import measures
from bunko.evaluation.compare import confidence_intervals
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.eval_library import JUDGED_TOOL
from bunko.library.library import Library
from bunko.search.rank import SearchRequest
from bunko.types import Answer, Mode, format_citation

# One document may fill many chunks: three are asked for where one document is wanted, and more where that finds too
# few. Far more from the start would fuse another hybrid ranking than people get.
CHUNKS_PER_DOCUMENT = 3
_WIDEN_FACTOR = 4
_MAX_CHUNKS = 1000
_SNIPPET_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class RetrievedDocument:
    """A document that came back, with its best chunk."""

    uri: str
    score: float
    grade: float  # 0: not an answer
    citation: str
    text: str  # how the chunk begins


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What one question found, and each measure that makes sense for it."""

    query: JudgedQuery
    documents: tuple[RetrievedDocument, ...]
    measures: dict[str, float]
    milliseconds: float


@dataclass(frozen=True)
class Run:
    """All questions, asked in one way."""

    name: str
    mode: Mode
    results: tuple[QueryResult, ...]

    @cached_property
    def measures(self) -> dict[str, float]:
        """The mean of each measure, over the questions that it makes sense for."""
        return means(self.results)

    @cached_property
    def values(self) -> dict[str, dict[str, float]]:
        """Each measure of each question: measure → the question's id → value."""
        return {
            name: {one.query.id: one.measures[name] for one in self.results if name in one.measures}
            for name in self.measures
        }

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """The 95 % interval of the mean of each measure."""
        return confidence_intervals(self.values)

    def groups(self, group_of: Callable[[JudgedQuery], str]) -> dict[str, tuple[QueryResult, ...]]:
        """Return the results apart, by what the questions have in common."""
        names = sorted({group_of(one.query) for one in self.results})
        return {name: tuple(one for one in self.results if group_of(one.query) == name) for name in names}


def means(results: Iterable[QueryResult]) -> dict[str, float]:
    """Return the mean of each measure over the questions that it makes sense for."""
    return averages(one.measures for one in results)


def averages(measure_rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each measure over those that have it."""
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
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    **options: Any,
) -> Run:
    """Ask every question and judge the first `n_results` documents, among `chunks` of them if that is given.

    Options are those of a search (vector_weight, k1, b, fusion, …); what is not given is as the settings say, whatever
    the tool says of itself: whoever compares settings must have them hold.
    """

    def answers(query: JudgedQuery, number: int) -> Answer:
        return library.search(
            query.text, tool=tool, mode=mode, top_k=number, refresh=False, use_tool_settings=False, **options
        )

    asked, *wider = fetch_sizes(n_results, n_chunks)
    abstaining = may_abstain(library.build_request("", mode=mode, top_k=asked, **options))
    answers(queries[0], asked)  # loads the index, which should not count as the first question's time
    results = []
    for number, query in enumerate(queries, 1):
        start = time.perf_counter()
        answer = answers(query, asked)
        milliseconds = (time.perf_counter() - start) * 1000
        found = _retrieved_documents(answer, query, n_results)
        last = asked
        for width in wider:
            if len(found) >= n_results or len(answer.hits) < last:
                break
            answer, last = answers(query, width), width
            found = _retrieved_documents(answer, query, n_results)
        names = [one.uri for one in found]
        texts = [hit.chunk.text for hit in answer.hits[:n_results]]
        values = query_measures(query, names, texts, n_results, can_abstain=abstaining)
        results.append(QueryResult(query, found, values, milliseconds))
        progress(number, len(queries))
    return Run(name or mode, mode, tuple(results))


def _retrieved_documents(answer: Answer, query: JudgedQuery, limit: int) -> tuple[RetrievedDocument, ...]:
    # Judgements are about documents. The first chunk of each is its best, and the others would earn its gain again.
    found: dict[str, RetrievedDocument] = {}
    for hit in answer.hits:
        if hit.uri not in found:
            place = format_citation(hit.uri, hit.chunk.first_line, hit.chunk.last_line)
            grade = query.grades.get(hit.uri, 0.0)
            found[hit.uri] = RetrievedDocument(hit.uri, hit.score, grade, place, hit.chunk.text[:_SNIPPET_CHARACTERS])
            if len(found) == limit:
                break
    return tuple(found.values())


def fetch_sizes(n_results: int, n_chunks: int | None) -> Iterator[int]:
    """Yield how many chunks to ask for, and how many more in turn where those belong to too few documents."""
    width = min(_MAX_CHUNKS, n_chunks or n_results * CHUNKS_PER_DOCUMENT)
    yield width
    while n_chunks is None and width < _MAX_CHUNKS:
        width = min(_MAX_CHUNKS, width * _WIDEN_FACTOR)
        yield width


def query_measures(
    query: JudgedQuery, uris: Sequence[str], texts: Sequence[str], n_results: int, *, can_abstain: bool
) -> dict[str, float]:
    """Return each measure that makes sense for a question, of the documents that came back and their chunks' texts."""
    values: dict[str, float] = {}
    if query.is_answerable:
        values = measures.ranking_measures(uris, query.grades, n_results, expected=query.relevant_uris)
    if query.negatives:
        values[measures.NEGATIVE_RATE] = float(not set(uris).isdisjoint(query.negatives))
    if query.keywords:
        joined = "\n".join(texts).casefold()
        values["keywords"] = sum(one.casefold() in joined for one in query.keywords) / len(query.keywords)
    if not query.is_answerable and can_abstain:
        values["abstention"] = float(not uris)
    return values


def may_abstain(request: SearchRequest) -> bool:
    """Say whether a search can come back with nothing although it found something."""
    by_distance = request.mode != "bm25" and request.similarity_threshold is not None
    return by_distance or (request.mode == "hybrid" and request.min_combined_score is not None)
