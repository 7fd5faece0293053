"""Bringing a folder up to date and answering from what is true now."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import pytest

from bunko.errors import LibraryReadOnly, SourceError, UnknownName
from bunko.indexes.embedded.view import EmbeddedView
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.runtime import array_file
from bunko.runtime.observer import Observer
from bunko.search.passages import extract_passages
from bunko.types import Tool
from tests.conftest import Opener

TEXT = "# 見出し\n\n{}。この文書は取り込みの試験のために書かれた、少し長めの文章です。"


def put(docs: Path, name: str, words: str, *, age: int = 100) -> None:
    path = docs / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TEXT.format(words), encoding="utf-8")
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))


def counts(library: Library) -> tuple[int, int, int, int, int]:
    report = library.reindex()
    return report.added, report.updated, report.deleted, report.moved, report.unchanged


def test_an_import_tells_added_updated_deleted_moved_and_unchanged(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都の寺")
    put(docs, "b.md", "奈良の鹿")
    put(docs, "c.md", "大阪の城")
    library = open_docs()
    assert counts(library) == (3, 0, 0, 0, 0)
    assert counts(library) == (0, 0, 0, 0, 3)
    put(docs, "a.md", "京都の庭", age=50)
    (docs / "b.md").rename(docs / "moved.md")
    (docs / "c.md").unlink()
    put(docs, "d.md", "神戸の港")
    assert counts(library) == (1, 1, 1, 1, 0)
    assert counts(library) == (0, 0, 0, 0, 3)
    assert [hit.uri for hit in library.search("鹿").hits] == ["moved.md"]
    assert library.search("城").hits == []


def test_a_file_that_was_only_touched_is_unchanged_and_not_read_again(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都")
    library = open_docs()
    library.reindex()
    put(docs, "a.md", "京都", age=10)
    assert counts(library) == (0, 0, 0, 0, 1)
    known = library.store.documents.fingerprints(library.tools()[0].id)["a.md"]
    assert known.modified_ns == (docs / "a.md").stat().st_mtime_ns


def test_the_same_text_is_never_embedded_twice(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都の寺")
    library = open_docs()
    assert library.reindex().embedded == 1
    (docs / "a.md").rename(docs / "sub.md")
    assert library.reindex().embedded == 0
    put(docs, "copy.md", "京都の寺")
    assert library.reindex().embedded == 0
    assert library.reindex(rebuild=True).embedded == 0


def test_a_search_answers_from_what_is_true_now(docs: Path, open_docs: Opener) -> None:
    library = open_docs()
    put(docs, "a.md", "京都の寺")
    assert [hit.uri for hit in library.search("京都").hits] == ["a.md"]
    put(docs, "b.md", "京都の庭")
    assert {hit.uri for hit in library.search("京都").hits} == {"a.md", "b.md"}
    (docs / "a.md").unlink()
    assert {hit.uri for hit in library.search("京都").hits} == {"b.md"}


def test_within_a_moment_the_folder_is_not_looked_at_again(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都の寺")
    library = open_docs(BUNKO_SEARCH_FRESHNESS_SECONDS="3600")
    library.search("京都")
    put(docs, "b.md", "京都の庭")
    answer = library.search("京都")
    assert [hit.uri for hit in answer.hits] == ["a.md"]
    assert answer.freshness.checked_at


def test_a_change_too_large_to_wait_for_is_told_and_absorbed_later(docs: Path, open_docs: Opener) -> None:
    for number in range(300):
        put(docs, f"{number}.md", f"京都の寺 {number}")
    library = open_docs(BUNKO_SEARCH_FRESHNESS_WAIT_SECONDS="0")
    answer = library.search("京都", top_k=400)
    if len(answer.hits) < 300:
        assert answer.freshness.pending_changes == 300
        assert any("still being indexed" in notice for notice in answer.notices)
    library.reindex()
    assert len(library.search("京都", top_k=400).hits) == 300


def test_closing_in_the_middle_of_an_import_keeps_what_was_written(docs: Path, open_docs: Opener) -> None:
    for number in range(300):
        put(docs, f"{number}.md", f"京都の寺 {number}")
    library = open_docs(BUNKO_SEARCH_FRESHNESS_WAIT_SECONDS="0")
    library.search("京都")
    library.close()
    again = open_docs()
    again.reindex()
    assert len(again.search("京都", top_k=400).hits) == 300


def test_what_cannot_be_used_is_reported_every_time_and_read_once(docs: Path, open_docs: Opener) -> None:
    put(docs, "good.md", "京都")
    (docs / "binary.md").write_bytes(bytes(range(256)) * 20)
    (docs / "blank.md").write_text(" \n\n ")
    (docs / "empty.txt").touch()
    library = open_docs()
    for _ in range(2):
        report = library.reindex()
        assert {problem.uri for problem in report.problems} == {"binary.md", "blank.md", "empty.txt"}
    assert (report.added, report.unchanged) == (0, 1)
    put(docs, "binary.md", "今は文章")
    assert library.reindex().added == 1
    assert {hit.uri for hit in library.search("文章").hits} >= {"binary.md"}


def test_a_document_that_becomes_unusable_is_no_longer_found(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都")
    library = open_docs()
    library.reindex()
    (docs / "a.md").write_bytes(b"\x00\x01\x02" * 500)
    library.reindex()
    assert library.search("京都").hits == []


def test_a_folder_that_vanished_keeps_its_index_and_says_so(docs: Path, open_docs: Opener, tmp_path: Path) -> None:
    put(docs, "a.md", "京都")
    library = open_library(locate_library(docs_dir=docs, data_dir=tmp_path / "data", environ={}), environ={})
    library.reindex()
    (docs / "a.md").unlink()
    docs.rmdir()
    library.close()
    library = open_library(
        locate_library(library=tmp_path / "data", environ={}), environ={"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}
    )
    answer = library.search("京都")
    assert [hit.uri for hit in answer.hits] == ["a.md"]
    assert any("is missing or empty" in notice for notice in answer.notices)
    with pytest.raises(SourceError, match="is missing or empty"):
        library.reindex()
    library.close()


def test_a_rebuild_answers_from_the_old_index_until_the_new_one_is_whole(docs: Path, open_docs: Opener) -> None:
    for number in range(250):
        put(docs, f"{number}.md", f"京都 {number}")
    library = open_docs()
    library.reindex()
    put(docs, "0.md", "奈良", age=50)
    seen = []

    def stopped() -> bool:
        other = open_docs()
        seen.append(len(other.search("京都", top_k=400, refresh=False).hits))
        other.close()
        return len(seen) == 2

    assert library.reindex(rebuild=True, observer=Observer(is_cancelled=stopped)).interrupted
    assert seen == [250, 250]
    assert [tool.name for tool in library.tools()] == ["documents"]
    report = library.reindex(rebuild=True)
    assert (report.added, report.updated, report.deleted, report.total_chunks) == (0, 250, 0, 250)
    assert len(library.search("京都", top_k=400).hits) == 249
    assert len(library.store.tools.all()) == 1


def test_a_library_for_reading_neither_refreshes_nor_writes(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都")
    open_docs().reindex()
    reader = open_docs(read_only=True)
    put(docs, "b.md", "京都")
    assert [hit.uri for hit in reader.search("京都").hits] == ["a.md"]
    with pytest.raises(LibraryReadOnly):
        reader.reindex()


@pytest.mark.slow
def test_both_kinds_of_workers_give_the_same_library(docs: Path, tmp_path: Path, open_docs: Opener) -> None:
    for number in range(40):
        put(docs, f"{number}.md", f"京都の寺 {number} " + "とても長い文章が続く。" * 6000)
    found = []
    for workers in (1, 2):
        home = locate_library(docs_dir=docs, data_dir=tmp_path / f"data{workers}", environ={})
        library = open_library(home, environ={"EMBEDDING_PROVIDER": "none"})
        report = library.reindex(workers=workers)
        hits = library.search("寺 39", top_k=5, refresh=False).hits
        found.append((report.added, report.total_chunks, [(hit.uri, hit.chunk.index, hit.score) for hit in hits]))
        library.close()
    assert found[0] == found[1]


def test_an_unknown_tool_is_named_with_the_known_ones(docs: Path, open_docs: Opener) -> None:
    with pytest.raises(UnknownName) as caught:
        open_docs().search("x", tool="nothing")
    assert "documents" in caught.value.hint


def test_searches_are_logged_only_when_asked(docs: Path, open_docs: Opener, caplog: pytest.LogCaptureFixture) -> None:
    put(docs, "a.md", "京都")
    with caplog.at_level(logging.INFO, logger="bunko.retrieve"):
        open_docs().search("京都", mode="hybrid")
        assert "RAG retrieve" not in caplog.text
        open_docs(RAG_DEBUG_LOG_ENABLED="true").search("京都", mode="hybrid")
    assert 'RAG retrieve: query="京都"' in caplog.text
    assert 'source="a.md"' in caplog.text


def test_timers_name_the_real_parts(docs: Path, open_docs: Opener, caplog: pytest.LogCaptureFixture) -> None:
    put(docs, "a.md", "京都")
    with caplog.at_level(logging.DEBUG, logger="bunko"):
        open_docs().search("京都", mode="hybrid")
    for name in ("file_scan", "chunk_split", "hash_compute", "sqlite_write", "reindex_total", "query_embedding",
                 "vector_query", "bm25_query", "search_total"):  # fmt: skip
        assert f"{name}:" in caplog.text, name
    assert "chromadb" not in caplog.text
    assert '[search] query="京都", top_k=5' in caplog.text


def test_a_new_library_checks_itself_and_doctor_finds_nothing_wrong(docs: Path, open_docs: Opener) -> None:
    for number, words in enumerate(("京都の寺を巡る旅", "検索エンジンの設計", "玉葱の炒め方", "特許の出願の手順")):
        put(docs, f"{number}.md", words)
    (docs / "en.md").write_text("# Notes\n\nThe quick brown fox jumps over the lazy dog near the river bank.")
    library = open_docs()
    assert library.reindex().notices == []
    findings = library.maintenance.diagnose()
    assert {finding.state for finding in findings} == {"ok"}
    assert {"Japanese, bm25", "English, semantic"} <= {finding.message.partition(":")[0] for finding in findings}


def test_whoever_comes_while_an_import_is_young_waits_for_it(docs: Path, open_docs: Opener) -> None:
    for number in range(120):
        put(docs, f"{number}.md", f"京都の寺 {number}")
    library = open_docs(BUNKO_SEARCH_FRESHNESS_WAIT_SECONDS="60")
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(len(library.search("京都", top_k=200).hits))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [120] * 4


def test_a_citation_is_checked_in_the_tool_where_it_stands(docs: Path, tmp_path: Path) -> None:
    put(docs, "README.md", "京都の寺")
    other = tmp_path / "other"
    other.mkdir()
    put(other, "README.md", "奈良の鹿")
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ={}) as library:
        for name, folder in (("another", other), ("documents", docs)):
            library.store.tools.put(Tool(name, "folder", "", str(folder)))
        library.reindex()
        hit = library.search("京都", tool="documents").hits[0]
        passage = extract_passages([hit], library.document_of, "chunk")[0]
        assert library.verify_citation(passage.citation, passage.hash).status == "same"


def test_a_large_index_file_that_rots_is_made_anew_at_the_next_search(
    docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(docs, "a.md", "京都の寺")
    library = open_docs()
    library.reindex()
    library.close()
    path = next((docs / ".rag-index" / "index").glob("*.segment"))
    again = open_docs()
    view = again.index_view([again.tools()[0].id])
    assert isinstance(view, EmbeddedView)
    segment = view.views[0].segment
    data = bytearray(path.read_bytes())
    at = data.index(segment.words.rows.tobytes() + b"\0")
    data[at : at + 4] = b"\x7f\x7f\x7f\x7f"
    path.write_bytes(data)
    again.close()
    monkeypatch.setattr(array_file, "MAX_VERIFIED_BYTES", 0)  # as for a file too large to be checked when it is opened
    assert [hit.uri for hit in open_docs().search("京都 寺").hits] == ["a.md"]


def test_a_stopped_import_does_not_call_itself_fresh(docs: Path, open_docs: Opener) -> None:
    for number in range(250):
        put(docs, f"{number}.md", f"京都 {number}")
    library = open_docs(BUNKO_SEARCH_FRESHNESS_SECONDS="3600")
    answers = iter([False, True])
    assert library.reindex(observer=Observer(is_cancelled=lambda: next(answers))).interrupted
    assert library.tools()[0].imported_at == ""
    assert len(library.search("京都", top_k=400).hits) == 250


def test_vectors_of_what_is_gone_are_swept_with_a_rebuild(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都の寺")
    library = open_docs()
    library.reindex()
    put(docs, "a.md", "奈良の鹿", age=50)
    assert library.reindex(rebuild=True).embedded == 1
    put(docs, "a.md", "京都の寺", age=20)
    assert library.reindex().embedded == 1


def test_a_folder_of_documents_has_no_say_in_how_assistants_are_served(docs: Path, open_docs: Opener) -> None:
    (docs / "bunko.toml").write_text(
        '[serve]\ntoken = "known"\nallowed_hosts = ["evil.example"]\n[search]\ntop_k = 7\n'
    )
    library = open_docs()
    assert (library.settings.serve.token, library.settings.serve.allowed_hosts) == ("", ())
    assert library.settings.search.top_k == 7
    assert any("serve.token, serve.allowed_hosts in" in notice for notice in library.notices)
