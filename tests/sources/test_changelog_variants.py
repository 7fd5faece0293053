"""Changelogs as people write them: colons after tags, dates that do not exist, authors of days."""

from __future__ import annotations

from pathlib import Path

import pytest

from bunko.library.tools.routing import make_questions
from bunko.readers import changelog
from bunko.readers.memo import BadLine, Memo
from bunko.types import Text
from tests.sources.memo_files import Opener, add_memos, parse_changelog, parse_file, write

GNU = """\
2024-01-16  Jane Doe  <jane@example.com>
\t    Kiku Sato  <kiku@example.org>

\t* main.c (open): Follow no links.
\t(close): Likewise.

\t* util.c: Free the buffer.

2024-01-15  山田 太郎  <taro@example.com>

\t* NEWS: 版を上げた。

Thu Jun 20 12:55:23 1996  Jim Meyer  (meyer@example.net)

\t* configure: Regenerate.
"""


@pytest.mark.parametrize(
    ("line", "title", "date", "tags"),
    [
        ("* Title 2025-01-15 10:00:00 [memo]:[tips]:", "Title", "2025-01-15T10:00:00", ("memo", "tips")),
        ("* Title 2025-01-15 10:00:00 [memo]: [tips]:", "Title", "2025-01-15T10:00:00", ("memo", "tips")),
        ("* 題名 2025-01-15 [メモ]：[覚え書き]：", "題名", "2025-01-15", ("メモ", "覚え書き")),
        ("* Title 2025-01-15 [memo],[tips]", "Title", "2025-01-15", ("memo", "tips")),
        ("* Title [memo]:[tips]: 2025-01-15", "Title", "2025-01-15", ("memo", "tips")),
        ("* [memo]:[tips]: Title 2025-01-15", "Title", "2025-01-15", ("memo", "tips")),
        ("* 2025-01-15 10:00 Title [memo]:[tips]:", "Title", "2025-01-15T10:00:00", ("memo", "tips")),
        ("* 題名 2025-01-15 ［メモ］［覚え書き］", "題名", "2025-01-15", ("メモ", "覚え書き")),
        ("* Title 2025-01-15 #memo #tips", "Title", "2025-01-15", ("memo", "tips")),
        ("* Title <2025-01-15 Wed 10:00> :memo:tips:", "Title", "2025-01-15T10:00:00", ("memo", "tips")),
        ("* Fix #12 2025-01-15 #34", "Fix #12", "2025-01-15", ()),
        ("* [[2025-01-15]] Title", "Title", "2025-01-15", ()),
        ("* Title - 2025-01-15", "Title", "2025-01-15", ()),
        ("* 2025-01-15 - Title", "Title", "2025-01-15", ()),
        ("* Title 2025-01-15 (水) 10:00", "Title", "2025-01-15T10:00:00", ()),
        ("* Title 2025-01-15, Wednesday", "Title", "2025-01-15", ()),
        ("* Title 2025-01-15 10:00:00 +0900 [memo]:", "Title", "2025-01-15T10:00:00+09:00", ("memo",)),
        ("* Title 2025-01-15T01:00:00Z", "Title", "2025-01-15T01:00:00+00:00", ()),
        ("* Title 2025-01-15T10:00:00.123+09:00", "Title", "2025-01-15T10:00:00+09:00", ()),
        ("* Title 2025-01-15 10:00 JST", "Title", "2025-01-15T10:00:00+09:00", ()),
        ("* Title 2025-01-15 10:00-11:30", "Title", "2025-01-15T10:00:00", ()),
        ("* Title 2025-01-15 12:30 AM [memo]:", "Title", "2025-01-15T00:30:00", ("memo",)),
        ("* Title 2025-01-15 1:30 pm", "Title", "2025-01-15T13:30:00", ()),
        ("* Title 2025-01-15 25:30", "Title", "2025-01-15", ()),
        ("* Title 2025-01-15 10:00:00 []:", "Title", "2025-01-15T10:00:00", ()),
        ("* Title January 15th, 2025 [memo]:", "Title", "2025-01-15", ("memo",)),
        ("* Title 15 Jan 2025 10:00", "Title", "2025-01-15T10:00:00", ()),
    ],
)
def test_a_heading_may_have_colons_after_its_tags_and_any_time(
    line: str, title: str, date: str, tags: tuple[str, ...]
) -> None:
    before, memo, after = parse_changelog(f"* 前 2025-01-14\n  甲\n{line}\n  本文\n* 後 2025-01-16\n  乙\n")
    assert (memo.title, memo.date, memo.tags) == (title, date, tags)
    assert memo.text[memo.body :] == "本文"
    assert (before.text[before.body :], after.text[after.body :]) == ("甲", "乙")


@pytest.mark.parametrize("name", ["memo.txt", "memo.md", "ChangeLog"])
def test_of_two_hundred_memos_with_tags_in_two_styles_none_becomes_the_body_of_another(name: str) -> None:
    styles = ("[memo]:[tips]:", "[memo][tips]:")
    text = "".join(f"* 題{at} 2025-01-15 10:00:00 {styles[at % 2]}\n\n  本文{at}\n\n" for at in range(200))
    found = parse_file(text.encode(), name, max_chars=100_000)
    assert [(memo.title, memo.tags) for memo in found if isinstance(memo, Memo)] == [
        (f"題{at}", ("memo", "tips")) for at in range(200)
    ]


@pytest.mark.parametrize(
    ("item", "title", "tags", "body"),
    [
        ("* 会議 [定例]:[予算]: 議題は三つ。", "会議", ("定例", "予算"), "議題は三つ。"),
        ("* 会議 [定例]: [予算]: 議題は三つ。", "会議", ("定例", "予算"), "議題は三つ。"),
        ("* 会議[定例]：[予算]：議題は三つ。", "会議", ("定例", "予算"), "議題は三つ。"),
        ("* 会議 [定例]:[予算]:\n\t  議題は三つ。", "会議", ("定例", "予算"), "議題は三つ。"),
        ("* [定例]: 会議: 議題は三つ。", "", ("定例",), "会議: 議題は三つ。"),
    ],
)
def test_an_item_may_have_a_colon_after_each_of_its_tags(
    item: str, title: str, tags: tuple[str, ...], body: str
) -> None:
    [memo] = parse_changelog(f"2024-01-15  太郎\n\n\t{item}\n")
    assert (memo.title, memo.tags, memo.text[memo.body :]) == (title, tags, body)


@pytest.mark.parametrize("name", ["memo.txt", "memo.md", "ChangeLog"])
@pytest.mark.parametrize("line", ["* 会議 2025-13-45", "* 2025/2/30 会議", "* 会議 <2025年0月10日> [定例]:"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_date_that_does_not_exist_concerns_its_entry_alone(name: str, line: str, at: int) -> None:
    entries = ["* 甲 2025-01-14\n  一つめ。\n", "* 乙 2025-01-15\n  二つめ。\n"]
    entries.insert(at, f"{line}\n  日付のない話。\n")
    found = parse_file("".join(entries).encode(), name)
    memos = [item for item in found if isinstance(item, Memo)]
    assert sorted((memo.title, memo.date, memo.text[memo.body :]) for memo in memos) == [
        ("乙", "2025-01-15", "二つめ。"),
        ("会議", "", "日付のない話。"),
        ("甲", "2025-01-14", "一つめ。"),
    ]
    assert memos[at].text.startswith(line)
    [bad] = [item for item in found if isinstance(item, BadLine)]
    assert bad.line == 2 * at + 1
    assert bad.reason.startswith(f"line {bad.line} has the date 2025")
    assert bad.reason.endswith("which does not exist: its entry is indexed without a date")


def test_items_below_a_date_that_does_not_exist_do_not_get_the_date_of_another_day() -> None:
    text = "2024-01-14  Ann  <a@b.c>\n\n\t* a: 甲\n\n2024-13-45  Ann  <a@b.c>\n\n\t* b: 乙\n\n\t* c: 丙\n"
    found = list(changelog.memos(text.split("\n")))
    assert [(item.title, item.date) for item in found if isinstance(item, Memo)] == [
        ("a", "2024-01-14"),
        ("b", ""),
        ("c", ""),
    ]
    assert [item.line for item in found if isinstance(item, BadLine)] == [5]


def test_numbers_that_are_no_dates_of_our_time_begin_no_entry() -> None:
    [memo] = parse_changelog("* 題 2024-02-02\n* 電話 0123-45-67\n* 型番 9876-54-32\n")
    assert "電話 0123-45-67" in memo.text


def test_a_bad_date_is_reported_until_it_is_corrected_and_its_entry_can_be_found(
    open_memos: Opener, tmp_path: Path
) -> None:
    text = "* 散歩 2025-13-45\n  川沿いを歩いた。\n* 会議 2025-01-15\n  予算の話。\n"
    memo = write(tmp_path / "memo.md", text)
    library = open_memos()
    add_memos(library, memo)
    assert [(hit.title, hit.date) for hit in library.search("川沿い").hits] == [("散歩", "")]
    [problem] = library.reindex(tool="memos").problems
    assert (problem.uri, "2025-13-45" in problem.reason) == ("memo.md#L1", True)
    write(memo, text.replace("2025-13-45", "2025-03-04"), after=10)
    report = library.reindex(tool="memos")
    assert (report.problems, report.unchanged) == ([], 1)
    assert [hit.date for hit in library.search("川沿い").hits] == ["2025-03-04"]


def test_an_item_has_the_authors_of_its_day() -> None:
    assert [(memo.title, memo.date, memo.context) for memo in parse_changelog(GNU)] == [
        ("main.c (open)", "2024-01-16", "Jane Doe <jane@example.com>, Kiku Sato <kiku@example.org>"),
        ("util.c", "2024-01-16", "Jane Doe <jane@example.com>, Kiku Sato <kiku@example.org>"),
        ("NEWS", "2024-01-15", "山田 太郎 <taro@example.com>"),
        ("configure", "1996-06-20T12:55:23", "Jim Meyer (meyer@example.net)"),
    ]


def test_a_day_without_items_has_its_author_too() -> None:
    [memo] = parse_changelog("2024-01-15  Taro Yamada  <taro@example.com>\n\n\tInitial import.\n")
    assert (memo.title, memo.context) == ("", "Taro Yamada <taro@example.com>")


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("Jane Doe", {"main.c (open)", "util.c"}),
        ("kiku", {"main.c (open)", "util.c"}),
        ("山田", {"NEWS"}),
        ("Jim Meyer", {"configure"}),
    ],
)
def test_entries_are_found_by_their_author_who_is_shown(
    open_memos: Opener, tmp_path: Path, query: str, titles: set[str]
) -> None:
    library = open_memos()
    add_memos(library, write(tmp_path / "ChangeLog", GNU))
    hits = library.search(query, mode="bm25").hits
    assert {hit.title for hit in hits} == titles
    assert all(query.casefold() in hit.chunk.heading_path[0].casefold() for hit in hits)


def test_a_new_author_of_a_day_is_a_change(open_memos: Opener, tmp_path: Path) -> None:
    source = write(tmp_path / "ChangeLog", GNU)
    library = open_memos()
    add_memos(library, source)
    write(source, GNU.replace("山田 太郎", "田中 花子"), after=10)
    report = library.reindex(tool="memos")
    assert (report.updated, report.unchanged, report.embedded) == (1, 3, 0)
    assert [hit.title for hit in library.search("田中 花子", mode="bm25").hits] == ["NEWS"]


def test_a_markdown_note_with_a_star_in_its_text_stays_one_note() -> None:
    [note] = parse_file("本文。\n\n* 会議 2025-13-45\n".encode(), "note.md")
    assert isinstance(note, Text)


def test_an_author_is_not_a_subject_of_the_tool(open_memos: Opener, tmp_path: Path) -> None:
    text = "".join(
        f"2024-01-{day:02d}  山田 太郎  <taro@example.com>\n\n\t* 検索の速さ: 索引の作成が{day}秒で終わる。\n\n"
        for day in range(1, 20)
    )
    library = open_memos()
    add_memos(library, write(tmp_path / "ChangeLog", text))
    assert all("太郎" not in phrase.text for phrase in library.maintenance.propose_description("memos").phrases)
    [tool] = library.tools()
    rows = library.store.documents.chunks([chunk.chunk_id for chunk in library.store.changes.chunks_since(tool.id, 0)])
    assert all("太郎" not in question for question in make_questions(rows.values()))
