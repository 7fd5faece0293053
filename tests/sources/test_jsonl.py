"""What JSON lines become: one entry each, on the line it stands on, and a problem where a line is none."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.library.library import Library
from bunko.readers import jsonl
from bunko.readers.memo import BadLine, Memo, collapse_line_ends
from bunko.sources.jsonl import parse
from bunko.types import Tool
from bunko.types.records import Filter
from tests.sources.memo_files import Opener, write

NOTES: list[dict[str, object]] = [
    {"title": "旅の記録", "date": "2024-03-01", "tags": ["旅行", "京都"], "text": "寺を訪ねた。\n\n庭が美しい。"},
    {"title": "Meeting", "date": "2024/1/5", "tags": "work, Budget", "text": "We agreed on the budget.", "by": "Ann"},
]


def lines(*notes: object) -> str:
    return "".join(json.dumps(note, ensure_ascii=False) + "\n" for note in notes)


def added(library: Library, source: Path) -> Tool:
    tool = library.tools.add("notes", "Notes", source, kind="jsonl")
    library.import_tools(["notes"])
    return tool


def memos(text: str) -> tuple[list[Memo], list[BadLine]]:
    """Return the entries of some lines, and the lines that are none."""
    found = list(jsonl.memos(collapse_line_ends(text).split("\n")))
    return [one for one in found if isinstance(one, Memo)], [one for one in found if isinstance(one, BadLine)]


def test_a_line_has_its_title_its_date_its_tags_and_its_text() -> None:
    good, bad = memos(lines(*NOTES))
    assert bad == []
    assert [(memo.first_line, memo.title, memo.date, memo.tags, memo.text[memo.body :]) for memo in good] == [
        (1, "旅の記録", "2024-03-01", ("旅行", "京都"), "寺を訪ねた。\n\n庭が美しい。"),
        (2, "Meeting", "2024-01-05", ("work", "budget"), "We agreed on the budget."),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"title": "x"', "line 2 is not JSON: expecting"),
        ("plain words", "line 2 is not JSON: expecting value"),
        ('["a list"]', "line 2 is not an object"),
        ('"a string"', "line 2 is not an object"),
        ('{"date": "2024-01-15", "tags": ["x"]}', "line 2 has neither a text nor a title"),
        ('{"text": {"deep": 1}, "title": null}', "line 2 has neither a text nor a title"),
        ("[" * 100_000, "line 2 is nested too deeply"),
    ],
)
def test_a_bad_line_is_named_by_its_number_and_the_others_are_kept(line: str, reason: str) -> None:
    good, bad = memos(f"{lines(NOTES[0])}{line}\n\n{lines(NOTES[1])}")
    assert [memo.first_line for memo in good] == [1, 4]
    assert [one.line for one in bad] == [2]
    assert bad[0].reason.startswith(reason)


@pytest.mark.parametrize(
    ("record", "title", "date", "tags", "text"),
    [
        (
            {"id": "1", "metadata": {"title": "散歩", "date": "2024-03-05", "tags": ["旅行", "京都"]}, "text": "庭。"},
            "散歩", "2024-03-05", ("旅行", "京都"), "庭。",
        ),
        (
            {"metadata": {"title": "散歩", "date": "2024-03-05T09:00:00Z", "tags": "旅行, 京都"}, "content": "庭。"},
            "散歩", "2024-03-05T09:00:00+00:00", ("旅行", "京都"), "庭。",
        ),
        ({"title": "外", "metadata": {"title": "内", "tags": ["a"]}, "text": "庭。"}, "外", "", ("a",), "庭。"),
        ({"title": "", "tags": [], "metadata": {"title": "内", "tags": "a"}, "text": "庭。"}, "内", "", ("a",), "庭。"),
        ({"metadata": {"title": "題だけ"}}, "題だけ", "", (), "題だけ"),
        ({"metadata": "memo", "text": "庭。"}, "", "", (), "庭。"),
        ({"metadata": None, "text": "庭。"}, "", "", (), "庭。"),
        ({"page_content": "庭。", "metadata": {"source": "a.pdf", "page": 3}}, "", "", (), "庭。"),
    ],
)  # fmt: skip
def test_title_date_and_tags_may_be_in_an_object_of_metadata(
    record: dict[str, object], title: str, date: str, tags: tuple[str, ...], text: str
) -> None:
    (memo,), bad = memos(lines(record))
    assert bad == []
    assert (memo.title, memo.date, memo.tags, memo.text[memo.body :]) == (title, date, tags, text)


def test_metadata_that_memos_do_not_have_is_returned_with_the_entry() -> None:
    record = {"title": "外", "metadata": {"title": "内", "date": "2024-03-05", "source": "a.pdf"}, "text": "庭。"}
    (memo,), _ = memos(lines(record))
    assert memo.text == 'metadata: {"title": "内", "source": "a.pdf"}\n\n庭。'


def test_comments_and_blank_lines_are_skipped() -> None:
    good, bad = memos(f"# 書き出し 2024-03-05\n\n{lines(NOTES[0])}  # 途中\n#\n{lines(NOTES[1])}")
    assert bad == []
    assert [(memo.first_line, memo.title) for memo in good] == [(3, "旅の記録"), (6, "Meeting")]


@pytest.mark.parametrize("record", [{"date": "2025-13-45"}, {"metadata": {"date": "2025-13-45"}}])
def test_a_date_that_cannot_be_read_is_reported_and_its_entry_is_kept(record: dict[str, object]) -> None:
    good, bad = memos(lines(NOTES[0], {"title": "庭", "text": "苔が美しい。", **record}, NOTES[1]))
    assert [(memo.title, memo.date) for memo in good] == [
        ("旅の記録", "2024-03-01"),
        ("庭", ""),
        ("Meeting", "2024-01-05"),
    ]
    assert "2025-13-45" in good[1].text
    assert [(one.line, one.reason) for one in bad] == [
        (2, "line 2 has the date 2025-13-45, which cannot be read: its entry is indexed without a date")
    ]


def test_a_file_of_another_kind_is_not_reported_line_by_line() -> None:
    data = b"words\n" * 5000
    bad = [one for one in parse(BytesIO(data), "n.jsonl", len(data), 1000).items if isinstance(one, BadLine)]
    assert len(bad) == 100
    assert "4900 more lines" in bad[-1].reason


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "cp932", "euc_jp", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_any_encoding_and_any_line_end_give_the_same_entries(codec: str, end: str) -> None:
    data = lines(*NOTES).replace("\n", end).encode(codec)
    good, bad = memos(lines(*NOTES))
    assert list(parse(BytesIO(data), "n.jsonl", len(data), 1000).items) == [*good, *bad]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(
    notes=st.lists(
        st.fixed_dictionaries({"text": TEXTS}, optional={"title": TEXTS, "tags": st.lists(TEXTS)}), max_size=5
    )
)
def test_every_text_is_read_back_on_its_line(notes: list[dict[str, object]]) -> None:
    good, bad = memos("".join(json.dumps(note) + "\n" for note in notes))
    assert bad == []
    assert [(memo.first_line, memo.text) for memo in good] == [
        (number, str(note["text"]).replace("\r\n", "\n").replace("\r", "\n")) for number, note in enumerate(notes, 1)
    ]


@given(text=st.text() | st.lists(st.sampled_from(['{"text": "あ"}', "{}", "[", '"', "", " ", "\r"])).map("\n".join))
def test_every_line_is_an_entry_or_reported(text: str) -> None:
    good, bad = memos(text)
    told = {memo.first_line for memo in good} | {one.line for one in bad}
    real = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert told == {number for number, line in enumerate(real, 1) if line.strip() and line.strip()[0] != "#"}


def test_entries_are_found_by_tag_and_date_and_cited_by_their_one_line(open_memos: Opener, tmp_path: Path) -> None:
    source = write(tmp_path / "notes.jsonl", lines({"text": "何か"}, *NOTES))
    library = open_memos()
    added(library, source)
    (hit,) = library.search("庭", where=Filter(tags=("京都",), since="2024-02")).hits
    (passage,) = library.passages([hit])
    assert passage.citation == "notes.jsonl#2024-03-01-旅の記録:L2"
    assert passage.text == "寺を訪ねた。\n\n庭が美しい。"
    assert library.verify_citation(passage.citation, passage.hash).status == "same"
    write(source, lines(*NOTES), after=10)
    verdict = library.verify_citation(passage.citation, passage.hash)
    assert (verdict.status, verdict.citation) == ("moved", "notes.jsonl#2024-03-01-旅の記録:L1")
    write(source, lines(NOTES[1], NOTES[0] | {"text": "寺を訪ねた。"}), after=20)
    assert library.verify_citation(passage.citation, passage.hash).status == "changed"


def test_a_part_of_a_long_entry_is_verified_by_its_line_too(open_memos: Opener, tmp_path: Path) -> None:
    text = "\n\n".join(f"第{number}段落では、検索の方法について長く述べている。" for number in range(300))
    source = write(tmp_path / "notes.jsonl", lines(NOTES[0], {"title": "長い", "text": text}))
    library = open_memos()
    added(library, source)
    hits = library.search("検索の方法", top_k=10).hits
    assert len(hits) > 1
    for hit in hits:
        (passage,) = library.passages([hit])
        assert passage.citation == "notes.jsonl#長い:L2"
        assert library.verify_citation(passage.citation, passage.hash).status == "same"


def test_a_bad_line_is_reported_at_every_import_until_it_is_right(open_memos: Opener, tmp_path: Path) -> None:
    source = write(tmp_path / "notes.jsonl", lines(NOTES[0]) + "{oops\n")
    library = open_memos()
    tool = added(library, source)
    report = library.reindex(tool="notes")
    assert (report.unchanged, [problem.uri for problem in report.problems]) == (1, ["notes.jsonl#L2"])
    write(source, lines(*NOTES), after=10)
    report = library.reindex(tool="notes")
    assert (report.added, report.deleted, report.unchanged, report.problems) == (1, 0, 1, [])
    assert library.store.stats.totals(tool.id).documents == 2


def test_an_entry_with_an_id_keeps_its_name_when_all_else_changes(open_memos: Opener, tmp_path: Path) -> None:
    source = write(tmp_path / "notes.jsonl", lines({"id": 7, "title": "a", "text": "甲"}, {"id": "x/y", "text": "乙"}))
    library = open_memos()
    tool = added(library, source)
    assert set(library.store.documents.fingerprints(tool.id)) == {"notes.jsonl#7", "notes.jsonl#x-y"}
    write(
        source,
        lines({"id": "x/y", "text": "乙"}, {"id": 7, "title": "b", "date": "2024-01-15", "text": "丙"}),
        after=10,
    )
    report = library.reindex(tool="notes")
    assert (report.added, report.updated, report.deleted, report.unchanged) == (0, 1, 0, 1)


def test_lines_that_say_the_same_are_entries_of_their_own(open_memos: Opener, tmp_path: Path) -> None:
    source = write(tmp_path / "notes.jsonl", lines(*[{"text": "同じ"}] * 300, {"title": "L2", "text": "他"}, [1]))
    library = open_memos()
    tool = added(library, source)
    assert library.store.stats.totals(tool.id).documents == 301
    write(source, lines([1], *[{"text": "同じ"}] * 299, {"title": "L2", "text": "他"}), after=10)
    report = library.reindex(tool="notes")
    assert (report.added, report.updated, report.deleted, report.unchanged) == (0, 0, 1, 300)


def test_only_json_lines_are_taken_from_a_folder(open_memos: Opener, tmp_path: Path) -> None:
    write(tmp_path / "notes" / "a.jsonl", lines(NOTES[0]))
    write(tmp_path / "notes" / "deep" / "b.ndjson", lines(NOTES[1]))
    write(tmp_path / "notes" / "c.md", "# not one of them")
    library = open_memos()
    tool = added(library, tmp_path / "notes")
    assert library.store.documents.uris(tool.id) == ["a.jsonl#2024-03-01-旅の記録", "deep/b.ndjson#2024-01-05-Meeting"]


def test_half_a_character_in_escapes_can_be_stored(open_memos: Opener, tmp_path: Path) -> None:
    source = write(tmp_path / "notes.jsonl", '{"title": "\\ud83d", "text": "京都 \\ud83d \\ud83d\\ude00"}\n')
    library = open_memos()
    added(library, source)
    (hit,) = library.search("京都").hits
    assert hit.chunk.text == "京都 \ufffd 😀"
