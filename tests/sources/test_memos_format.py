"""Reading memos from changelogs and notes: headings, dates, tags, encodings and garbage."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.errors import SourceError
from bunko.readers.memo import BadLine, Memo, collapse_line_ends
from bunko.text.dates import iso_date, resolve_date
from bunko.types import Text
from tests.sources.memo_files import (
    EMACS,
    SEED,
    parse_changelog,
    parse_file,
)


def test_a_memo_has_its_title_its_date_its_tags_and_its_text() -> None:
    (memo,) = parse_changelog(SEED)
    assert (memo.title, memo.date, memo.tags) == ("Meeting Notes", "2024-01-15", ("meeting", "january"))
    assert memo.text[memo.body :] == "Topics discussed:\n- Project timeline\n- Budget allocation"
    assert (memo.first_line, memo.last_line) == (1, 6)


def test_items_below_a_date_are_memos_of_that_day() -> None:
    found = parse_changelog(EMACS)
    assert [(memo.title, memo.date, memo.tags) for memo in found] == [
        ("会議", "2024-01-16", ("定例", "予算")),
        ("src/main.c (open)", "2024-01-16", ()),
        ("買い物", "2024-01-15", ()),
    ]
    assert found[0].text[found[0].body :] == "議題は三つ。\n来週までに見積もる。\n  * 担当を決める"
    assert found[1].text[found[1].body :] == "Follow no links."
    assert [(memo.first_line, memo.last_line) for memo in found] == [(3, 5), (7, 7), (11, 12)]


@pytest.mark.parametrize(
    ("line", "title", "day", "tags"),
    [
        ("* 会議 2024-01-15", "会議", "2024-01-15", ()),
        ("* 会議 2024/1/5", "会議", "2024-01-05", ()),
        ("* 会議 2024年1月15日", "会議", "2024-01-15", ()),
        ("* 会議 ２０２４年１月１５日（月）", "会議", "2024-01-15", ()),
        ("* 会議 令和6年1月15日", "会議", "2024-01-15", ()),
        ("* 会議 平成元年12月31日", "会議", "1989-12-31", ()),
        ("* 2024-01-15 会議", "会議", "2024-01-15", ()),
        ("* 会議 (2024-01-15)", "会議", "2024-01-15", ()),
        ("* 会議 <2024-01-15 Mon>", "会議", "2024-01-15", ()),
        ("* 会議 2024-01-15 09:30", "会議", "2024-01-15T09:30:00", ()),
        ("* [仕事] 会議 [定例] 2024-01-15", "会議", "2024-01-15", ("仕事", "定例")),
        ("* 会議 2024-01-15 [Ｗｏｒｋ]", "会議", "2024-01-15", ("work",)),
        ("*\t会議   2024-01-15  ", "会議", "2024-01-15", ()),
        ("* Plan for 2025 2024-12-31", "Plan for 2025", "2024-12-31", ()),
        ("* 2024-01-15", "", "2024-01-15", ()),
    ],
)
def test_a_heading_may_be_written_in_many_ways(line: str, title: str, day: str, tags: tuple[str, ...]) -> None:
    (memo,) = parse_changelog(f"{line}\n  本文")
    assert (memo.title, memo.date, memo.tags) == (title, day, tags)
    assert memo.text[memo.body :] == "本文"


@pytest.mark.parametrize(
    "line",
    [
        "* 会議",
        "会議 2024-01-15",
        "** 会議 2024-01-15",
        "2024-01-15 に会議をした。",
        "* Marketing 5, 2024",
        "* 会議は 2024-01-15 の予定",
        "- x 2024-01-15",
    ],
)
def test_other_lines_do_not_begin_a_memo(line: str) -> None:
    assert parse_changelog(f"{line}\n  本文") == []
    (memo,) = parse_changelog(f"* 題 2024-02-02\n{line}\n")
    assert line in memo.text


@pytest.mark.parametrize(
    "line", ["Tags: a, B", "  tags: a B", "タグ: a、b", "Tags：a,b", "Keywords: [a] [b]", "TAG: #a, #b"]
)
def test_a_line_of_tags_is_read_in_either_language(line: str) -> None:
    (memo,) = parse_changelog(f"* 題 2024-01-15\n\n{line}\n本文")
    assert (memo.tags, memo.text[memo.body :]) == (("a", "b"), "本文")


def test_text_before_the_first_memo_and_below_a_bare_date_is_kept() -> None:
    found = parse_changelog("私のメモ\n\n2024-01-15\n\t項目のない日\n2024-01-16\n\n* 題 2024-01-17\n")
    assert [(memo.first_line, memo.date, memo.text[memo.body :]) for memo in found] == [
        (1, "", "私のメモ"),
        (3, "2024-01-15", "項目のない日"),
        (7, "2024-01-17", "* 題 2024-01-17"),
    ]


def test_a_memo_outside_of_a_day_does_not_belong_to_it() -> None:
    found = parse_changelog("2024-01-15\n\t* a: 甲\n* b 2024-02-02\n  * 箇条書き\n")
    assert [(memo.title, memo.date) for memo in found] == [("a", "2024-01-15"), ("b", "2024-02-02")]
    assert found[1].text[found[1].body :] == "* 箇条書き"


def test_a_line_of_tags_is_read_below_an_item_with_text_too() -> None:
    [memo] = parse_changelog("2024-01-15  太郎\n\n\t* 会議 [定例]: 議題は三つ。\n\tTags: 予算, 来期\n\t予算の話。\n")
    assert memo.tags == ("定例", "予算", "来期")
    assert memo.text[memo.body :] == "議題は三つ。\nTags: 予算, 来期\n予算の話。"


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("0d", "2026-03-10"),
        ("1d", "2026-03-09"),
        ("2w", "2026-02-24"),
        ("2週間前", "2026-02-24"),
        ("３日前", "2026-03-07"),
        ("6か月前", "2025-09-11"),
        ("6ヶ月前", "2025-09-11"),
        ("1年前", "2025-03-10"),
        ("12h", "2026-03-10T01:05:00"),
        ("12時間前", "2026-03-10T01:05:00"),
    ],
)
def test_how_long_ago_is_a_whole_day_but_for_hours(written: str, day: str) -> None:
    assert resolve_date(written, datetime(2026, 3, 10, 13, 5)) == day


@pytest.mark.parametrize(
    ("written", "since", "until"),
    [
        ("きょう", "2026-03-10", "2026-03-10"),
        ("きのう", "2026-03-09", "2026-03-09"),
        ("おととい", "2026-03-08", "2026-03-08"),
        ("今週", "2026-03-09", "2026-03-15"),
        ("先週", "2026-03-02", "2026-03-08"),
        ("先々週", "2026-02-23", "2026-03-01"),
        ("今月", "2026-03", "2026-03"),
        ("先月", "2026-02", "2026-02"),
        ("先々月", "2026-01", "2026-01"),
        ("今年", "2026", "2026"),
        ("去年", "2025", "2025"),
        ("おととし", "2024", "2024"),
        ("this week", "2026-03-09", "2026-03-15"),
        ("Last  Week", "2026-03-02", "2026-03-08"),
        ("last month", "2026-02", "2026-02"),
        ("last-year", "2025", "2025"),
        ("3 days ago", "2026-03-07", "2026-03-07"),
        ("1 week ago", "2026-03-03", "2026-03-03"),
        ("2 months ago", "2026-01-09", "2026-01-09"),
        ("12 hours ago", "2026-03-10T01:05:00", "2026-03-10T01:05:00"),
    ],
)
def test_the_words_of_a_calendar_are_dates_whose_periods_begin_and_end(written: str, since: str, until: str) -> None:
    tuesday = datetime(2026, 3, 10, 13, 5)
    assert resolve_date(written, tuesday) == since
    assert resolve_date(written, tuesday, is_end=True) == until


def test_the_month_before_january_is_in_the_year_before() -> None:
    assert resolve_date("先月", datetime(2026, 1, 31)) == "2025-12"
    assert resolve_date("先々月", datetime(2026, 2, 1)) == "2025-12"


def test_eras_are_understood_where_dates_are_given_by_hand() -> None:
    assert resolve_date("令和6年1月15日", datetime(2026, 1, 1)) == "2024-01-15"
    assert iso_date("昭和64年1月7日") == iso_date("1989年1月7日") == "1989-01-07"
    assert iso_date("令和６年") == "2024"
    assert iso_date("令和6年13月1日") == ""


WORDS = st.text("あ漢字カナabcXYZ019 、。-()#*:", min_size=1, max_size=20).map(lambda text: " ".join(text.split()))


TAGS = st.lists(st.text("あ漢abc", min_size=1, max_size=5), max_size=3, unique=True)


TITLES = WORDS.map(lambda text: re.sub(r"[:：*#()\d-]", "", text)).map(lambda text: " ".join(text.split())).filter(bool)


BODIES = st.lists(WORDS.filter(bool).map(lambda text: f"・{text}"), min_size=1, max_size=4)


ENTRIES = st.lists(
    st.tuples(TITLES, st.dates(date(1950, 1, 1), date(2099, 12, 31)), TAGS, BODIES), min_size=1, max_size=5
)


@given(entries=ENTRIES, end=st.sampled_from(["\n", "\r\n", "\r"]), indent=st.sampled_from(["  ", "\t", "    "]))
def test_what_is_written_as_memos_is_read_back(
    entries: list[tuple[str, date, list[str], list[str]]], end: str, indent: str
) -> None:
    text = ""
    for title, day, tags, body in entries:
        text += f"* {title} {day}\n" + (f"{indent}Tags: {', '.join(tags)}\n" if tags else "")
        text += "".join(f"{indent}{line}\n" for line in body) + "\n"
    found = parse_changelog(text.replace("\n", end))
    assert [(memo.title, memo.date, memo.tags, memo.text[memo.body :]) for memo in found] == [
        (title, str(day), tuple(tags), "\n".join(body)) for title, day, tags, body in entries
    ]


@given(entries=ENTRIES, jp=st.booleans())
def test_what_is_written_as_items_of_days_is_read_back(
    entries: list[tuple[str, date, list[str], list[str]]], jp: bool
) -> None:
    text = ""
    for title, day, tags, body in entries:
        written = f"{day.year}年{day.month}月{day.day}日" if jp else str(day)
        text += f"{written}  Ann  <ann@example.com>\n\n\t* {title} {''.join(f'[{tag}]' for tag in tags)}: {body[0]}\n"
        text += "".join(f"\t  {line}\n" for line in body[1:]) + "\n"
    assert [(memo.title, memo.date, memo.tags, memo.text[memo.body :]) for memo in parse_changelog(text)] == [
        (title, str(day), tuple(tags), "\n".join(body)) for title, day, tags, body in entries
    ]


LINES = st.sampled_from(
    [
        *(
            "* a 2024-01-15",
            "* 題 令和6年1月1日 [x]",
            "2024-01-15",
            "2024-01-16  Ann  <a@b.c>",
            "* [2024-01-15]",
            "* z",
        ),
        *("\t* 項: 目", "\t* [t] x", "  * y", "Tags: a, b", "  本文", "text", "* ", "*", "[", "2024-01-15:"),
        *("", "  ", "\t", "\u3000", "\x0c"),
    ]
)


@given(lines=st.lists(LINES | st.text(max_size=30), max_size=15), end=st.sampled_from(["\n", "\r\n"]))
def test_no_line_of_text_is_lost(lines: list[str], end: str) -> None:
    text = end.join(lines)
    found = parse_changelog(text)
    real = collapse_line_ends(text).split("\n")
    taken = [number for memo in found for number in range(memo.first_line, memo.last_line + 1)]
    assert taken == sorted(set(taken)), "memos overlap or are out of order"
    if found:
        rest = [line for number, line in enumerate(real, 1) if number not in taken and line.strip()]
        assert all(iso_date(re.split(r"[ \t]{2}|\t", line)[0]) for line in rest), (
            "only the date of a day may stand outside"
        )
    for memo in found:
        stripped = [line.split() for line in real[memo.first_line - 1 : memo.last_line]]
        assert [line.split() for line in memo.text.split("\n")] == stripped
        assert memo.text[memo.body :].strip()


@given(data=st.binary(max_size=200), name=st.sampled_from(["a.txt", "a.md", "a.jsonl", "ChangeLog"]))
def test_garbage_is_read_or_refused_but_never_breaks_the_reader(data: bytes, name: str) -> None:
    with suppress(SourceError):
        parse_file(data, name)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "cp932", "euc_jp", "utf-16", "iso2022_jp"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_any_encoding_and_any_line_end_give_the_same_memos(codec: str, end: str) -> None:
    expected = parse_changelog(EMACS)
    assert len(expected) == 3
    assert parse_file(EMACS.replace("\n", end).encode(codec), "ChangeLog") == expected


def test_a_markdown_file_is_one_memo_unless_it_is_a_changelog() -> None:
    (note,) = parse_file(
        "---\ntitle: 設計\ndate: 2024-01-15\ntags: [a, b]\n---\n# 案\n\n* 初版 2024-01-10\n".encode(), "n.md"
    )
    assert isinstance(note, Text)
    assert (note.title, note.date, note.tags) == ("設計", "2024-01-15", ("a", "b"))
    assert all(isinstance(one, Memo) for one in parse_file(b"# Notes\n\n* done 2024-01-10\n\n* more", "n.md"))
    assert [type(one) for one in parse_file(b"Some text.\n\n* done 2024-01-10\n", "n.md")] == [Text]
    assert [memo.title for memo in parse_file(SEED.encode(), "n.md") if isinstance(memo, Memo)] == ["Meeting Notes"]


@pytest.mark.parametrize(
    ("name", "text", "day"),
    [
        ("2024-03-04.md", "散歩した。", "2024-03-04"),
        ("log/20240304-散歩.txt", "散歩した。", "2024-03-04"),
        ("2024_03_04 散歩.md", "散歩した。", "2024-03-04"),
        ("2024-03-04.md", "---\ndate: 2024-03-05\n---\n散歩した。", "2024-03-05"),
        ("2024-13-04.md", "散歩した。", ""),
        ("2024030405.md", "散歩した。", ""),
        ("散歩.md", "散歩した。", ""),
    ],
)
def test_a_note_without_a_date_has_the_one_that_its_name_begins_with(name: str, text: str, day: str) -> None:
    [note] = parse_file(text.encode(), name)
    assert isinstance(note, Text)
    assert note.date == day


@pytest.mark.parametrize("name", ["note.md", "note.txt"])
def test_a_note_with_a_damaged_character_is_kept_and_its_line_is_told(name: str) -> None:
    data = "# 題\n\n最初の行は無事な文です。\n二行目に".encode() + b"\xff" + "壊れた字がある。\n".encode()
    note, bad = parse_file(data, name)
    assert isinstance(note, Text)
    assert "二行目に\ufffd壊れた字がある。" in note.text
    assert isinstance(bad, BadLine)
    assert bad.reason == "line 4 holds damaged characters, which are replaced with \ufffd"
