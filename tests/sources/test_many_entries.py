"""Files of many entries: what a scan keeps of each, and imports that end before the last of them."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from bunko import sources
from bunko.library import memos
from bunko.protocols import Scan
from bunko.runtime.observer import ImportProgress, Observer
from bunko.sources import entries
from bunko.types import ExcerptEntry, Fingerprint, LineSpan, SourceEntry, Text
from bunko.types.entry_table import EntryTable
from tests.sources.memo_files import Opener, write

COUNT = 250  # more than two transactions


def jsonl(count: int, say: str = "話") -> str:
    return "".join(
        json.dumps({"title": f"第{number}回の会議", "text": f"項目{number}の{say}。"}, ensure_ascii=False) + "\n"
        for number in range(count)
    )


def scan(path: Path, fingerprints: dict[str, Fingerprint] | None = None) -> Scan:
    source = sources.build("memos", path, extensions=(), exclude_dirs=(), max_file_bytes=10_000_000)
    return source.scan(fingerprints or {})


def test_a_table_returns_the_entries_that_it_was_given() -> None:
    digest = "0f" * 32
    given = [
        ExcerptEntry(
            "memo.jsonl#会議", 10, 20, 0, digest, Text("何か", "text/plain", "utf-8"), length=2, lines=LineSpan(3, 3)
        ),
        ExcerptEntry("memo.jsonl#\ud800", 10, 20, 5, digest, lines=LineSpan(4, 9)),
        ExcerptEntry("memo.jsonl#L5", 10, 20, 5, digest, problem="no text"),
        SourceEntry("a.md", 7, 2**62, 2**62 + 1),
        ExcerptEntry("other.jsonl", 11, 21, 0, digest),
    ]
    table = EntryTable[SourceEntry]()
    for entry in given:
        table.append(entry)
    assert (len(table), list(table), table[1:3], table[-1]) == (5, given, given[1:3], given[-1])
    assert table == given
    assert table != given[:4]
    with pytest.raises(IndexError):
        table[5]


@pytest.mark.slow
def test_what_a_scan_keeps_of_an_entry_is_smaller_than_an_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "TEXT_BUDGET_CHARS", 0)
    path = write(tmp_path / "memo.jsonl", jsonl(4000))
    scan(path)  # loads what is needed
    tracemalloc.start()
    try:
        found = scan(path)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.added) == 4000
    assert kept_bytes < 4000 * 200


def test_only_one_new_entry_of_a_file_is_written_again_when_all_others_are_there(tmp_path: Path) -> None:
    path = write(tmp_path / "memo.jsonl", jsonl(20))
    first = scan(path)
    assert [entry.uri for entry in first.touched] == [first.added[0].uri]
    assert [bool(entry.trusted_modified_ns()) for entry in first.added] == [False, *[True] * 19]


def test_an_entry_that_changed_and_one_that_is_new_both_hold_back_the_time_of_their_file(tmp_path: Path) -> None:
    path = write(tmp_path / "memo.jsonl", jsonl(3))
    before = {
        entry.uri: Fingerprint(entry.content_hash, entry.size, entry.modified_ns, entry.lines.first)
        for entry in scan(path).added
        if isinstance(entry, ExcerptEntry)
    }
    write(path, jsonl(5).replace("項目0", "項目〇"), after=10)
    found = scan(path, before)
    assert [entry.trusted_modified_ns() for entry in (found.updated[0], found.added[0])] == [0, 0]
    assert {entry.uri for entry in found.touched} == {*before, found.added[0].uri}


@pytest.mark.parametrize("is_killed", [False, True])
def test_an_import_that_ends_between_two_entries_of_a_file_is_completed_by_the_next(
    open_memos: Opener, tmp_path: Path, is_killed: bool
) -> None:
    path = write(tmp_path / "memo.jsonl", jsonl(COUNT))
    library = open_memos()
    progress: list[int] = []

    def on_progress(done: ImportProgress) -> None:
        progress.append(done.files)
        if is_killed and done.files:
            raise KeyboardInterrupt

    observer = Observer(on_progress=on_progress, is_cancelled=lambda: any(progress))
    if is_killed:
        with pytest.raises(KeyboardInterrupt):
            memos.import_memos(library, path, vectors=False, observer=observer)
    else:
        assert memos.import_memos(library, path, vectors=False, observer=observer).interrupted
    written = progress[-1]
    assert 0 < written < COUNT
    report = memos.import_memos(library, path, vectors=False)
    assert (report.added, report.updated, report.unchanged) == (COUNT - written, 0, written)
    [tool] = library.tools()
    again = scan(path, library.store.documents.fingerprints(tool.id))
    assert (again.unchanged, len(again.touched), again.has_changes) == (COUNT, 0, False)
