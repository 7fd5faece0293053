"""Documents are read whole, by lines, by section and in parts, and every part can be cited and verified."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.errors import QueryError, UnknownName
from bunko.library.library import Library
from bunko.library.reading.documents import ListRequest
from bunko.search.reading import Reading, ReadRequest
from bunko.types.records import Filter
from tests.conftest import Opener

GUIDE = """---
title: 手引き
tags: [運用]
---
# 手引き

はじめに読む。

## 準備

準備の一行目。
準備の二行目。

### 道具

ねじ回し。

## 実行

実行する。
"""


@pytest.fixture
def library(docs: Path, open_docs: Opener) -> Library:
    (docs / "guide").mkdir()
    (docs / "guide" / "手引き.md").write_text(GUIDE, encoding="utf-8")
    (docs / "notes.txt").write_text("\n".join(f"line {number}" for number in range(1, 101)), encoding="utf-8")
    (docs / "2024-03-05.md").write_text("# 日記\n\n#散歩 へ行った。\n", encoding="utf-8")
    return open_docs()


def read(library: Library, location: str, **options: object) -> Reading:
    return library.documents.read(ReadRequest(location, **options))  # type: ignore[arg-type]


def test_a_whole_document_is_read_with_its_facts(library: Library) -> None:
    found = read(library, "guide/手引き.md")
    assert found.text == GUIDE.rstrip("\n")
    assert (found.title, found.tags, found.first_line, found.last_line) == ("手引き", ("運用",), 1, 20)
    assert found.citation == "guide/手引き.md:L1-L20"
    assert library.verify_citation(found.citation, found.hash).status == "same"


@pytest.mark.parametrize(
    ("location", "options", "first", "last"),
    [
        ("notes.txt:L3-L5", {}, 3, 5),
        ("notes.txt:L3", {}, 3, 3),
        ("notes.txt", {"lines": "3-5"}, 3, 5),
        ("notes.txt", {"lines": "L7"}, 7, 7),
        ("notes.txt:L3-L5", {"lines": "9"}, 9, 9),
        ("notes.txt:L3-L5", {"context_lines": 2}, 1, 7),
        ("notes.txt:L99-L200", {}, 99, 100),
        ("guide/手引き.md", {"section": "準備"}, 9, 16),
        ("guide/手引き.md", {"section": "### 道具"}, 14, 16),
        ("手引き.md", {"section": "実行"}, 18, 20),
        ("手引き", {"section": "実行"}, 18, 20),
        ("bunko://documents/guide/%E6%89%8B%E5%BC%95%E3%81%8D.md", {"lines": "7"}, 7, 7),
    ],
)
def test_a_part_is_read_by_citation_lines_or_section(
    location: str, options: dict[str, object], first: int, last: int, library: Library
) -> None:
    found = read(library, location, **options)
    assert (found.first_line, found.last_line) == (first, last)
    assert found.text.count("\n") == last - first
    assert library.verify_citation(found.citation, found.hash).status == "same"


@pytest.mark.parametrize(
    ("location", "options", "error", "message"),
    [
        ("nothing.md", {}, UnknownName, "no document or passage 'nothing.md'"),
        ("notes.txt:L101", {}, UnknownName, "no line 101"),
        ("notes.txt", {"lines": "5-3"}, QueryError, "not a range of lines"),
        ("notes.txt", {"lines": "many"}, QueryError, "not a range of lines"),
        ("手引き.md", {"section": "片付け"}, UnknownName, "no section '片付け'"),
        ("notes.txt", {"cursor": "zzz", "token_budget": 20}, QueryError, "cursor is invalid"),
    ],
)
def test_what_is_not_there_is_an_error_that_says_what_there_is(
    location: str, options: dict[str, object], error: type[Exception], message: str, library: Library
) -> None:
    with pytest.raises(error, match=message):
        read(library, location, **options)


def test_a_name_that_two_documents_share_is_not_guessed(docs: Path, open_docs: Opener) -> None:
    for folder in ("a", "b"):
        (docs / folder).mkdir()
        (docs / folder / "README.md").write_text(f"# {folder}\n\ntext\n", encoding="utf-8")
    library = open_docs()
    with pytest.raises(UnknownName, match="several documents") as caught:
        read(library, "README.md")
    assert "a/README.md, b/README.md" in caught.value.hint
    assert read(library, "b/README.md").text.startswith("# b")


@pytest.mark.parametrize("budget", [8, 30, 111])
@pytest.mark.parametrize(("location", "lines"), [("notes.txt", ""), ("notes.txt", "10-90"), ("手引き.md", "")])
def test_parts_that_fit_a_budget_are_the_whole_together(
    location: str, lines: str, budget: int, library: Library
) -> None:
    whole = read(library, location, lines=lines)
    parts: list[Reading] = []
    cursor = ""
    while not parts or cursor:
        parts.append(read(library, location, lines=lines, token_budget=budget, cursor=cursor))
        cursor = parts[-1].next_cursor
        assert library.verify_citation(parts[-1].citation, parts[-1].hash).status == "same"
    assert "".join(part.text for part in parts) == whole.text
    assert (parts[0].first_line, parts[-1].last_line) == (whole.first_line, whole.last_line)


def test_a_cursor_is_for_the_same_text_only(docs: Path, library: Library) -> None:
    first = read(library, "notes.txt", token_budget=20)
    with pytest.raises(QueryError, match="another request"):
        read(library, "notes.txt", token_budget=20, lines="2-9", cursor=first.next_cursor)
    (docs / "notes.txt").write_text("changed\n" * 50, encoding="utf-8")
    with pytest.raises(QueryError, match="another request"):
        read(library, "notes.txt", token_budget=20, cursor=first.next_cursor)


def test_hidden_characters_reach_no_model_and_do_not_shift_the_parts(docs: Path, open_docs: Opener) -> None:
    text = "\n".join(f"l\u200bi\u202ene {number}" for number in range(40))
    (docs / "a.txt").write_text(text, encoding="utf-8")
    library = open_docs()
    parts, cursor = "", ""
    while not parts or cursor:
        part = read(library, "a.txt", token_budget=30, cursor=cursor)
        parts, cursor = parts + part.text, part.next_cursor
    assert parts == "\n".join(f"line {number}" for number in range(40))
    assert read(library, "a.txt").text == text


def test_the_outline_has_the_lines_of_the_headings(library: Library) -> None:
    _, document, headings = library.documents.outline("手引き")
    assert document.uri == "guide/手引き.md"
    assert [(one.level, one.title, one.line) for one in headings] == [
        (1, "手引き", 5),
        (2, "準備", 9),
        (3, "道具", 14),
        (2, "実行", 18),
    ]


def test_documents_are_listed_by_filter_and_order_in_pages(library: Library) -> None:
    def listed(**options: object) -> list[str]:
        page = library.documents.list_documents(ListRequest(**options))  # type: ignore[arg-type]
        return [document.uri for _, document in page.documents]

    assert listed(sort="name") == ["2024-03-05.md", "guide/手引き.md", "notes.txt"]
    assert listed(where=Filter(path="guide/**")) == ["guide/手引き.md"]
    assert listed(where=Filter(tags=("運用",))) == ["guide/手引き.md"]
    assert listed(where=Filter(until="2024-12-31")) == ["2024-03-05.md"]
    assert listed()[-1] == "2024-03-05.md", "the oldest is the last"
    uris: list[str] = []
    cursor = ""
    while not uris or cursor:
        page = library.documents.list_documents(ListRequest(sort="name", limit=2, cursor=cursor))
        assert page.total == 3
        uris += [document.uri for _, document in page.documents]
        cursor = page.next_cursor
    assert uris == ["2024-03-05.md", "guide/手引き.md", "notes.txt"]
    with pytest.raises(QueryError, match="another request"):
        library.documents.list_documents(
            ListRequest(
                sort="newest", cursor=library.documents.list_documents(ListRequest(sort="name", limit=1)).next_cursor
            )
        )
