"""Looking for changes before a search: what was not changed is not read, and what was is found."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.sources import entries
from bunko.types import Fingerprint
from tests.conftest import Opener
from tests.library.packs import OpenNamed
from tests.library.test_library import TEXT, put


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """List how many fingerprints each comparison has read."""
    from bunko.stores.sql.documents import SqlDocuments

    counts: list[int] = []
    read = SqlDocuments.fingerprints

    def count(self: SqlDocuments, tool_id: int) -> dict[str, Fingerprint]:
        fingerprints = read(self, tool_id)
        counts.append(len(fingerprints))
        return fingerprints

    monkeypatch.setattr(SqlDocuments, "fingerprints", count)
    return counts


def found(library: Library, query: str) -> list[str]:
    return sorted(hit.uri for hit in library.search(query).hits)


def test_the_first_search_after_an_import_reads_no_fingerprints(
    docs: Path, open_docs: Opener, compared: list[int]
) -> None:
    put(docs, "a.md", "京都の寺")
    put(docs, "sub/b.md", "奈良の鹿")
    open_docs().reindex()
    compared.clear()
    assert found(open_docs(), "京都") == ["a.md"]
    assert compared == []


def test_an_import_that_finds_nothing_new_reads_no_fingerprints_and_reports_the_same(
    docs: Path, open_docs: Opener, compared: list[int]
) -> None:
    put(docs, "a.md", "京都の寺")
    put(docs, "b.md", "奈良の鹿")
    (docs / "empty.md").touch()
    put(docs, "node_modules/c.md", "部品")
    (docs / "bad.pdf").write_bytes(b"no PDF")
    os.utime(docs / "bad.pdf", (1, 1))
    library = open_docs()
    first = library.reindex()
    compared.clear()
    second = library.reindex()
    assert compared == []
    assert second.unchanged == 2
    assert [problem.uri for problem in second.problems] == [problem.uri for problem in first.problems]
    assert second.skipped_folders == first.skipped_folders


CHANGES: dict[str, Callable[[Path], object]] = {
    "an edited file": lambda docs: put(docs, "a.md", "京都の庭", age=50),
    "an edited file of the same time": lambda docs: put(docs, "a.md", "京都の広い庭"),
    "a new file": lambda docs: put(docs, "new.md", "庭"),
    "a new file in a new folder": lambda docs: put(docs, "x/y/new.md", "庭"),
    "a renamed file": lambda docs: (docs / "b.md").rename(docs / "庭.md"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_found_by_the_next_search(docs: Path, open_docs: Opener, change: str) -> None:
    put(docs, "a.md", "京都の寺")
    put(docs, "b.md", "奈良の鹿")
    library = open_docs()
    assert found(library, "庭") == []
    assert found(library, "庭") == []
    CHANGES[change](docs)
    assert len(found(library, "庭")) == 1


def test_a_renamed_folder_is_found_by_the_next_search(docs: Path, open_docs: Opener) -> None:
    put(docs, "old/a.md", "京都の寺")
    library = open_docs()
    assert found(library, "京都") == ["old/a.md"]
    (docs / "old").rename(docs / "new")
    assert found(library, "京都") == ["new/a.md"]


def test_a_file_that_is_gone_or_ignored_is_not_found_by_the_next_search(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都の寺")
    put(docs, "b.md", "京都の庭")
    put(docs, "c.md", "京都の川")
    library = open_docs()
    assert found(library, "京都") == ["a.md", "b.md", "c.md"]
    (docs / "a.md").unlink()
    assert found(library, "京都") == ["b.md", "c.md"]
    (docs / ".gitignore").write_text("b.md\n")
    assert found(library, "京都") == ["c.md"]


def test_a_file_changed_twice_within_the_resolution_of_its_time_is_found(docs: Path, open_docs: Opener) -> None:
    library = open_docs()
    put(docs, "a.md", "京都の寺", age=0)
    assert found(library, "京都") == ["a.md"]
    status = (docs / "a.md").stat()
    (docs / "a.md").write_text(TEXT.format("奈良の鹿"), encoding="utf-8")
    os.utime(docs / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert found(library, "奈良") == ["a.md"]


def test_a_file_with_the_time_of_an_earlier_version_is_compared_with_the_last_one(
    docs: Path, open_docs: Opener
) -> None:
    put(docs, "a.md", "京都の寺")
    library = open_docs()
    assert found(library, "京都") == ["a.md"]
    earlier = (docs / "a.md").stat().st_mtime_ns
    os.utime(docs / "a.md", ns=(earlier, earlier + 10**9))
    assert found(library, "京都") == ["a.md"]
    assert found(library, "京都") == ["a.md"]
    (docs / "a.md").write_text(TEXT.format("奈良の鹿"), encoding="utf-8")
    os.utime(docs / "a.md", ns=(earlier, earlier))
    assert found(library, "奈良") == ["a.md"]


def test_an_import_that_was_stopped_leaves_the_rest_to_the_next_search(docs: Path, open_docs: Opener) -> None:
    from bunko.runtime.observer import Observer

    for index in range(250):  # more than one transaction
        put(docs, f"{index:03}.md", f"京都の寺{index}")
    library = open_docs()
    batches = iter([False, True])
    report = library.reindex(observer=Observer(is_cancelled=lambda: next(batches, True)))
    assert report.interrupted
    assert library.reindex().total_chunks == 250


def test_a_file_of_many_memos_is_asked_for_its_time_and_size_only(
    tmp_path: Path, open_named: OpenNamed, compared: list[int]
) -> None:
    memos = tmp_path / "memos.jsonl"
    lines = [json.dumps({"title": f"memo {index}", "text": f"京都の寺{index}"}) for index in range(300)]
    memos.write_text("\n".join(lines), encoding="utf-8")
    os.utime(memos, (1_700_000_000, 1_700_000_000))
    library = open_named("library")
    library.add(memos, name="memos", kind="memos")
    library.import_()
    compared.clear()
    assert len(library.search("京都", tool="memos", top_k=5).hits) == 5
    assert compared == []
    memos.write_text("\n".join([*lines, json.dumps({"title": "new", "text": "奈良の鹿"})]), encoding="utf-8")
    assert [hit.title for hit in library.search("奈良", tool="memos").hits] == ["new"]
    assert compared[0] == 300


def test_a_large_file_that_was_just_written_is_read_once(
    tmp_path: Path, open_named: OpenNamed, compared: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock:
        waited = 0.0

        def sleep(self, seconds: float) -> None:
            self.waited += seconds

        def time_ns(self) -> int:
            return time.time_ns() + int(self.waited * 1e9)

    clock = Clock()
    monkeypatch.setattr(entries, "time", clock)
    monkeypatch.setattr(entries, "LARGE_BYTES", 10)
    memos = tmp_path / "memos.jsonl"
    memos.write_text(json.dumps({"title": "memo", "text": "京都の寺"}), encoding="utf-8")
    library = open_named("library")
    library.add(memos, name="memos", kind="memos")
    library.import_()
    assert 0 < clock.waited < 2.1
    compared.clear()
    assert len(library.search("京都", tool="memos").hits) == 1
    assert compared == []


@pytest.mark.parametrize("record", ["", "1", "x y z", "1 x 0123 folder", "0 0", "\N{SNOWMAN}" * 10])
def test_a_damaged_record_is_not_used(docs: Path, open_docs: Opener, record: str) -> None:
    put(docs, "a.md", "京都の寺")
    library = open_docs()
    library.reindex()
    path = library.paths.database
    library.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("UPDATE meta SET value = ? WHERE key LIKE 'unchanged %'", (record,)).rowcount == 1
    connection.close()
    put(docs, "b.md", "京都の庭")
    assert found(open_docs(), "京都") == ["a.md", "b.md"]
