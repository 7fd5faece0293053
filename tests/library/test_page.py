"""Pages of search results: passages, cursor and budget from one request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import QueryError
from bunko.search.request import MAX_HITS, SearchRequest
from bunko.stores.sqlite.connection import SqliteDatabase
from bunko.types.records import Filter
from tests.conftest import Opener

FILLER = "この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。" * 3


@pytest.fixture
def sections(docs: Path) -> Path:
    """A document of three sections about one subject, and one about another."""
    parts = [f"## 第{number}節\n\n索引の話の{number}。{FILLER}" for number in range(3)]
    (docs / "a.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    (docs / "b.md").write_text(f"---\ndate: 2024-01-15\n---\n# 旅\n\n索引と京都の話。{FILLER}\n", encoding="utf-8")
    return docs


def test_without_a_budget_a_page_has_the_hits_of_a_search(sections: Path, open_docs: Opener) -> None:
    library = open_docs()
    answer = library.search("索引の話", top_k=10)
    page = library.page(SearchRequest("索引の話", top_k=10, join_chunks=False, continue_past_top_k=False))
    assert [item.passage.hit for item in page.results] == answer.hits
    assert [item.text for item in page.results] == [hit.chunk.text for hit in answer.hits]
    assert (page.total_chunks, page.mode, page.next_cursor) == (answer.total_chunks, answer.mode, "")
    assert not page.truncated


def test_a_page_is_read_from_the_store_in_few_queries(
    sections: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = open_docs()
    library.page(SearchRequest("索引の話"))  # imports
    queries: list[str] = []
    rows = SqliteDatabase.rows

    def count(self: SqliteDatabase, query: str, *args: Any, **options: Any) -> list[tuple[Any, ...]]:
        queries.append(query)
        return rows(self, query, *args, **options)

    monkeypatch.setattr(SqliteDatabase, "rows", count)
    assert library.page(SearchRequest("索引の話", mode="hybrid", refresh=False)).results
    assert len(queries) == 4  # the tools, again in the transaction of the search, its generation, and the hits
    assert sum("FROM documents" in query or "JOIN documents" in query for query in queries) == 1


def test_texts_are_only_explained_on_request(sections: Path, open_docs: Opener) -> None:
    library = open_docs()
    request = SearchRequest("索引の話", explain=True)
    for explain_texts in (True, False):
        page = library.page(replace(request, explain_texts=explain_texts))
        explanations = [item.passage.hit.explanation for item in page.results]
        assert all(explanation and explanation.terms for explanation in explanations)
        assert all(bool(explanation and explanation.best_sentence) == explain_texts for explanation in explanations)


def test_neighbouring_chunks_are_joined_unless_the_request_keeps_them_apart(sections: Path, open_docs: Opener) -> None:
    library = open_docs()
    request = SearchRequest("索引の話", where=Filter(path="a.md"))
    assert len(library.page(request).results) == 1
    assert len(library.page(replace(request, join_chunks=False)).results) == 3


def test_only_the_best_hit_of_a_document_is_returned_on_request(sections: Path, open_docs: Opener) -> None:
    page = open_docs().page(SearchRequest("索引の話", top_k=10, per_document=1, join_chunks=False))
    assert sorted(item.passage.hit.uri for item in page.results) == ["a.md", "b.md"]


def test_a_page_continues_where_the_last_one_stopped(sections: Path, open_docs: Opener) -> None:
    library = open_docs()
    request = SearchRequest("索引の話", top_k=10, extract="full", token_budget=200)
    texts, page = [], library.page(request)
    while page.next_cursor:
        assert page.truncated
        texts += [item.text for item in page.results]
        page = library.page(replace(request, cursor=page.next_cursor))
        assert not page.is_first
    texts += [item.text for item in page.results]
    whole = library.page(replace(request, token_budget=None))
    assert "".join(texts) == "".join(item.text for item in whole.results)


def test_a_cursor_is_refused_for_another_request_but_not_for_another_budget(sections: Path, open_docs: Opener) -> None:
    library = open_docs()
    request = SearchRequest("索引の話", top_k=1)
    cursor = library.page(request).next_cursor
    for other in (
        replace(request, query="京都"),
        replace(request, ranking={"k1": 2.0}),
        replace(request, extract="full"),
    ):
        with pytest.raises(QueryError, match="another request"):
            library.page(replace(other, cursor=cursor))
    assert library.page(replace(request, cursor=cursor, token_budget=500, explain=True)).results


def test_a_request_without_a_number_of_hits_uses_the_setting_and_still_continues(
    sections: Path, open_docs: Opener
) -> None:
    library = open_docs(BUNKO_SEARCH_TOP_K="1")
    request = SearchRequest("索引の話", extract="chunk")
    first = library.page(request)
    second = library.page(replace(request, cursor=first.next_cursor))
    assert [len(page.results) for page in (first, second)] == [1, 1]
    assert first.results[0].passage.hit != second.results[0].passage.hit


def test_dates_of_a_filter_are_written_as_people_write_them(sections: Path, open_docs: Opener) -> None:
    library = open_docs()
    for since, count in (("2024年1月", 1), ("令和6年", 1), ("1d", 0)):
        assert len(library.search("索引", where=Filter("b.md", since=since)).hits) == count
    with pytest.raises(QueryError, match="is not a date"):
        library.page(SearchRequest("索引", where=Filter(since="soon")))


def test_snippets_are_displayed_with_marks_and_cut_texts_with_what_is_missing(
    sections: Path, open_docs: Opener
) -> None:
    library = open_docs()
    request = SearchRequest("京都", top_k=1, mode="bm25")
    [plain] = library.page(replace(request, extract="snippet")).results
    [shown] = library.page(replace(request, extract="snippet")).display_texts()
    assert "京都" in plain.text
    assert shown != plain.text
    [cut] = library.page(replace(request, max_chars=30)).display_texts()
    assert "more characters]" in cut


def test_a_summary_takes_at_most_half_of_the_budget(sections: Path, open_docs: Opener) -> None:
    library = open_docs()
    page = library.page(SearchRequest("索引の話", extract="full", summary=True, token_budget=300))
    assert page.summary is not None
    assert page.results
    assert library.page(SearchRequest("索引の話")).summary is None


def test_only_new_searches_are_logged(sections: Path, open_docs: Opener) -> None:
    library = open_docs(BUNKO_LOG_KEEP_SEARCHES="true")
    request = SearchRequest("索引の話", top_k=1)
    library.page(replace(request, cursor=library.page(request).next_cursor))
    assert [(logged.query, logged.count) for logged in library.searches.log.all()] == [("索引の話", 1)]


def test_a_cursor_past_the_last_possible_hit_is_refused(sections: Path, open_docs: Opener) -> None:
    from bunko.search.paging import Cursor

    with pytest.raises(QueryError, match="another request"):
        open_docs().page(SearchRequest("索引の話", cursor=Cursor(MAX_HITS + 1).encode("")))
