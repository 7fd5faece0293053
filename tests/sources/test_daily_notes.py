"""Notes with a heading for each day: one memo per day, with its date."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.readers.memo import BadLine, Memo
from bunko.types import Text
from bunko.types.records import Filter
from tests.sources.memo_files import Opener, add_memos, cited_lines, parse_file, write

DIARY = """\
# 日記

## 2024-03-05

川沿いを散歩した。

### 夜

* 本を読んだ。

## 2024-03-06 会議 [仕事]

予算の話。
"""


def days(text: str, name: str = "diary.md", max_chars: int = 10_000) -> list[Memo]:
    items = parse_file(text.encode(), name, max_chars)
    assert all(isinstance(item, Memo) for item in items), items
    return [item for item in items if isinstance(item, Memo)]


@pytest.mark.parametrize("name", ["diary.md", "diary.markdown", "diary.txt", "日記"])
def test_each_day_is_a_memo_with_its_date(name: str) -> None:
    first, second = days(DIARY, name)
    assert (first.title, first.date, first.tags, first.context) == ("", "2024-03-05", (), "日記")
    assert first.text[first.body :] == "川沿いを散歩した。\n\n### 夜\n\n* 本を読んだ。"
    assert (first.first_line, first.last_line) == (3, 9)
    assert (second.title, second.date, second.tags) == ("会議", "2024-03-06", ("仕事",))
    assert second.text[second.body :] == "予算の話。"


@pytest.mark.parametrize(
    ("heading", "title", "date", "tags"),
    [
        ("## 2024-03-05", "", "2024-03-05", ()),
        ("# 2024-03-05", "", "2024-03-05", ()),
        ("### 2024-03-05 ###", "", "2024-03-05", ()),
        ("## 2024/3/5 (火)", "", "2024-03-05", ()),
        ("## 2024年3月5日（火）", "", "2024-03-05", ()),
        ("## 令和6年3月5日", "", "2024-03-05", ()),
        ("## 2024-03-05 Tuesday", "", "2024-03-05", ()),
        ("## [2024-03-05]", "", "2024-03-05", ()),
        ("## [[2024-03-05]]", "", "2024-03-05", ()),
        ("## **2024-03-05**", "", "2024-03-05", ()),
        ("## 2024-03-05 10:30", "", "2024-03-05T10:30:00", ()),
        ("## 2024-03-05 10:30 会議", "会議", "2024-03-05T10:30:00", ()),
        ("## 2024-03-05: 会議", "会議", "2024-03-05", ()),
        ("## 2024-03-05 — 会議", "会議", "2024-03-05", ()),
        ("## 会議 2024-03-05", "会議", "2024-03-05", ()),
        ("## 2024-03-05 #仕事 #会議", "", "2024-03-05", ("仕事", "会議")),
        ("## 2024-03-05 会議 [仕事]:[定例]:", "会議", "2024-03-05", ("仕事", "定例")),
        ("## 20240305 会議", "会議", "2024-03-05", ()),
        ("## March 5, 2024", "", "2024-03-05", ()),
        ("## Tuesday, 5 March 2024: 会議", "会議", "2024-03-05", ()),
        ("## [1.2.0] - 2024-03-05", "1.2.0", "2024-03-05", ()),
    ],
)
def test_the_heading_of_a_day_may_be_written_in_many_ways(
    heading: str, title: str, date: str, tags: tuple[str, ...]
) -> None:
    first, second = days(f"{heading}\n\n散歩した。\n\n{heading}\n\n休んだ。\n")
    assert (first.title, first.date, first.tags) == (title, date, tags)
    assert (first.text[first.body :], second.text[second.body :]) == ("散歩した。", "休んだ。")


def test_tags_stand_below_the_heading_or_in_the_front_matter() -> None:
    first, second = days(
        "---\ntitle: 日記\ntags: [diary]\n---\n\n## 2024-03-05\nTags: 散歩\n\n川沿い。\n\n## 2024-03-06\n\n休み。\n"
    )
    assert (first.tags, first.context, first.text[first.body :]) == (("diary", "散歩"), "日記", "川沿い。")
    assert (second.tags, second.date) == (("diary",), "2024-03-06")


def test_text_before_the_first_day_and_between_days_is_kept() -> None:
    text = "# 日記\n\n三月の記録。\n\n## 2024-03-05\n\n散歩。\n\n## 2024-03-06\n\n休み。\n\n## いつか\n\n旅に出る。\n"
    assert [(memo.title, memo.date, memo.text[memo.body :]) for memo in days(text)] == [
        ("日記", "", "三月の記録。"),
        ("", "2024-03-05", "散歩。"),
        ("", "2024-03-06", "休み。"),
        ("いつか", "", "旅に出る。"),
    ]


def test_the_headings_above_a_day_are_its_context() -> None:
    text = "# 案件A\n\n## 2024-03-05\n\n着手。\n\n# 案件B\n\n## 2024-03-05\n\n保留。\n"
    assert [(memo.context, memo.text[memo.body :]) for memo in days(text)] == [
        ("案件A", "着手。"),
        ("案件B", "保留。"),
    ]


def test_a_heading_in_code_begins_no_day() -> None:
    memo, _ = days(
        "## 2024-03-05\n\n```\n## 2024-03-06\n```\n\n~~~~ md\n```\n# 2024-03-07\n~~~\n~~~~\n\n## 2024-03-08\n"
    )
    assert "## 2024-03-06" in memo.text
    assert "# 2024-03-07" in memo.text


@pytest.mark.parametrize(
    "text",
    [
        "# 設計\n\n## 背景\n\n甲\n\n## 方針\n\n乙\n\n## 2024-03-05 追記\n\n丙\n",
        "---\ndate: 2024-01-15\ntags: [a]\n---\n# 設計\n\n## 背景\n\n甲\n\n## 2024-03-05\n\n乙\n",
        "# 年表 2024\n\n甲\n",
        "2024-03-05 に会議をした。\n",
        "## 版 2024.3\n\n甲\n",
    ],
)
def test_a_note_in_which_few_headings_have_a_date_stays_one_note(text: str) -> None:
    [note] = parse_file(text.encode(), "note.md")
    assert isinstance(note, Text)
    assert note.text == text


def test_a_day_that_does_not_exist_is_a_memo_without_a_date_and_is_reported() -> None:
    found = parse_file("## 2024-03-05\n\n散歩。\n\n## 2025-13-45\n\n休み。\n".encode(), "diary.md")
    memos = [item for item in found if isinstance(item, Memo)]
    assert [(memo.date, memo.text[memo.body :]) for memo in memos] == [("2024-03-05", "散歩。"), ("", "休み。")]
    assert [(bad.line, "2025-13-45" in bad.reason) for bad in found if isinstance(bad, BadLine)] == [(5, True)]


def test_a_day_that_is_too_long_is_reported_and_the_others_are_kept() -> None:
    found = parse_file(("## 2024-03-05\n\n" + "話。\n" * 500 + "\n## 2024-03-06\n\n休み。\n").encode(), "d.md", 1000)
    assert [type(item) for item in found] == [BadLine, Memo]


def test_a_diary_may_be_larger_than_one_memo() -> None:
    text = "".join(f"## 2024-03-{day:02d}\n\n{'話が続く。' * 20}\n\n" for day in range(1, 29))
    assert len(days(text, max_chars=500)) == 28


def test_a_day_keeps_its_name_when_its_text_grows_and_is_found_by_date(open_memos: Opener, tmp_path: Path) -> None:
    diary = write(tmp_path / "diary.md", DIARY)
    library = open_memos()
    tool = add_memos(library, diary)
    assert library.store.documents.uris(tool.id) == ["diary.md#2024-03-05", "diary.md#2024-03-06-会議"]
    (hit,) = library.search("散歩", where=Filter(since="2024-03-05", until="2024-03-05")).hits
    (passage,) = library.passages([hit])
    assert "川沿い" in cited_lines(diary, passage.citation)
    assert library.verify_citation(passage.citation, passage.hash).status == "same"
    write(diary, DIARY.replace("川沿い", "朝早く、川沿い"), after=10)
    report = library.reindex(tool="memos")
    assert (report.added, report.updated, report.deleted, report.unchanged) == (0, 1, 0, 1)
    assert library.search("日記 会議").hits[0].title == "会議"


LINES = st.sampled_from(
    [
        "## 2024-03-05",
        "## 2024-03-06 題",
        "# 上",
        "## 他",
        "### 下",
        "本文",
        "",
        "```",
        "* 項目",
        "## 2025-13-45",
        "---",
    ]
)


@given(lines=st.lists(LINES, max_size=15))
def test_no_line_of_a_diary_is_lost(lines: list[str]) -> None:
    text = "\n".join(["## 2024-03-01", *lines])
    items = parse_file(text.encode(), "diary.md", 10_000)
    if any(isinstance(item, Text) for item in items):
        return
    memos = [item for item in items if isinstance(item, Memo)]
    taken = [number for memo in memos for number in range(memo.first_line, memo.last_line + 1)]
    assert taken == sorted(set(taken))
    rest = {line for number, line in enumerate(text.split("\n"), 1) if number not in taken and line.strip()}
    assert all(line.startswith("#") for line in rest)
    for memo in memos:
        assert memo.text.split("\n") == text.split("\n")[memo.first_line - 1 : memo.last_line]
        assert memo.text[memo.body :].strip()
