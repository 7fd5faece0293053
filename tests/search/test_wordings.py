"""Other wordings of a question, and a passage as it might stand in the answer, find what its own words do not."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import QueryParams

from bunko.errors import QueryError
from bunko.interfaces.api.routes.search import SearchQuery
from bunko.interfaces.page.query import parse_page_query
from bunko.interfaces.tools.search_tool import WORDING_PARAMS
from bunko.interfaces.tools.tool import validate_arguments
from bunko.library.library import Library
from bunko.search.request import MAX_QUERY_CHARS, SearchRequest, clean_wordings
from bunko.search.wordings import DEPTH, combine, keep_full_matches
from bunko.types import Answer
from tests.conftest import Opener, Run

TEXTS = {
    "waste.md": "# 一般廃棄物の排出\n\n可燃物は指定袋に入れ、収集日の朝に集積所へ排出してください。\n",
    "bulky.md": "# 粗大ごみ\n\n家具は申し込みのあと、処理券を貼って出します。\n",
    "garden.md": "# Garden\n\nRoses need much water in the summer.\n",
    "library.md": "# 図書館\n\n本は二週間借りられます。\n",
}
QUESTION, ALSO = "ゴミを出す日はいつ", ("一般廃棄物の収集日", "可燃物の排出")
MODES = ("hybrid", "bm25", "semantic")


@pytest.fixture
def library(docs: Path, open_docs: Opener) -> Library:
    for name, text in TEXTS.items():
        (docs / name).write_text(text, "utf-8")
    for number in range(DEPTH + 20):
        (docs / f"note{number}.md").write_text(f"# ゴミ {number}\n\nゴミ箱を洗う日の記録その{number}。\n", "utf-8")
    library = open_docs()
    library.reindex()
    return library


def scores(answer: Answer) -> list[tuple[str, float, Any]]:
    return [(hit.uri, hit.score, hit.bm25_score) for hit in answer]


def rank_of(uri: str, answer: Answer) -> int:
    uris = [hit.uri for hit in answer]
    return uris.index(uri) if uri in uris else len(uris)


@pytest.mark.parametrize("mode", MODES)
def test_a_wording_finds_what_the_question_does_not(library: Library, mode: Any) -> None:
    alone = library.search(QUESTION, mode=mode, top_k=60)
    found = library.search(QUESTION, mode=mode, top_k=60, also=ALSO, passage="一般廃棄物は収集日の朝に排出する。")
    assert rank_of("waste.md", found) < rank_of("waste.md", alone)
    assert all(0 <= hit.score <= 1 for hit in found)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


@pytest.mark.parametrize("mode", MODES)
def test_equal_empty_and_overlong_wordings_change_nothing(library: Library, mode: Any) -> None:
    also = ("", "  ", QUESTION, f" {QUESTION} ", "ゴミを出す日はいつ", "長" * (MAX_QUERY_CHARS + 1))
    assert clean_wordings(QUESTION, also, QUESTION) == ()
    assert scores(library.search(QUESTION, mode=mode, also=also, passage=" ")) == scores(
        library.search(QUESTION, mode=mode)
    )


def test_five_wordings_and_a_passage_count() -> None:
    wordings = clean_wordings("q", [f"w{number}" for number in range(9)], "p")
    assert [wording.text for wording in wordings] == ["w0", "w1", "w2", "w3", "w4", "p"]


@pytest.mark.parametrize("wording", ["。", "\ud800", "the of and", "\x00", "((((", '"-'])
def test_a_wording_without_words_is_no_error(library: Library, wording: str) -> None:
    modes: tuple[Any, ...] = MODES
    for mode in modes:
        assert library.search("roses", mode=mode, also=[wording]).hits[0].uri == "garden.md"


def test_quotes_and_hyphens_count_in_the_query_alone_and_for_all_hits(library: Library) -> None:
    found = library.search(f"{QUESTION} -可燃物", also=['"図書館"', "-粗大ごみ", *ALSO], top_k=20)
    assert "waste.md" not in [hit.uri for hit in found]
    assert {"bulky.md", "note1.md"} & {hit.uri for hit in found}


def test_pages_follow_each_other_and_a_cursor_belongs_to_its_wordings(library: Library) -> None:
    request = SearchRequest(QUESTION, also=ALSO, top_k=5)
    first = library.page(request)
    second = library.page(replace(request, cursor=first.next_cursor))
    uris = [item.passage.hit.uri for page in (first, second) for item in page.results]
    assert len(set(uris)) == 10
    same = (ALSO[0], "", *ALSO[1:], QUESTION)  # what is left out may differ
    assert library.page(replace(request, also=same, cursor=first.next_cursor)).results == second.results
    with pytest.raises(Exception, match="belongs to another request"):
        library.page(replace(request, also=(), cursor=first.next_cursor))


@pytest.mark.parametrize("mode", MODES)
def test_what_each_wording_adds_makes_the_score(library: Library, mode: Any) -> None:
    for hit in library.search(QUESTION, mode=mode, also=ALSO, passage="朝に排出する。", explain=True, top_k=15):
        assert hit.explanation is not None
        wordings = hit.explanation.wordings
        assert [wording.kind for wording in wordings] == ["query", "also", "also", "passage"]
        assert sum(wording.added for wording in wordings) == pytest.approx(hit.score, abs=1e-9)
        assert sum(wording.weight for wording in wordings) == pytest.approx(1)
        own = max(wording.score for wording in wordings if wording.score is not None)
        assert hit.explanation.explained_score(hit.score) <= own + 1e-6


def test_a_wrong_wording_counts_little(library: Library) -> None:
    found = library.search(QUESTION, also=["roses in the summer"], explain=True, top_k=20)
    assert found.hits[0].explanation is not None
    weights = [wording.weight for wording in found.hits[0].explanation.wordings]
    assert weights[1] < 0.02
    alone = library.search(QUESTION, top_k=20)
    assert [hit.uri for hit in found][:5] == [hit.uri for hit in alone][:5]


def test_without_hits_of_its_own_a_question_is_answered_by_its_wordings(library: Library) -> None:
    assert not library.search("zzzz", mode="bm25").hits
    (found, *_) = library.search("zzzz", mode="bm25", also=["roses"], explain=True)
    (alone, *_) = library.search("roses", mode="bm25")
    assert found.uri == "garden.md"
    assert found.score == pytest.approx(alone.score)
    assert found.explanation is not None
    assert [wording.weight for wording in found.explanation.wordings] == [0, 1]


def test_what_only_a_wrong_wording_finds_is_left_out(library: Library) -> None:
    alone = {hit.uri for hit in library.search("roses", mode="bm25", top_k=20)}
    assert {hit.uri for hit in library.search("roses", mode="bm25", also=["図書館"], top_k=20)} == alone
    assert "library.md" in {hit.uri for hit in library.search("図書館", mode="bm25", top_k=20)}


def test_one_text_is_one_wording_and_no_text_is_an_error(library: Library) -> None:
    assert library.search(QUESTION, also=ALSO[0]).wordings == (ALSO[0],)
    for wrong in ({"also": [5]}, {"passage": 5}):
        with pytest.raises(QueryError, match="Other wordings and a passage are texts"):
            library.search(QUESTION, **wrong)


def test_a_row_with_every_word_falls_at_most_to_twice_its_rank() -> None:
    rows = [*range(20, 60), *range(1, 11)]
    ordered = keep_full_matches(rows, list(range(1, 11)), [True, False, True, *[False] * 7])
    assert (ordered.index(1) + 1, ordered.index(3) + 1) == (2, 6)
    assert sorted(ordered) == sorted(rows)


def test_the_sum_does_not_depend_on_how_many_more_rows_a_text_has() -> None:
    own = {row: 1 - row / 300 for row in range(250)}
    wording = {row: 1 - rank / 300 for rank, row in enumerate(range(240, 40, -1))}
    long = combine(own, [(0.5, wording)]).final
    short = combine(dict(list(own.items())[:DEPTH]), [(0.5, wording)]).final
    assert {row: long[row] for row in short} == pytest.approx(short)


def test_the_command_line_takes_wordings_and_says_what_each_adds(library: Library, docs: Path, run: Run) -> None:
    options = ("--docs-dir", docs, "--also", ALSO[0], "--passage", "朝に排出する。", "--explain", "-k", "1")
    assert re.search(r"wordings 0\.\d{4} = query \+0", run("search", QUESTION, *options).out)
    (result,) = json.loads(run("search", QUESTION, *options, "--json").out)["results"]
    wordings = result["explain"]["wordings"]
    assert [wording["text"] for wording in wordings] == [QUESTION, ALSO[0], "朝に排出する。"]
    assert sum(wording["added"] for wording in wordings) == pytest.approx(result["score"], abs=1e-9)


def test_the_api_and_the_page_take_wordings() -> None:
    request = SearchQuery.model_validate({"q": "x", "also": ["y", "z"], "passage": "p"}).request()
    assert (request.also, request.passage) == (("y", "z"), "p")
    query = parse_page_query(QueryParams([("q", "x"), ("also", "y"), ("also", "z"), ("passage", "p")]))
    assert (query.request().also, query.request().passage) == (("y", "z"), "p")
    assert "also=y&also=z&passage=p" in query.address()


@pytest.mark.parametrize("written", [["y", "z"], '["y", "z"]'])
def test_assistants_give_wordings_as_a_list_or_as_one_text(written: object) -> None:
    assert validate_arguments(WORDING_PARAMS, {"also": written}) == {"also": ["y", "z"], "passage": None}
    assert validate_arguments(WORDING_PARAMS, {"also": "y z"})["also"] == ["y z"]
    for wrong in (3, [3], {"a": 1}):
        with pytest.raises(QueryError, match="also must be a list of texts"):
            validate_arguments(WORDING_PARAMS, {"also": wrong})


def test_an_assistant_is_told_where_wordings_would_help(library: Library) -> None:
    asked = SearchRequest("quarterly revenue forecast of roses", suggest_wordings=True)
    advice = "Few words of the question are in these documents; search again with also and passage."
    assert advice in library.page(asked).notices
    assert advice not in library.page(replace(asked, query="roses need much water")).notices
    assert advice not in library.page(replace(asked, also=("粗大ごみ",))).notices
    assert advice not in library.page(replace(asked, suggest_wordings=False)).notices
    nothing = replace(asked, query="zzzz", mode="bm25")
    advice_without_hits = "Nothing has the words of the question; search again with also and passage."
    assert advice_without_hits in library.page(nothing).notices
    assert advice_without_hits not in library.page(replace(nothing, suggest_wordings=False)).notices
    following = library.page(replace(asked, top_k=1, cursor=library.page(replace(asked, top_k=1)).next_cursor))
    assert advice not in following.notices  # it would make a cursor of another request
