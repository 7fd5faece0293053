"""Which of the ranked hits an answer keeps: hits of one document, files of two tools, low scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bunko.errors import QueryError
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.searching.page import Page
from bunko.search.request import SearchRequest
from bunko.types import Mode
from bunko.types.records import Filter
from tests.conftest import Opener

FILLER = "この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。" * 3
MODES: tuple[Mode, ...] = ("bm25", "semantic", "hybrid")


def write_sections(folder: Path, name: str, count: int, words: str = "索引の話") -> None:
    """Write a document of sections that are a chunk each; the fewer there are, the better each of them matches."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [f"## 第{number}節\n\n{words * (12 - count)}の{number}。{FILLER}" for number in range(count)]
    (folder / name).write_text("\n\n".join(parts) + "\n", encoding="utf-8")


@pytest.fixture
def long_and_short(docs: Path) -> Path:
    """A document whose six sections match best, and four documents of one section."""
    for number in range(6):
        path = docs / "long.md"
        with path.open("a", encoding="utf-8") as file:
            file.write(f"## 第{number}節\n\n索引の話、索引の話、索引の話の{number}。{FILLER}\n\n")
    for name in "abcd":
        (docs / f"{name}.md").write_text(f"# {name}\n\n索引の話。{FILLER * 2}\n", encoding="utf-8")
    return docs


def documents(page: Page) -> list[str]:
    return [item.passage.hit.uri for item in page.results]


def folded(page: Page) -> list[tuple[str, int]]:
    return [(item.passage.hit.uri, item.more_in_document) for item in page.results if item.more_in_document]


@pytest.mark.parametrize("mode", MODES)
def test_at_most_some_hits_of_a_document_are_returned_and_others_take_their_place(
    long_and_short: Path, open_docs: Opener, mode: Mode
) -> None:
    library = open_docs()
    request = SearchRequest("索引の話", mode=mode, top_k=5, join_chunks=False, continue_past_top_k=False)
    plain = library.page(request)
    assert documents(plain).count("long.md") > 2
    assert folded(plain) == []
    page = library.page(replace(request, per_document=2))
    assert documents(page).count("long.md") == 2
    assert len(documents(page)) == 5
    assert [uri for uri in documents(page) if uri != "long.md"] == sorted(
        set(documents(page)) - {"long.md"}, key=documents(page).index
    )
    [(uri, count)] = folded(page)
    assert (uri, count) == ("long.md", 4)
    last = max(index for index, name in enumerate(documents(page)) if name == "long.md")
    assert page.results[last].more_in_document == 4


def test_hits_that_would_not_have_been_shown_are_not_counted_as_folded(long_and_short: Path, open_docs: Opener) -> None:
    page = open_docs().page(
        SearchRequest("索引の話", mode="bm25", top_k=3, per_document=2, where=Filter(path="long.md"), join_chunks=False)
    )
    assert folded(page) == [("long.md", 1)]  # two of the first three are shown


def test_folded_hits_are_returned_after_all_if_other_documents_have_too_few(
    long_and_short: Path, open_docs: Opener
) -> None:
    library = open_docs()
    request = SearchRequest(
        "索引の話", mode="bm25", top_k=10, per_document=2, fill_up=True, join_chunks=False, continue_past_top_k=False
    )
    page = library.page(request)
    assert len(page.results) == 10  # all there are
    assert documents(page)[:6].count("long.md") == 2
    assert folded(page) == []
    only = library.page(replace(request, where=Filter(path="long.md"), top_k=4))
    assert documents(only) == ["long.md"] * 4
    assert len({item.passage.hit.chunk.index for item in only.results}) == 4


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("extract", ["chunk", "section"])
def test_pages_of_folded_results_repeat_nothing_and_lose_no_document(
    long_and_short: Path, open_docs: Opener, mode: Mode, extract: str
) -> None:
    library = open_docs()
    request = SearchRequest("索引の話", mode=mode, top_k=2, per_document=2, extract=extract)  # type: ignore[arg-type]
    shown, page = [], library.page(request)
    while True:
        shown += [(item.passage.hit.uri, item.passage.hit.chunk.index) for item in page.results]
        if not page.next_cursor:
            break
        page = library.page(replace(request, cursor=page.next_cursor))
    assert len(shown) == len(set(shown))
    assert {uri for uri, _ in shown} == {"long.md", "a.md", "b.md", "c.md", "d.md"}
    assert sum(uri == "long.md" for uri, _ in shown) <= 2


def test_a_count_of_folded_hits_stands_with_the_last_passage_if_chunks_were_joined(
    long_and_short: Path, open_docs: Opener
) -> None:
    page = open_docs().page(SearchRequest("索引の話", mode="bm25", top_k=5, per_document=3))
    assert documents(page).count("long.md") < 3  # neighbours became one passage
    assert folded(page) == [("long.md", 3)]
    last = max(index for index, name in enumerate(documents(page)) if name == "long.md")
    assert page.results[last].more_in_document == 3


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """An empty library."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    environ = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ=environ) as library:
        yield library


def test_several_tools_are_searched_together_and_no_others(library: Library, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        write_sections(tmp_path / name, f"{name}.md", 1)
        library.add(tmp_path / name, name=name)
    assert {hit.tool for hit in library.search("索引の話").hits} == {"one", "two", "three"}
    assert {hit.tool for hit in library.search("索引の話", tool=("one", "two")).hits} == {"one", "two"}
    assert {hit.tool for hit in library.search("索引の話", tool=["two", "two"]).hits} == {"two"}
    page = library.page(SearchRequest("索引の話", ("three", "one")))
    assert {item.passage.hit.tool for item in page.results} == {"one", "three"}
    assert page.several_tools


def write_notes(folder: Path, names: str, words: str = "索引の話") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.md").write_text(f"# {name}\n\n{words}。{FILLER}\n", encoding="utf-8")


@pytest.mark.parametrize("mode", MODES)
def test_a_file_that_two_tools_have_is_found_once_in_the_innermost_folder(
    library: Library, tmp_path: Path, mode: Mode
) -> None:
    write_notes(tmp_path / "notes", "ab")
    write_notes(tmp_path / "notes" / "work", "cd")
    library.add(tmp_path / "notes", name="a-notes")
    library.add(tmp_path / "notes" / "work", name="work")
    library.add(tmp_path / "notes" / "work", name="work-again")
    places = {("a-notes", "a.md"), ("a-notes", "b.md"), ("work", "c.md"), ("work", "d.md")}
    answer = library.search("索引の話", mode=mode, top_k=8)
    assert {(hit.tool.removesuffix("-again"), hit.uri) for hit in answer.hits} == places
    assert len(answer.hits) == 4
    best = library.search("索引の話 d", mode=mode, top_k=1)
    assert [(hit.tool.removesuffix("-again"), hit.uri) for hit in best.hits] == [("work", "d.md")]
    outer = library.search("索引の話", tool="a-notes", mode=mode, top_k=8)
    assert {hit.uri for hit in outer.hits} == {"a.md", "b.md", "work/c.md", "work/d.md"}


def test_a_file_that_two_tools_have_counts_as_one_document(library: Library, tmp_path: Path) -> None:
    write_sections(tmp_path / "notes" / "work", "long.md", 4)
    write_notes(tmp_path / "notes", "ab")
    library.add(tmp_path / "notes", name="notes")
    library.add(tmp_path / "notes" / "work", name="work")
    hits = library.search("索引の話", mode="bm25", top_k=4, per_document=2).hits
    assert sorted(hit.uri for hit in hits) == ["a.md", "b.md", "long.md", "long.md"]
    assert sum(hit.more_in_document for hit in hits) == 2


def test_memos_that_are_also_a_document_of_a_folder_are_found_once(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    memo = f"* 索引の話\n\n\t索引の話を書いた。{FILLER}\n"
    (folder / "memo.txt").write_text(f"2025-05-12  Mori  <mori@example.com>\n\n\t{memo}", encoding="utf-8")
    write_notes(folder, "a", words="旅の話")
    library.add(folder, name="notes")
    library.add(folder / "memo.txt", name="memos", kind="memos")
    assert len(library.search("索引", tool="notes", mode="bm25").hits) == 1
    assert len(library.search("索引", tool="memos", mode="bm25").hits) == 1
    assert len(library.search("索引", mode="bm25").hits) == 1


def test_the_newest_documents_are_listed_once_too(library: Library, tmp_path: Path) -> None:
    write_notes(tmp_path / "notes" / "work", "cd")
    library.add(tmp_path / "notes", name="notes")
    library.add(tmp_path / "notes" / "work", name="work")
    hits = library.search("", where=Filter(path="*.md")).hits
    assert sorted((hit.tool, hit.uri) for hit in hits) == [("work", "c.md"), ("work", "d.md")]


def test_passages_in_another_language_are_passed_over(docs: Path, open_docs: Opener) -> None:
    for number in range(30):
        (docs / f"en{number}.md").write_text(f"# Moss {number}\n\nMoss grows on wall {number}. Moss.\n", "utf-8")
    (docs / "ja.md").write_text("# 苔\n\n庭の moss は日陰を好む。湿った土を絶やさないようにする。\n", "utf-8")
    library = open_docs()
    request = SearchRequest("moss", mode="bm25", top_k=5)
    assert "ja.md" not in documents(library.page(request))
    assert documents(library.page(replace(request, language="ja"))) == ["ja.md"]
    first = library.page(replace(request, language="en"))
    second = library.page(replace(request, language="en", cursor=first.next_cursor))
    assert len({*documents(first), *documents(second)}) == 10
    with pytest.raises(QueryError):  # it belongs to a search in one language
        library.page(replace(request, cursor=first.next_cursor))
