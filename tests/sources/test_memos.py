"""What memos are read from, what they are called, and what a change of one costs, on real files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client.client import Client
from mcp_types import TextResourceContents

from bunko.errors import SourceError
from bunko.interfaces.mcp.server import BunkoServer
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library import catalog
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.paths import locate_library
from bunko.readers import changelog
from bunko.readers.memo import BadLine, Memo, collapse_line_ends
from bunko.records import Filter
from bunko.sources import memos as source
from bunko.text.dates import iso_date, resolve_date
from bunko.types import Text, Tool

LONG_AGO = 1_700_000_000 * 10**9
SEED = """\
* Meeting Notes 2024-01-15
  Tags: meeting, january

  Topics discussed:
  - Project timeline
  - Budget allocation
"""
EMACS = """\
2024-01-16  山田 太郎  <taro@example.com>

\t* 会議 [定例][予算]: 議題は三つ。
\t  来週までに見積もる。
\t    * 担当を決める

\t* src/main.c (open): Follow no links.

2024年1月15日（月）

\t* 買い物
\t  牛乳と卵。
"""

Opener = Callable[..., Library]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Open a library of its own; settings are given as environment names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    libraries: list[Library] = []

    def opener(**environ: str) -> Library:
        environ.setdefault("BUNKO_SEARCH_FRESHNESS_SECONDS", "0")
        libraries.append(open_library(locate_library(library=tmp_path / "library", environ=environ), environ=environ))
        return libraries[-1]

    yield opener
    for library in libraries:
        library.close()


def write(path: Path, text: str | bytes, *, after: int = 0) -> Path:
    """Write a file that changed so many seconds after another one, long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    os.utime(path, ns=(LONG_AGO + after * 10**9, LONG_AGO + after * 10**9))
    return path


def added(library: Library, source: Path) -> Tool:
    tool = catalog.add_tool(library.store, "memos", "What we did", source, kind="memos")
    library.import_tools(["memos"])
    return tool


def cited(root: Path, citation: str) -> str:
    """Return what stands in the file at a citation's lines."""
    match = re.fullmatch(r"([^#]+)(?:#.*)?:L(\d+)(?:-L(\d+))?", citation)
    assert match
    path = root / match[1] if root.is_dir() else root
    return "\n".join(path.read_text(encoding="utf-8").split("\n")[int(match[2]) - 1 : int(match[3] or match[2])])


def memos(text: str) -> list[Memo]:
    """Return the entries of a changelog in which no entry is too long."""
    return [one for one in changelog.memos(collapse_line_ends(text).split("\n")) if isinstance(one, Memo)]


def parsed(data: bytes, name: str, most: int = 1000) -> list[Memo | BadLine | Text]:
    """Return what a file of a name holds."""
    return list(source.parse(BytesIO(data), name, len(data), most).items)


# Reading


def test_a_memo_has_its_title_its_date_its_tags_and_its_text() -> None:
    (memo,) = memos(SEED)
    assert (memo.title, memo.date, memo.tags) == ("Meeting Notes", "2024-01-15", ("meeting", "january"))
    assert memo.text[memo.body :] == "Topics discussed:\n- Project timeline\n- Budget allocation"
    assert (memo.first_line, memo.last_line) == (1, 6)


def test_items_below_a_date_are_memos_of_that_day() -> None:
    found = memos(EMACS)
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
    (memo,) = memos(f"{line}\n  本文")
    assert (memo.title, memo.date, memo.tags) == (title, day, tags)
    assert memo.text[memo.body :] == "本文"


@pytest.mark.parametrize(
    "line",
    [
        "* 会議",
        "会議 2024-01-15",
        "* 会議 2024-13-45",
        "** 会議 2024-01-15",
        "2024-01-15 に会議をした。",
        "- x 2024-01-15",
    ],
)
def test_other_lines_do_not_begin_a_memo(line: str) -> None:
    assert memos(f"{line}\n  本文") == []
    (memo,) = memos(f"* 題 2024-02-02\n{line}\n")
    assert line in memo.text


@pytest.mark.parametrize(
    "line", ["Tags: a, B", "  tags: a B", "タグ: a、b", "Tags：a,b", "Keywords: [a] [b]", "TAG: #a, #b"]
)
def test_a_line_of_tags_is_read_in_either_language(line: str) -> None:
    (memo,) = memos(f"* 題 2024-01-15\n\n{line}\n本文")
    assert (memo.tags, memo.text[memo.body :]) == (("a", "b"), "本文")


def test_text_before_the_first_memo_and_below_a_bare_date_is_kept() -> None:
    found = memos("私のメモ\n\n2024-01-15\n\t項目のない日\n2024-01-16\n\n* 題 2024-01-17\n")
    assert [(memo.first_line, memo.date, memo.text[memo.body :]) for memo in found] == [
        (1, "", "私のメモ"),
        (3, "2024-01-15", "項目のない日"),
        (7, "2024-01-17", "* 題 2024-01-17"),
    ]


def test_a_memo_outside_of_a_day_does_not_belong_to_it() -> None:
    found = memos("2024-01-15\n\t* a: 甲\n* b 2024-02-02\n  * 箇条書き\n")
    assert [(memo.title, memo.date) for memo in found] == [("a", "2024-01-15"), ("b", "2024-02-02")]
    assert found[1].text[found[1].body :] == "* 箇条書き"


def test_a_line_of_tags_is_read_below_an_item_with_text_too() -> None:
    [memo] = memos("2024-01-15  太郎\n\n\t* 会議 [定例]: 議題は三つ。\n\tTags: 予算, 来期\n\t予算の話。\n")
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


def test_a_memo_of_yesterday_is_among_those_since_one_day_ago(opened: Opener, tmp_path: Path) -> None:
    library = opened()
    today = library.local_time().date()
    days = [(today - timedelta(days=back)).isoformat() for back in range(4)]
    added(library, write(tmp_path / "memo.txt", "".join(f"* 散歩 {day}\n  川沿い。\n" for day in days)))
    hits = library.search("散歩", where=Filter(since=resolve_date("1d", library.local_time()))).hits
    assert sorted(hit.date for hit in hits) == sorted(days[:2])


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
    found = memos(text.replace("\n", end))
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
    assert [(memo.title, memo.date, memo.tags, memo.text[memo.body :]) for memo in memos(text)] == [
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
    found = memos(text)
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
        parsed(data, name)


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "cp932", "euc_jp", "utf-16", "iso2022_jp"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_any_encoding_and_any_line_end_give_the_same_memos(codec: str, end: str) -> None:
    expected = memos(EMACS)
    assert len(expected) == 3
    assert parsed(EMACS.replace("\n", end).encode(codec), "ChangeLog") == expected


def test_a_markdown_file_is_one_memo_unless_it_is_a_changelog() -> None:
    (note,) = parsed(
        "---\ntitle: 設計\ndate: 2024-01-15\ntags: [a, b]\n---\n# 案\n\n* 初版 2024-01-10\n".encode(), "n.md"
    )
    assert isinstance(note, Text)
    assert (note.title, note.date, note.tags) == ("設計", "2024-01-15", ("a", "b"))
    assert all(isinstance(one, Memo) for one in parsed(b"# Notes\n\n* done 2024-01-10\n\n* more", "n.md"))
    assert [type(one) for one in parsed(b"Some text.\n\n* done 2024-01-10\n", "n.md")] == [Text]
    assert [memo.title for memo in parsed(SEED.encode(), "n.md") if isinstance(memo, Memo)] == ["Meeting Notes"]


# In a library


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
    [note] = parsed(text.encode(), name)
    assert isinstance(note, Text)
    assert note.date == day


@pytest.mark.parametrize("name", ["note.md", "note.txt"])
def test_a_note_with_a_damaged_character_is_kept_and_its_line_is_told(name: str) -> None:
    data = "# 題\n\n最初の行は無事な文です。\n二行目に".encode() + b"\xff" + "壊れた字がある。\n".encode()
    note, bad = parsed(data, name)
    assert isinstance(note, Text)
    assert "二行目に\ufffd壊れた字がある。" in note.text
    assert isinstance(bad, BadLine)
    assert bad.reason == "line 4 holds damaged characters; they are kept as \ufffd"


def test_memos_are_found_by_words_tag_and_date_with_the_lines_of_their_file(opened: Opener, tmp_path: Path) -> None:
    write(tmp_path / "notes" / "seed.txt", SEED)
    write(tmp_path / "notes" / "sub" / "days.txt", EMACS)
    library = opened()
    added(library, tmp_path / "notes")
    (hit,) = library.search("見積もる", where=Filter(tags=("予算",), since="2024-01-16")).hits
    (passage,) = library.passages([hit])
    assert (hit.title, hit.date, hit.tags) == ("会議", "2024-01-16", ("定例", "予算"))
    assert passage.citation == "sub/days.txt#2024-01-16-会議:L3-L5"
    assert "見積もる" in cited(tmp_path / "notes", passage.citation)
    assert library.verify_citation(passage.citation, passage.hash).status == "same"
    assert library.search("見積もる", where=Filter(until="2024-01-15")).hits == []
    (hit,) = library.search("budget").hits
    (full,) = library.passages([hit], "full")
    assert full.text == "Topics discussed:\n- Project timeline\n- Budget allocation"
    assert full.citation == "seed.txt#2024-01-15-Meeting-Notes:L4-L6"


def test_an_entry_that_moves_in_its_file_is_no_change_but_its_lines_follow(opened: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "memo.txt", f"{SEED}\n* 旅 2024-02-01\n  京都の寺。\n")
    library = opened()
    tool = added(library, memo)
    (before,) = library.passages(library.search("京都").hits)
    assert before.citation == "memo.txt#2024-02-01-旅:L9"
    generation = library.store.generation()
    write(memo, f"* 新しい 2024-03-01\n  話。\n* 旅 2024-02-01\n  京都の寺。\n\n{SEED}", after=10)
    report = library.reindex(tool="memos")
    assert (report.added, report.updated, report.deleted, report.unchanged, report.embedded) == (1, 0, 0, 2, 1)
    assert len(list(library.store.changes_since(tool.id, generation))) == 1
    for query, place in (("京都", "memo.txt#2024-02-01-旅:L4"), ("Budget", "memo.txt#2024-01-15-Meeting-Notes:L9-L11")):
        (hit,) = library.search(query).hits
        (passage,) = library.passages([hit])
        assert passage.citation == place
        assert (hit.chunk.first_line, hit.chunk.last_line) == (passage.first_line, passage.last_line)
        assert query in cited(memo, passage.citation)
    verdict = library.verify_citation(before.citation, before.hash)
    assert (verdict.status, verdict.citation) == ("moved", "memo.txt#2024-02-01-旅:L4")


def test_one_edit_among_five_thousand_entries_costs_one_entry(opened: Opener, tmp_path: Path) -> None:
    entries = [f"* memo {number} {2000 + number % 24}-01-15\n  本文 {number}\n" for number in range(5000)]
    memo = write(tmp_path / "memo.txt", "".join(entries))
    library = opened()
    tool = added(library, memo)
    assert library.store.totals(tool.id).documents == 5000
    generation = library.store.generation()
    entries[2500] = "* memo 2500 2004-01-15\n  改めた本文\n  と、もう一行\n"
    write(memo, "".join(entries), after=10)
    report = library.reindex(tool="memos")
    assert (report.added, report.updated, report.deleted, report.unchanged, report.embedded) == (0, 1, 0, 4999, 1)
    assert ["改めた" in chunk.text for chunk in library.store.changes_since(tool.id, generation)] == [True]
    assert library.passages(library.search("memo 4999").hits)[0].citation.endswith(":L10001")


def test_entries_of_one_title_and_date_keep_their_names_whatever_their_order(opened: Opener, tmp_path: Path) -> None:
    one, two, other = (
        "* 日記 2024-01-15\n  朝の話。\n",
        "* 日記 2024-01-15\n  夜の話。\n",
        "* 買い物 2024-01-15\n  卵。\n",
    )
    memo = write(tmp_path / "memo.txt", one + two + other)
    library = opened()
    tool = added(library, memo)
    names = set(library.store.fingerprints(tool.id))
    assert len(names) == 3
    write(memo, two + other + one, after=10)
    report = library.reindex(tool="memos")
    assert (report.added, report.updated, report.deleted, report.unchanged) == (0, 0, 0, 3)
    write(memo, two + other + one + one, after=20)
    report = library.reindex(tool="memos")
    assert (report.added, report.deleted, report.unchanged) == (1, 0, 3)
    write(memo, other + one, after=30)  # alone again, it has the plain name: it moved
    report = library.reindex(tool="memos")
    assert (report.added, report.moved, report.deleted, report.unchanged) == (0, 1, 2, 1)
    assert set(library.store.fingerprints(tool.id)) == {"memo.txt#2024-01-15-日記", "memo.txt#2024-01-15-買い物"}


def test_a_change_of_tags_alone_is_a_change_that_needs_no_embedding(opened: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "memo.txt", SEED)
    library = opened()
    added(library, memo)
    write(memo, SEED.replace("january", "budget"), after=10)
    report = library.reindex(tool="memos")
    assert (report.updated, report.embedded) == (1, 0)
    assert library.tags() == [("budget", 1), ("meeting", 1)]


def test_a_search_sees_what_was_just_written_and_keeps_what_has_vanished(opened: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "memo.txt", SEED)
    library = opened()
    added(library, memo)
    memo.write_text(f"{SEED}\n* 旅 2024-02-01\n  京都の寺。\n", encoding="utf-8")
    assert [hit.title for hit in library.search("京都").hits] == ["旅"]
    memo.unlink()
    answer = library.search("京都")
    assert [hit.title for hit in answer.hits] == ["旅"]
    assert any("is missing or empty" in notice for notice in answer.notices)
    with pytest.raises(SourceError, match="is missing or empty"):
        library.reindex(tool="memos")


def test_a_deleted_file_takes_its_entries_along_and_a_renamed_one_keeps_their_vectors(
    opened: Opener, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    write(notes / "a.txt", SEED)
    write(notes / "b.txt", EMACS)
    library = opened()
    added(library, notes)
    (notes / "b.txt").rename(notes / "c.txt")
    report = library.reindex(tool="memos")
    assert (report.added, report.moved, report.deleted, report.embedded) == (0, 3, 0, 0)
    (notes / "c.txt").unlink()
    report = library.reindex(tool="memos")
    assert (report.deleted, report.unchanged) == (3, 1)


def test_a_file_that_is_no_text_is_a_problem_that_is_remembered(opened: Opener, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    write(notes / "a.txt", SEED)
    write(notes / "b.txt", b"\x00\x01\x02\x03" * 100)
    library = opened()
    tool = added(library, notes)
    report = library.reindex(tool="memos")
    assert (report.unchanged, [problem.uri for problem in report.problems]) == (1, ["b.txt"])
    write(notes / "b.txt", EMACS, after=10)
    report = library.reindex(tool="memos")
    assert (report.added, report.problems) == (3, [])
    assert library.store.totals(tool.id).documents == 4


def test_a_long_memo_is_cut_and_each_part_knows_its_lines(opened: Opener, tmp_path: Path) -> None:
    lines = [f"第{number}行は、検索の方法について述べている長い文である。" for number in range(300)]
    memo = write(
        tmp_path / "memo.txt",
        "* 短い 2024-01-01\n  話。\n* 長い 2024-01-15\n" + "".join(f"  {line}\n" for line in lines),
    )
    library = opened()
    added(library, memo)
    hits = library.search("検索の方法", top_k=20).hits
    assert len(hits) > 1
    for hit in hits:
        assert len(hit.chunk.text) <= 3000
        place = cited(memo, f"memo.txt:L{hit.chunk.first_line}-L{hit.chunk.last_line}")
        assert [line.strip() for line in hit.chunk.text.split("\n")] == [line.strip() for line in place.split("\n")]


def test_a_rebuild_gives_the_same_entries_on_the_same_lines(opened: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "memo.txt", EMACS + "\n" + SEED)
    library = opened()
    tool = added(library, memo)
    before = sorted((chunk.text, chunk.tiebreak_order) for chunk in library.store.changes_since(tool.id, 0))
    report = library.import_tools(["memos"], "replace")
    assert (report.added, report.updated, report.deleted) == (0, 4, 0)
    assert sorted((chunk.text, chunk.tiebreak_order) for chunk in library.store.changes_since(tool.id, 0)) == before
    (passage,) = library.passages(library.search("Budget").hits)
    assert "Budget" in cited(memo, passage.citation)


def test_the_newest_memos_come_first_and_those_without_a_date_last(opened: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "memo.txt", f"前書き\n{SEED}\n{EMACS}")
    library = opened()
    added(library, memo)
    assert [(one.date, one.title) for _, one in library.recent_documents(limit=10)] == [
        ("2024-01-16", "src/main.c (open)"),
        ("2024-01-16", "会議"),
        ("2024-01-15", "Meeting Notes"),
        ("2024-01-15", "買い物"),
        ("", ""),
    ]
    assert len(library.recent_documents("memos", limit=2)) == 2
    assert library.tags("memos") == [("january", 1), ("meeting", 1), ("予算", 1), ("定例", 1)]


def test_an_assistant_finds_verifies_and_reads_a_memo(opened: Opener, tmp_path: Path) -> None:
    memo = write(tmp_path / "a # b.txt", EMACS)
    library = opened()
    added(library, memo)
    assert library.reindex(tool="memos").unchanged == 3
    desk = ToolRegistry(lambda: library)

    async def talk() -> tuple[dict[str, Any], dict[str, Any], list[str]]:
        async with Client(BunkoServer(desk), cache=None) as client:
            found = await client.call_tool("memos", {"query": "見積もる"})
            assert found.structured_content is not None
            (hit,) = found.structured_content["results"]
            cited = {"citation": hit["citation"], "hash": hit["hash"]}
            verdict = (await client.call_tool("verify", cited)).structured_content
            assert verdict is not None
            texts = []
            for one in (await client.list_resources()).resources:
                (content,) = (await client.read_resource(one.uri)).contents
                assert isinstance(content, TextResourceContents)
                texts.append(content.text)
            return hit, verdict, texts

    hit, verdict, texts = anyio.run(talk)
    assert hit["citation"] == "a # b.txt#2024-01-16-会議:L3-L5"
    assert (hit["line_start"], hit["line_end"]) == (3, 5)
    assert verdict["status"] == "same"
    assert sorted(texts) == sorted(one.text for one in memos(EMACS))
