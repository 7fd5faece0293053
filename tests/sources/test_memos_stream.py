"""Large memo files, which are read in blocks, and scans that keep little text."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from io import BytesIO
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunko.errors import SourceError
from bunko.library import memos
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.readers import line_stream as reading
from bunko.readers.memo import BadLine, Memo
from bunko.runtime.observer import Observer
from bunko.sources import entries
from bunko.sources import memos as source
from bunko.types import ExcerptEntry
from tests.sources.memo_files import Opener, write


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of a few hundred bytes be read as large ones are, and keep next to nothing of their texts."""
    monkeypatch.setattr(reading, "MAX_READ_BYTES", 64)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 7)
    monkeypatch.setattr("bunko.sources.folder.MAX_READ_BYTES", 64)
    monkeypatch.setattr(entries, "TEXT_BUDGET_CHARS", 40)


def changelog(number: int, *, says: Callable[[int], str] = lambda at: f"項目{at}の話。") -> str:
    return "".join(
        f"* 題{at} 2024-01-{at % 28 + 1:02d}\n  Tags: 偶{at % 2}\n\n  {says(at)}\n\n" for at in range(number)
    )


def jsonl(number: int) -> str:
    return "".join(
        json.dumps({"title": f"題{at}", "text": f"項目{at}の話。"}, ensure_ascii=False) + "\n" for at in range(number)
    )


def stored_memos(library: Library) -> dict[str, tuple[str, str, int, int]]:
    """Return every memo with its text, its hash and its lines."""
    [tool] = library.tools()
    found = {}
    for uri in library.store.documents.uris(tool.id, limit=1000):
        one = library.store.documents.get(tool.id, uri)
        assert one is not None
        found[uri] = (one.text, one.content_hash, one.lines.first, one.lines.last)
    return found


@pytest.mark.parametrize(
    "name",
    [
        *("ChangeLog", "changelog", "CHANGELOG", "ChangeLog.1", "ChangeLog.2", "ChangeLog-2019", "ChangeLog.old"),
        *("ChangeLog-old", "ChangeLog.2.old", "ChangeLog-2019-2021", "ChangeLog.2019-05-01", "ChangeLog_2019q1"),
        *(
            "ChangeLog.ja",
            "ChangeLog.tree-ssa",
            "change_log.1",
            "clmemo",
            "clmemo.old",
            "日記",
            "日記.2019",
            "memo.old",
        ),
    ],
)
def test_a_file_of_memos_needs_no_ending_in_a_folder(open_memos: Opener, tmp_path: Path, name: str) -> None:
    write(tmp_path / "notes" / name, changelog(2))
    write(tmp_path / "notes" / "Makefile", "all:\n\ttrue\n")
    write(tmp_path / "notes" / "ChangeLog.png", b"\x89PNG\0")
    library = open_memos()
    report = memos.import_memos(library, tmp_path / "notes", vectors=False)
    assert (report.added, report.problems) == (2, [])
    assert sorted(stored_memos(library)) == [f"{name}#2024-01-01-題0", f"{name}#2024-01-02-題1"]
    assert memos.import_memos(library, tmp_path / "notes", vectors=False).unchanged == 2
    (tmp_path / "notes" / name).unlink()
    write(tmp_path / "notes" / "other.txt", changelog(1))
    assert memos.import_memos(library, tmp_path / "notes", vectors=False).deleted == 1


@pytest.mark.parametrize("name", ["ChangeLog.1.gz", "ChangeLog.xz", "changelog.zip", "ChangeLog.2"])
def test_a_changelog_that_cannot_be_read_is_reported(open_memos: Opener, tmp_path: Path, name: str) -> None:
    write(tmp_path / "notes" / name, b"\x1f\x8b\x08\x00\x01\x02" * 20)
    write(tmp_path / "notes" / "ChangeLog", changelog(1))
    report = memos.import_memos(open_memos(), tmp_path / "notes", vectors=False)
    assert (report.added, [problem.uri for problem in report.problems]) == (1, [name])
    assert ("compressed" in report.problems[0].reason) == (name != "ChangeLog.2")


@pytest.mark.parametrize(
    "name", ["changelog.py", "ChangeLog.png", "ChangeLog~", "ChangeLog.bak", "memo.pdf", "changes"]
)
def test_programs_pictures_and_backups_are_no_memos_though_their_names_begin_so(
    open_memos: Opener, tmp_path: Path, name: str
) -> None:
    write(tmp_path / "notes" / name, changelog(2))
    write(tmp_path / "notes" / "ChangeLog", changelog(1))
    report = memos.import_memos(open_memos(), tmp_path / "notes", vectors=False)
    assert (report.added, report.problems) == (1, [])


def test_a_file_of_entries_may_be_larger_than_one_document(open_memos: Opener, tmp_path: Path) -> None:
    write(tmp_path / "notes" / "many.txt", changelog(40))
    write(tmp_path / "notes" / "many.jsonl", jsonl(40))
    write(tmp_path / "notes" / "one.txt", "話が続く。\n" * 60)
    report = memos.import_memos(open_memos(BUNKO_SCANNER_MAX_FILE_BYTES="500"), tmp_path / "notes", vectors=False)
    assert report.added == 80
    [problem] = report.problems
    assert problem.uri == "one.txt"
    assert "no dated entries" in problem.reason
    assert "scanner.max_file_bytes" in problem.reason


def test_a_file_beyond_its_limit_is_told_of_with_the_setting_that_raises_it(open_memos: Opener, tmp_path: Path) -> None:
    write(tmp_path / "notes" / "many.txt", changelog(40))
    write(tmp_path / "notes" / "few.txt", changelog(1))
    report = memos.import_memos(open_memos(BUNKO_MEMOS_MAX_FILE_BYTES="500"), tmp_path / "notes", vectors=False)
    assert report.added == 1
    assert ["raise memos.max_file_bytes" in problem.reason for problem in report.problems] == [True]


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "cp932", "euc_jp", "utf-16", "utf-16-le", "iso2022_jp"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.usefixtures("small_blocks")
def test_a_file_read_in_blocks_has_the_lines_of_one_read_at_once(codec: str, end: str) -> None:
    text = changelog(12)
    data = text.replace("\n", end).encode(codec)
    read = reading.read_lines(BytesIO(data), len(data), 1000)
    assert list(read.lines) == text.split("\n")
    assert (read.codec, read.is_damaged) == (codec, False)


@pytest.mark.usefixtures("small_blocks")
def test_an_encoding_that_shows_late_is_still_recognised() -> None:
    data = ("An English beginning.\n" * 20 + "そして日本語の話が続く。\n" * 20).encode("cp932")
    read = reading.read_lines(BytesIO(data), len(data), 1000)
    assert list(read.lines)[20] == "そして日本語の話が続く。"
    assert (read.codec, read.is_damaged) == ("cp932", False)


@pytest.mark.parametrize("name", ["ChangeLog", "log.jsonl"])
@pytest.mark.parametrize("rubbish", [b"\xff\xfe\xff", b"\0\0", b"\xe3\x81"])
@pytest.mark.parametrize("blocks", [4_000_000, 2000])
def test_a_few_damaged_bytes_cost_no_other_entry(
    open_memos: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, rubbish: bytes, blocks: int
) -> None:
    monkeypatch.setattr(reading, "MAX_READ_BYTES", blocks)
    monkeypatch.setattr("bunko.sources.folder.MAX_READ_BYTES", blocks)
    data = (jsonl if name.endswith("jsonl") else changelog)(60).encode()
    at = data.index("項目33".encode()) + 6
    path = write(tmp_path / name, data[:at] + rubbish + data[at:])
    library = open_memos()
    report = memos.import_memos(library, path, vectors=False)
    assert report.added == 60
    assert [problem.reason for problem in report.problems] == [
        f"line {data[:at].count(10) + 1} holds damaged characters, which are replaced with \ufffd"
    ]
    assert memos.import_memos(library, path, vectors=False).unchanged == 60


@pytest.mark.parametrize("blocks", [4_000_000, 500])
@pytest.mark.parametrize(("codec", "rubbish"), [("utf-8-sig", b"\xff"), ("utf-16", b"\0\xd8")])
def test_a_damaged_file_that_begins_with_a_mark_keeps_its_first_entry(
    monkeypatch: pytest.MonkeyPatch, codec: str, rubbish: bytes, blocks: int
) -> None:
    monkeypatch.setattr(reading, "MAX_READ_BYTES", blocks)
    data = changelog(60).encode(codec)
    for broken in (data[:400] + rubbish + data[400:], data + rubbish[:1]):
        found = list(source.parse(BytesIO(broken), "memo.txt", len(broken), 1000).items)
        titles = {one.title for one in found if isinstance(one, Memo)}
        assert {"題0", "題1", "題58", "題59"} <= titles
        assert len(titles) >= 59


def test_damage_after_a_long_english_beginning_does_not_hide_the_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_READ_BYTES", 1000)
    data = b"* Plain words 2020-01-01\n  They stand here.\n" * 50 + changelog(30).encode("cp932") + b"\x81"
    read = reading.read_lines(BytesIO(data), len(data), 1000)
    assert (read.codec, read.is_damaged) == ("cp932", True)
    assert "* 題29 2024-01-02" in list(read.lines)


# What a file is made of: headings of all kinds, bodies, JSON, and characters of one to four bytes.
_PIECES = st.sampled_from(
    [
        "* 題 2024-01-15",
        "2024-01-15  太郎  <t@example.com>",
        "\t* 項目 [定例]: 本文。",
        "  Tags: 会議, a",
        "  ソ能表十。",
        "",
        "# 見出し",
        "  😀 \u3000x\u2028y",
        '{"title": "題", "text": "あ"}',
        "{bad",
        "\x0c",
    ]
) | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(
    pieces=st.lists(st.tuples(_PIECES, st.sampled_from(["\n", "\r\n", "\r"])), max_size=25),
    codec=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp932", "euc_jp", "iso2022_jp"]),
    name=st.sampled_from(["memo.txt", "memo.md", "memo.jsonl"]),
    block=st.integers(1, 9),
)
def test_blocks_of_any_size_give_the_entries_of_the_whole_text(
    pieces: list[tuple[str, str]], codec: str, name: str, block: int
) -> None:
    begin = "* 始まりの項目 2024-01-01\n  文字コードを見分けるのに十分な日本語の文章が、ここに書かれています。\n"
    data = (begin + "".join(chain.from_iterable(pieces))).encode(codec, "ignore")
    whole = source.parse(BytesIO(data), name, len(data), 10_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "MAX_READ_BYTES", len(data) - 1)
        patch.setattr(reading, "BLOCK_BYTES", block)
        blocks = source.parse(BytesIO(data), name, len(data), 10_000)
        assert (blocks.encoding, list(blocks.items)) == (whole.encoding, list(whole.items))


@pytest.mark.parametrize("blocks", [4_000_000, 500])
def test_what_is_no_text_at_all_is_refused(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    monkeypatch.setattr(reading, "MAX_READ_BYTES", blocks)
    anything = random.Random(1).randbytes(5000)
    for data in (bytes(range(256)) * 20, b"\x89PNG\0\0\0\r" * 200, b"\xff\xfe" + anything):
        with pytest.raises(SourceError):
            reading.read_lines(BytesIO(data), len(data), 1000)


@pytest.mark.usefixtures("small_blocks")
def test_an_entry_that_is_too_long_is_told_of_and_the_others_are_kept() -> None:
    text = changelog(3, says=lambda at: "長い話。" * (500 if at == 1 else 1))
    found = list(source.parse(BytesIO(text.encode()), "memo.txt", len(text.encode()), 200).items)
    assert [one.title if isinstance(one, Memo) else one.line for one in found if isinstance(one, Memo | BadLine)] == [
        "題0", 6, "題2",
    ]  # fmt: skip
    rows = [json.dumps({"text": "話" * size}, ensure_ascii=False) for size in (3, 500, 4)]
    data = "\n".join(rows).encode()
    parsed = list(source.parse(BytesIO(data), "memo.jsonl", len(data), 200).items)
    assert [one.reason if isinstance(one, BadLine) else "" for one in parsed if isinstance(one, Memo | BadLine)] == [
        "", "line 2 has more than 200 characters, the limit for an entry", "",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [("memo.txt", changelog(30)), ("memo.jsonl", jsonl(30))])
def test_texts_that_a_scan_left_out_come_to_the_same_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    write(tmp_path / name, text)
    found = []
    for kept in (10**9, 60):
        monkeypatch.setattr(entries, "TEXT_BUDGET_CHARS", kept)
        environ = {"BUNKO_LIBRARY_PATH": str(tmp_path / f"library{kept}"), "XDG_CONFIG_HOME": str(tmp_path)}
        with open_library(
            locate_library(library=tmp_path / f"library{kept}", environ=environ), environ=environ
        ) as library:
            assert memos.import_memos(library, tmp_path / name, vectors=False).added == 30
            found.append(stored_memos(library))
            assert memos.import_memos(library, tmp_path / name, vectors=False).unchanged == 30
    assert len(found[0]) == 30
    assert found[0] == found[1]


@pytest.mark.usefixtures("small_blocks")
def test_an_import_takes_what_is_new_at_the_end_of_a_file_and_what_changed_at_its_beginning(
    open_memos: Opener, tmp_path: Path
) -> None:
    path = write(tmp_path / "memo.txt", changelog(20))
    library = open_memos()
    memos.import_memos(library, path, vectors=False)
    write(path, changelog(24).replace("項目3の話", "項目3の新しい話").replace("項目9の話", "項目9の新しい話"), after=10)
    report = memos.import_memos(library, path, vectors=False)
    assert (report.added, report.updated, report.unchanged, report.problems) == (4, 2, 18, [])
    assert sum("新しい" in text for text, *_ in stored_memos(library).values()) == 2
    assert len(stored_memos(library)) == 24


@pytest.mark.usefixtures("small_blocks")
def test_what_changes_between_looking_and_reading_again_is_taken_by_the_next_import(
    open_memos: Opener, tmp_path: Path
) -> None:
    path = write(tmp_path / "memo.txt", changelog(20))
    library = open_memos()
    memos.import_memos(library, path, vectors=False)
    write(path, changelog(20, says=lambda at: f"二度目の{at}。"), after=10)
    changed: list[int] = []

    def meanwhile(_: object) -> None:
        if not changed:
            changed.append(1)
            write(path, changelog(20, says=lambda at: f"三度目の話の{at}。"), after=20)

    report = memos.import_memos(library, path, vectors=False, observer=Observer(on_progress=meanwhile))
    assert report.problems
    assert all("changed during the import" in problem.reason for problem in report.problems)
    assert len(stored_memos(library)) == 20
    assert memos.import_memos(library, path, vectors=False).problems == []
    assert all("三度目" in text for text, *_ in stored_memos(library).values())


@pytest.mark.usefixtures("small_blocks")
def test_a_scan_holds_no_more_text_than_it_may(tmp_path: Path) -> None:
    from bunko import sources

    write(tmp_path / "memo.txt", changelog(50))
    made = sources.build("memos", tmp_path, extensions=(), exclude_dirs=(), max_file_bytes=10_000)
    scan = made.scan({})
    assert len(scan.added) == 50
    held = [one for one in scan.added if isinstance(one, ExcerptEntry) and one.text is not None]
    assert sum(one.work_size for one in held) <= 40
    texts = [one.text.text for one in scan.load_texts(scan.added) if isinstance(one, ExcerptEntry) and one.text]
    assert [text.splitlines()[-1] for text in texts] == [f"項目{at}の話。" for at in range(50)]


def test_a_memo_is_known_by_a_hash_of_what_it_says(open_memos: Opener, tmp_path: Path) -> None:
    path = write(tmp_path / "memo.txt", "* 題 2024-01-15\n  Tags: a\n\n  本文。\n")
    library = open_memos()
    memos.import_memos(library, path, vectors=False)
    [(text, digest, first, last)] = stored_memos(library).values()
    assert digest == hashlib.sha256("\0".join(("題", "2024-01-15", "a", text)).encode()).hexdigest()
    assert (first, last) == (1, 4)
    write(path, "\n\n* 題 2024-01-15\n  Tags: a\n\n  本文。\n\n\n", after=10)
    assert memos.import_memos(library, path, vectors=False).unchanged == 1
    assert next(iter(stored_memos(library).values()))[1:] == (digest, 3, 6)


def test_fields_that_nobody_knows_are_kept_with_the_entry(open_memos: Opener, tmp_path: Path) -> None:
    row = {"title": "旅", "text": "庭を見た。", "mood": "good", "where": {"city": "京都", "lat": 35.0}, "n": None}
    path = write(tmp_path / "log.jsonl", json.dumps(row, ensure_ascii=False) + "\n")
    library = open_memos()
    memos.import_memos(library, path, vectors=False)
    hits = library.search("庭", mode="bm25").hits
    assert hits[0].chunk.text == "庭を見た。"
    [entry] = library.passages(hits, "entry")
    assert entry.text == 'mood: good\nwhere: {"city": "京都", "lat": 35.0}\nn: null\n\n庭を見た。'
    [full] = library.passages(hits, "full")
    assert full.text == "庭を見た。"
    write(path, json.dumps(row | {"mood": "fine"}, ensure_ascii=False) + "\n", after=10)
    assert memos.import_memos(library, path, vectors=False).updated == 1


def test_a_date_that_is_none_is_kept_too(open_memos: Opener, tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", '{"text": "庭を見た。", "date": "someday"}\n')
    library = open_memos()
    memos.import_memos(library, path, vectors=False)
    [hit] = library.search("庭", mode="bm25").hits
    assert (hit.date, library.passages([hit], "entry")[0].text) == ("", "date: someday\n\n庭を見た。")


@pytest.mark.parametrize("codec", ["cp932", "euc_jp", "utf-16"])
def test_memos_in_older_encodings_are_found(open_memos: Opener, tmp_path: Path, codec: str) -> None:
    write(tmp_path / "notes" / "ChangeLog", changelog(3).encode(codec))
    write(tmp_path / "notes" / "log.jsonl", jsonl(3).encode(codec))
    write(tmp_path / "notes" / "note.md", "---\ntitle: 設計\ntags: [方針]\n---\n検索の設計。\n".encode(codec))
    library = open_memos()
    assert memos.import_memos(library, tmp_path / "notes", vectors=False).added == 7
    assert library.search("検索の設計", mode="bm25").hits[0].tags == ("方針",)
