"""A search whose rankings are computed once finds what an ordinary one finds, whatever option of ranking is tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bunko.evaluation.cached_search import CachedSearch, SearchConfig, embed_queries
from bunko.evaluation.dataset import JudgedQuery
from bunko.evaluation.eval_library import JUDGED_TOOL, judged_library
from bunko.evaluation.run import run_queries
from bunko.library.library import Library
from bunko.settings import Settings
from bunko.types import Mode
from bunko.types.ranking import OPTIONS, OptionValue, RankingOption, Search
from tests.evaluation.sweep_sets import OURS

N_RESULTS = 10


def judged_queries() -> tuple[JudgedQuery, ...]:
    """Return questions that grade every document differently, so that each order of results has measures of its own."""
    uris = [document.id for document in OURS.documents]
    grades = {uri: 1 + number / len(uris) for number, uri in enumerate(uris)}
    texts = {document.id: document.text for document in OURS.documents}
    answerable = [query for query in OURS.queries if query.grades]
    return tuple(
        replace(query, grades=grades, also=(texts[uris[number]][:40],), passage=texts[next(iter(query.grades))][:80])
        for number, query in enumerate(answerable[:12])
    )


def values_to_try(option: RankingOption) -> list[OptionValue]:
    if option.choices:
        return list(option.choices)
    if option.kind is bool:
        return [True, False]
    numbers = [option.low, option.high, option.low + 0.4 * (option.high - option.low)]
    return [option.default, *map(option.kind, numbers)]


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    with judged_library(OURS.documents, Settings()) as library:
        yield library


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_each_option_ranks_as_in_an_ordinary_search(option: RankingOption, library: Library) -> None:
    queries = judged_queries()
    has_wordings = option.name in ("also_weight", "passage_weight")
    if not has_wordings:
        queries = tuple(replace(query, also=(), passage="") for query in queries)
    tool = library.tools.get(JUDGED_TOOL)
    embedder = library.embedder_of(tool)
    assert embedder is not None
    cached_search = CachedSearch(library, tool.name, queries, embed_queries(embedder, queries), f"ndcg@{N_RESULTS}")
    others: dict[Search, list[dict[str, Any]]] = {
        "bm25": [{}, {"bridge": False}],
        "semantic": [{}],
        "rrf": [{"fusion": "rrf"}],
        "cc": [{}, {"vector_weight": 0.4}, {"vector_weight": 0.9, "min_combined_score": 0.7}],
    }
    has_effect = False
    for search in option.searches:
        mode: Mode = "hybrid" if search == "cc" or search == "rrf" else search
        for other in others[search]:
            trials = [other | {option.name: value} for value in values_to_try(option)]
            configs = [
                SearchConfig(library.build_request("", mode=mode, **trial), N_RESULTS, N_RESULTS) for trial in trials
            ]
            measured = cached_search.measure_queries(configs)
            for trial, measures in zip(trials, measured, strict=True):
                ordinary = run_queries(
                    library, queries, mode=mode, n_results=N_RESULTS, n_chunks=N_RESULTS,
                    with_wordings=has_wordings, **trial,
                )  # fmt: skip
                for result, values in zip(ordinary.results, measures, strict=True):
                    assert values == pytest.approx(result.measures, abs=1e-12), (search, trial, result.query.text)
            has_effect |= any(measures != measured[0] for measures in measured)
    assert has_effect, "no value of the option changes a result, so this test would not notice that it is ignored"
