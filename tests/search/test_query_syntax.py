"""Quoted phrases and excluded words: how a query is read, and what it finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.errors import QueryError
from bunko.search.query_syntax import ParsedQuery, parse_query
from bunko.search.request import SearchRequest
from bunko.types import Mode
from tests.conftest import Opener

MODES: tuple[Mode, ...] = ("bm25", "semantic", "hybrid")


@pytest.mark.parametrize(
    ("query", "words", "phrases", "excluded"),
    [
        ('"form validation"', "form validation", ("form validation",), ()),
        ('react "form validation" rules', "react form validation rules", ("form validation",), ()),
        ("“form validation”", "form validation", ("form validation",), ()),
        ("＂環境構築＂", "環境構築", ("環境構築",), ()),
        ('京都の"紅葉"を見る', "京都の紅葉を見る", ("紅葉",), ()),
        ('what does "freshness" mean?', "what does freshness mean?", ("freshness",), ()),
        ('is it "stale", or not', "is it stale, or not", ("stale",), ()),
        ("kyoto -temple", "kyoto", (), ("temple",)),
        ("kyoto -temple.", "kyoto", (), ("temple",)),
        ("京都 -寺", "京都", (), ("寺",)),
        ("京都\u3000-金閣寺\u3000紅葉", "京都 紅葉", (), ("金閣寺",)),
        ('kyoto -"golden temple"', "kyoto", (), ("golden temple",)),
        ("react -re-render hooks", "react hooks", (), ("re-render",)),
        ('"-Wall" gcc', "-Wall gcc", ("-Wall",), ()),
    ],
)
def test_quotes_require_and_a_hyphen_before_a_word_excludes(
    query: str, words: str, phrases: tuple[str, ...], excluded: tuple[str, ...]
) -> None:
    assert parse_query(query) == ParsedQuery(words, phrases, excluded)


@pytest.mark.parametrize(
    "query",
    [
        "git commit --amend", "rm -rf a", "ls -1", "a re-render", "well-known", "UTF -8", "temperature -10", "e-mail",
        "- item", "pages 3 -5", "-", "--", "this - that", "x-y -", "A—B", "a −b", 'a 5" nail', 'print("hello")',
        'name="value" id="x"', '{"a": "b"}', '"', '""', '" "', '"unfinished phrase', "「形態素解析」", "『本』",
        "don't", "it's 'quoted'",
    ],
)  # fmt: skip
def test_what_only_looks_like_an_operator_is_searched_as_it_is(query: str) -> None:
    assert parse_query(query) == ParsedQuery(query)


@given(st.text(alphabet=st.sampled_from('ab -"“”＂京都,.\n'), max_size=40))
def test_no_word_gets_lost(query: str) -> None:
    parsed = parse_query(query)
    kept = parsed.words + "".join(parsed.excluded)
    for char in "ab京都":
        assert kept.count(char) == query.count(char)


PAGES = {
    "validation.md": "# Forms\n\nForm validation checks what people typed before it is sent to the server.",
    "order.md": "# Rules\n\nValidation of the whole form happens later, and the form says which validation failed.",
    "react.md": "# React\n\nIn React, form\nvalidation runs after every key. A re-render shows the message.",
    "both.md": "# Words\n\nA form is sent. Its validation is strict, and validation of a form takes long.",
    "kyoto.md": "# 旅行\n\n京都に三日間滞在して、金閣寺と庭園を見て回った。紅葉の季節は特に混雑する。",
    "garden.md": "# 庭\n\n京都の庭園を歩いた日の記録。紅葉がきれいだった。",
    "network.md": "# 設定\n\nこの章では、ネットワー\nクの設定を順に説明する。京都の事務所の例を使う。",
}


@pytest.fixture
def pages(docs: Path) -> Path:
    for name, text in PAGES.items():
        (docs / name).write_text(text, encoding="utf-8")
    return docs


@pytest.mark.parametrize("mode", MODES)
def test_a_quoted_phrase_must_be_in_the_text(pages: Path, open_docs: Opener, mode: Mode) -> None:
    library = open_docs()
    found = {hit.uri for hit in library.search('"form validation"', mode=mode).hits}
    assert found == {"validation.md", "react.md"}
    assert {hit.uri for hit in library.search("form validation", mode=mode).hits} > found
    assert {hit.uri for hit in library.search('"form validation" "re-render"', mode=mode).hits} == {"react.md"}
    assert {hit.uri for hit in library.search('"ネットワークの設定"', mode=mode).hits} == {"network.md"}
    assert {hit.uri for hit in library.search('京都 "寺"', mode=mode).hits} == {"kyoto.md"}


def test_a_phrase_that_is_in_very_many_texts_is_required_too(
    pages: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bunko.search.hits.MAX_PHRASE_ROWS", 2)
    for mode in MODES:
        found = {hit.uri for hit in open_docs().search('"form validation"', mode=mode).hits}
        assert found == {"validation.md", "react.md"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"of the"', {"order.md"}), ('"of a" form', {"both.md"}), ('"と"', {"kyoto.md"}), ('"、金"', {"kyoto.md"}),
        ('"。" 京都', {"kyoto.md", "garden.md", "network.md"}), ('"REACT"', {"react.md"}), ('"re-"', {"react.md"}),
        ('"a form" -"of a form"', set()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", MODES)
def test_a_phrase_may_be_any_characters(
    pages: Path, open_docs: Opener, query: str, expected: set[str], mode: Mode
) -> None:
    assert {hit.uri for hit in open_docs().search(query, mode=mode).hits} == expected


@pytest.mark.parametrize("mode", MODES)
def test_an_excluded_word_is_in_no_result(pages: Path, open_docs: Opener, mode: Mode) -> None:
    library = open_docs()
    found = [hit.uri for hit in library.search("京都 -金閣寺", mode=mode).hits]
    assert "kyoto.md" not in found
    assert {"garden.md", "network.md"} <= set(found)
    assert not {"validation.md", "react.md"} & {
        hit.uri for hit in library.search('validation -"form validation"', mode=mode).hits
    }
    assert [hit.uri for hit in library.search('"form validation" -react', mode=mode).hits] == ["validation.md"]


def test_results_are_filled_up_with_deeper_ones(docs: Path, open_docs: Opener) -> None:
    for number in range(60):
        word = "exact phrase" if number % 20 == 0 else "phrase that is exact, an exact phrasing: phrase, exact"
        (docs / f"{number}.md").write_text(f"# Note {number}\n\nAn {word} in a note about tides.", encoding="utf-8")
    library = open_docs()
    for mode in MODES:
        hits = library.search('"exact phrase" tides', mode=mode, top_k=3).hits
        assert {hit.uri for hit in hits} == {"0.md", "20.md", "40.md"}
        hits = library.search('tides -"exact phrasing"', mode=mode, top_k=3).hits
        assert {hit.uri for hit in hits} == {"0.md", "20.md", "40.md"}


def test_a_phrase_in_the_title_or_a_heading_counts_for_the_text_below_it(docs: Path, open_docs: Opener) -> None:
    filler = "Some words about the subject that are long enough for a chunk of their own. " * 4
    (docs / "a.md").write_text(f"# Form validation\n\n## Rules\n\n{filler}\n\n## Errors\n\n{filler}", encoding="utf-8")
    hits = open_docs().search('"form validation" errors', mode="bm25").hits
    assert hits
    assert hits[0].chunk.heading == "## Errors"


def test_a_query_of_exclusions_alone_is_an_error_that_says_what_to_add(pages: Path, open_docs: Opener) -> None:
    with pytest.raises(QueryError, match="only says what to leave out") as caught:
        open_docs().search('-temple -"golden pavilion"')
    assert "Add words" in caught.value.hint


def test_what_was_left_out_and_a_phrase_that_is_nowhere_are_told(pages: Path, open_docs: Opener) -> None:
    library = open_docs()
    [notice] = library.search("validation -react -server").notices
    assert notice == 'Results with "react" or "server" are left out; to search for -react itself, put it in quotes.'
    [notice] = library.search('"validation form"').notices
    assert notice == 'No result contains "validation form". Without the quotes, its words are searched.'
    assert library.search('京都 -"金閣寺"').notices == ['Results with "金閣寺" are left out.']


def test_a_search_without_operators_reads_the_query_as_it_is(pages: Path, open_docs: Opener) -> None:
    library = open_docs()
    answer = library.search('"form validation" -react', mode="bm25", operators=False)
    plain = library.search("form validation react", mode="bm25")
    assert [hit.uri for hit in answer.hits] == [hit.uri for hit in plain.hits]
    assert answer.notices == []


def test_pages_go_on_through_the_results_with_a_phrase(pages: Path, open_docs: Opener) -> None:
    library = open_docs()
    request = SearchRequest('"form validation"', top_k=1, extract="chunk")
    first = library.page(request)
    second = library.page(replace(request, cursor=first.next_cursor))
    uris = [item.passage.hit.uri for page in (first, second) for item in page.results]
    assert sorted(uris) == ["react.md", "validation.md"]
    last = library.page(replace(request, cursor=second.next_cursor)) if second.next_cursor else None
    assert last is None or not last.results


def test_a_snippet_shows_the_words_that_were_searched_not_those_left_out(pages: Path, open_docs: Opener) -> None:
    page = open_docs().page(SearchRequest("validation -react", mode="bm25", extract="snippet"))
    assert page.query == "validation -react"
    assert page.searched_query == "validation"
    assert all("**alidation" in text.replace("V", "v").replace("v", "") for text in page.display_texts())
