"""Measure what other search settings change for a tool, by the judgements about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bunko.errors import BunkoError
from bunko.evaluation.cached_search import CachedSearch, SearchConfig, embed_queries
from bunko.evaluation.dataset import JudgedQuery, load_queries
from bunko.evaluation.judge import default_file
from bunko.library.library import Library
from bunko.search.request import RankRequest
from bunko.types import Tool

MEASURE = "ndcg@10"
DEPTH = 10
# More queries would let a reader wait; the first ones are enough to see a change.
_MAX_QUERIES = 200


@dataclass(frozen=True, slots=True)
class MeasuredChange:
    """The mean of the measure over the judged queries before and after a change."""

    before: float
    after: float
    query_count: int
    better: int  # queries that gained
    worse: int


class SettingsMeter:
    """Measures settings on the judged queries of one tool; each query is embedded and ranked once."""

    def __init__(self, library: Library, tool: Tool, queries: tuple[JudgedQuery, ...]) -> None:
        self.queries = queries
        self._request = library.build_request("", tools=[tool])
        embedder = library.embedder_of(tool)
        if embedder is None:
            self._request = replace(self._request, mode="bm25")
        vectors = embed_queries(embedder, queries) if embedder is not None else None
        self._search = CachedSearch(library, tool.name, queries, vectors, MEASURE)

    def measure(self, options: Mapping[str, Any]) -> MeasuredChange:
        """Return the measure with the settings as they are, and with some of them changed."""
        changed = replace(self._request, options=replace(self._request.options, **options))
        before, after = self._values(self._request), self._values(changed)
        pairs = list(zip(before, after, strict=True))
        count = len(pairs)
        return MeasuredChange(
            sum(before) / count,
            sum(after) / count,
            count,
            sum(second > first + 1e-9 for first, second in pairs),
            sum(second < first - 1e-9 for first, second in pairs),
        )

    def _values(self, request: RankRequest) -> list[float]:
        (measures,) = self._search.measure_queries([SearchConfig(request, DEPTH, DEPTH)])
        return [values[MEASURE] for values in measures if MEASURE in values]


def build_meter(library: Library, tool: Tool) -> SettingsMeter | None:
    """Return a meter for a tool, or None if nobody has judged answers about it."""
    queries = judged_queries(library, tool)
    return SettingsMeter(library, tool, queries) if queries else None


def judged_queries(library: Library, tool: Tool) -> tuple[JudgedQuery, ...]:
    """Return the judged questions of a tool that its documents answer, at most two hundred."""
    path = default_file(library, tool)
    if not path.exists():
        return ()
    try:
        uris = set(library.documents.stored.fingerprints(tool.id))
        return tuple(query for query in load_queries(path, uris, []) if query.is_answerable)[:_MAX_QUERIES]
    except BunkoError:  # a file that cannot be read is reported by the commands that write it
        return ()
