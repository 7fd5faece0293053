"""Every option of ranking can be chosen by settings, tools, commands, assistants, the API and the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.datastructures import QueryParams

from bunko.errors import QueryError
from bunko.evaluation.evaluate import reported_settings
from bunko.evaluation.sweep.grid import parse_grid
from bunko.interfaces.api.routes.search import SearchQuery
from bunko.interfaces.page.query import parse_page_query
from bunko.interfaces.page.rendering import load_texts
from bunko.search.request import SearchRequest, parse_options, tool_search_settings
from bunko.settings import load_settings
from bunko.settings.folder_files import FOLDER_LIMITS
from bunko.types.ranking import OPTIONS, OptionValue, RankingOption
from tests.conftest import Opener, Run


def another_value(option: RankingOption) -> OptionValue:
    """Return an allowed value that is not the default."""
    if option.choices:
        return next(choice for choice in option.choices if choice != option.default)
    if option.kind is bool:
        return not option.default
    return 7 if option.kind is int else option.low + 0.25 * (option.high - option.low)


@pytest.mark.parametrize("option", OPTIONS.values(), ids=OPTIONS)
def test_an_option_can_be_chosen_everywhere(option: RankingOption) -> None:
    name, value = option.name, another_value(option)
    text = str(value).lower() if option.kind is bool else str(value)
    loaded = load_settings(environ={}, flags={f"search.{name}": value})
    assert getattr(loaded.settings.search, name) == value
    assert f"search.{name}" in FOLDER_LIMITS
    assert tool_search_settings({name: value}) == {name: value}
    assert parse_options([f"{name}={text}"]) == {name: value}
    assert SearchQuery.model_validate({"q": "x", name: value}).request().ranking == {name: value}
    assert parse_page_query(QueryParams({"q": "x", name: text})).ranking == {name: value}
    assert all(load_texts(language)[f"ranking.{name}"] for language in ("en", "ja"))
    (dimension,) = parse_grid([f"{name}={text}"]).dimensions
    assert dimension.values == (value,)


def test_reports_name_the_options_that_scores_depend_on(docs: Path, open_docs: Opener) -> None:
    library = open_docs()
    reported = reported_settings(library.settings, library)
    assert OPTIONS.keys() - {"similarity_threshold"} <= reported.keys()


def test_an_option_changes_one_search_at_the_command_line(docs: Path, open_docs: Opener, run: Run) -> None:
    (docs / "a.md").write_text("# Validation\n\nvalidation\n", encoding="utf-8")
    found = run("search", "検証", "--docs-dir", docs, "--mode", "bm25")
    assert "a.md" in found.out
    assert run("search", "検証", "--docs-dir", docs, "--mode", "bm25", "--set", "bridge=false").code == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [("k1=99", "0 to 10"), ("k1=wide", "0 to 10"), ("fusion=blend", "cc, rrf"), ("bridge=maybe", "true, false"),
     ("timezone=UTC", "vector_weight"), ("", "vector_weight"), ("rrf_k=1.5", "1 to 1000")],
)  # fmt: skip
def test_an_option_that_is_none_or_out_of_range_is_refused_with_what_is_allowed(text: str, words: str) -> None:
    with pytest.raises(QueryError) as refused:
        parse_options([text])
    assert words in refused.value.hint


def test_a_request_refuses_what_a_ranking_cannot_use() -> None:
    with pytest.raises(QueryError, match="k1"):
        SearchRequest("x", ranking={"k1": float("nan")})
