"""Another embedder for a library that is there: beside the old vectors, which answer until the new ones are whole."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from bunko.embedders import openai
from bunko.errors import EmbedderError
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.runtime.observer import Observer
from bunko.types import Tool
from tests.conftest import Opener, Run
from tests.loopback import Loopback, openai_error

HASHING = {"EMBEDDING_PROVIDER": "hashing"}


def remote(service: Loopback) -> dict[str, str]:
    return {
        "EMBEDDING_PROVIDER": "local",
        "LMSTUDIO_BASE_URL": f"{service.address}/v1",
        "BUNKO_RETRY_MAX_RETRIES": "0",
    }


def write(docs: Path, files: int) -> None:
    for number in range(files):
        about = f"Page {number} is about 犬 and numbers, at some length so that it stands alone."
        text = f"# 頁 {number}\n\n{about}\n\n## More\n\n{'words ' * 20}of {number}.\n"
        (docs / f"{number:03}.md").write_text(text, encoding="utf-8")


def rows(library: Library, query: str) -> list[Any]:
    return library.store._database.rows(query)  # type: ignore[attr-defined,no-any-return]


def kept_apart(library: Library) -> list[Any]:
    """Return all that a change of vectors must leave alone."""
    return [
        rows(library, "SELECT id, uri, content_hash, size, modified_ns, title, text, terms FROM documents ORDER BY id"),
        rows(library, "SELECT id, document_id, ordinal, start, end, heading_path, text FROM chunks ORDER BY id"),
        rows(library, "SELECT name, imported_at, checked_at, options FROM tools"),
    ]


def name_of(library: Library) -> str:
    embedder = library.embedder()
    assert embedder is not None
    return embedder.name


def test_only_the_vectors_change(docs: Path, open_docs: Opener) -> None:
    write(docs, 30)
    before = open_docs()
    before.reindex()
    old = kept_apart(before)
    after = open_docs(**HASHING)
    report = after.reembed(["documents"])
    assert (report.updated, report.unchanged) == (30, 0)
    assert report.embedded == report.total_chunks == after.store.stats.totals(after.resolve_tool(None).id).vectors
    assert kept_apart(after) == old
    assert after.resolve_tool(None).built.embedder == name_of(after)
    assert [hit.uri for hit in after.search("頁 7", mode="semantic", top_k=3).hits]
    assert rows(after, "SELECT count(*) FROM vectors") == [(report.embedded,)], "the old ones are swept"
    assert not any(finding.state == "error" for finding in after.maintenance.diagnose())
    again = after.reembed(["documents"])
    assert (again.updated, again.unchanged, again.embedded) == (0, 30, 0)


def test_it_answers_as_a_library_that_was_imported_so(docs: Path, open_docs: Opener, tmp_path: Path) -> None:
    write(docs, 30)
    open_docs().reindex()
    changed = open_docs(**HASHING)
    changed.reembed(["documents"])
    fresh = tmp_path / "fresh"
    shutil.copytree(docs, fresh, ignore=shutil.ignore_patterns(".rag-index"))
    with open_library(paths_for_folder(tmp_path / "library"), environ=HASHING) as other:
        other.store.tools.put(Tool("documents", source=str(fresh)))
        other.import_tools(["documents"])
        for query in ("犬", "page 12", "words of numbers"):
            for mode in ("semantic", "hybrid", "bm25"):
                ours = [(hit.uri, hit.chunk.index, hit.score) for hit in changed.search(query, mode=mode).hits]
                theirs = [(hit.uri, hit.chunk.index, hit.score) for hit in other.search(query, mode=mode).hits]
                assert ours == theirs


def test_the_source_may_be_gone(docs: Path, tmp_path: Path) -> None:
    write(docs, 5)
    place = paths_for_folder(tmp_path / "library")
    with open_library(place, environ={}) as library:
        library.store.tools.put(Tool("notes", source=str(docs)))
        library.import_tools(["notes"])
    shutil.rmtree(docs)
    with open_library(place, environ=HASHING) as library:
        assert library.reembed(["notes"]).updated == 5
        answer = library.search("犬")
        assert answer.hits
        assert ["is missing or empty" in notice for notice in answer.notices] == [True]


@pytest.mark.parametrize("sizes", ["smaller", "larger"])
def test_one_who_reads_meanwhile_gets_old_answers_until_all_is_whole_and_is_then_told(
    sizes: str, docs: Path, open_docs: Opener, service: Loopback
) -> None:
    first, second = ({}, remote(service)) if sizes == "larger" else (remote(service), {})
    write(docs, 60)
    reader = open_docs(**first)
    reader.reindex()
    old = [hit.uri for hit in reader.search("犬 12", mode="semantic").hits]
    watching = open_docs(**second)  # opened before the change, as another process would be
    answer = watching.search("犬 12")
    assert answer.hits
    assert ["bunko reembed" in notice for notice in answer.notices] == [True]
    found: list[list[str]] = []
    writer = open_docs(**second)
    writer.reembed(
        ["documents"],
        observer=Observer(
            on_progress=lambda _: found.append([hit.uri for hit in reader.search("犬 12", mode="semantic").hits])
        ),
    )
    assert found
    assert all(one == old for one in found)
    assert watching.search("犬 12", mode="semantic").hits
    answer = reader.search("犬 12", mode="hybrid")
    assert answer.hits
    assert ["bunko reembed" in notice for notice in answer.notices] == [True]
    assert reader.search("犬 12", mode="bm25").hits
    watching.reindex()
    assert watching.search("犬 12", mode="semantic").hits


def test_a_library_with_other_vectors_still_answers_and_takes_changes_in(docs: Path, open_docs: Opener) -> None:
    write(docs, 3)
    open_docs().reindex()
    library = open_docs(**HASHING)
    assert library.search("犬", mode="bm25").notices == []
    (docs / "new.md").write_text("# 新しい\n\n鹿の話\n", encoding="utf-8")
    assert [hit.uri for hit in library.search("鹿", mode="bm25").hits] == ["new.md"]
    answer = library.search("鹿")
    assert (answer.mode, answer.hits[0].uri) == ("hybrid", "new.md")
    assert ["bunko reembed" in notice for notice in answer.notices] == [True]
    assert ["bunko reembed" in notice for notice in library.reindex().notices] == [True]
    assert [one.uri for _, one in library.recent_documents()]
    (told,) = [one for one in library.maintenance.diagnose() if one.state != "ok"]
    assert "bunko reembed" in told.hint


@pytest.mark.slow
def test_a_failure_half_way_changes_nothing_and_keeps_what_was_paid_for(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    write(docs, 400)
    before = open_docs()
    before.reindex()
    old = rows(before, "SELECT id, vector_key FROM chunks ORDER BY id")
    left = threading.Semaphore(5)
    service.always = lambda _: None if left.acquire(blocking=False) else openai_error(500, "out of order")
    library = open_docs(**remote(service))
    with pytest.raises(EmbedderError, match="out of order"):
        library.reembed(["documents"])
    assert rows(library, "SELECT id, vector_key FROM chunks ORDER BY id") == old
    assert before.search("犬 12", mode="semantic").hits
    library.close()
    (docs / "000.md").write_text("# 頁 0\n\nChanged under the old settings.\n", encoding="utf-8")
    before.reindex()
    before.store.vectors.delete_orphans()  # what is kept for the next attempt stays
    service.always = lambda _: None
    service.asked.clear()
    library = open_docs(**remote(service))
    report = library.reembed(["documents"])
    asked = [text for text in service.texts() if text.startswith(openai.DOCUMENT_PREFIX)]
    assert report.total_chunks == 799
    assert 299 <= len(asked) <= 301, "500 were paid for before, one or two of them for a page that is gone"
    assert report.updated == 400


def test_what_was_kept_for_a_tool_goes_with_it(docs: Path, open_docs: Opener, service: Loopback) -> None:
    write(docs, 400)
    first = open_docs()
    first.reindex()
    left = threading.Semaphore(2)
    service.always = lambda _: None if left.acquire(blocking=False) else openai_error(500, "out of order")
    with pytest.raises(EmbedderError):
        open_docs(**remote(service)).reembed(["documents"])
    assert rows(first, "SELECT count(*) FROM kept") != [(0,)]
    first.delete_tool("documents")
    assert rows(first, "SELECT count(*) FROM kept") == [(0,)]
    assert rows(first, "SELECT count(*) FROM vectors") == [(0,)]


def test_whoever_stays_with_the_old_model_lets_go_of_what_was_made_by_the_new_one(
    docs: Path, open_docs: Opener, service: Loopback
) -> None:
    write(docs, 400)
    first = open_docs()
    first.reindex()
    left = threading.Semaphore(2)
    service.always = lambda _: None if left.acquire(blocking=False) else openai_error(500, "out of order")
    with pytest.raises(EmbedderError):
        open_docs(**remote(service)).reembed(["documents"])
    first.reindex()
    assert rows(first, "SELECT count(*) FROM vectors") == [(1000,)], "an import lets the change be gone on with"
    assert first.reembed(["documents"]).updated == 0
    assert rows(first, "SELECT count(*) FROM kept") == [(0,)]
    assert rows(first, "SELECT count(*) FROM vectors") == [(800,)]


def test_vectors_can_be_given_to_a_tool_without_and_taken_away_again(docs: Path, open_docs: Opener) -> None:
    write(docs, 4)
    bare = open_docs(EMBEDDING_PROVIDER="none")
    bare.reindex()
    library = open_docs()
    assert library.reembed(["documents"]).embedded == 8
    assert library.search("犬", mode="semantic").hits
    again = open_docs(EMBEDDING_PROVIDER="none")
    assert again.reembed(["documents"]).updated == 4
    assert again.store.stats.totals(again.resolve_tool(None).id).vectors == 0
    assert again.search("犬").mode == "bm25"


def test_new_vectors_do_not_cut_the_documents_another_way(docs: Path, open_docs: Opener) -> None:
    write(docs, 3)
    open_docs().reindex()
    library = open_docs(**HASHING, BUNKO_CHUNKER_MAX_CHUNK_CHARS="500")
    assert library.reembed(["documents"]).updated == 3
    answer = library.search("犬")
    assert answer.hits
    assert ["--force" in notice for notice in answer.notices] == [True]


@pytest.mark.slow
def test_it_can_be_stopped_and_goes_on_later(docs: Path, open_docs: Opener) -> None:
    write(docs, 350)
    open_docs().reindex()
    library = open_docs(**HASHING)
    made: list[int] = []
    observer = Observer(on_progress=lambda progress: made.append(progress.files), is_cancelled=lambda: made[-1] > 0)
    stopped = library.reembed(["documents"], observer=observer)
    assert stopped.interrupted
    assert 0 < stopped.embedded < 700
    assert library.resolve_tool(None).built.embedder != name_of(library)
    assert library.reembed(["documents"]).embedded == 700 - stopped.embedded


# The command


def test_the_command_says_what_it_did(docs: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write(docs, 3)
    assert run("reindex", "--docs-dir", docs).code == 0
    monkeypatch.setenv("EMBEDDING_PROVIDER", "hashing")
    found = run("search", "犬", "--docs-dir", docs)
    assert found.code == 0
    assert f"bunko reembed --docs-dir {docs}" in found.err
    assert run("reembed", "--docs-dir", docs).out == "3 documents with new vectors, 6 texts embedded.\n"
    assert run("search", "犬", "--docs-dir", docs).code == 0
    told = "0 documents with new vectors, 0 texts embedded, 3 documents already up to date.\n"
    assert run("reembed", "--docs-dir", docs).out == told
    monkeypatch.delenv("EMBEDDING_PROVIDER")
    report = run("reembed", "--docs-dir", docs, "--json").json()
    assert (report["updated"], report["embedded"]) == (3, 6)


def test_all_tools_of_a_library_are_done_and_one_that_cannot_be_is_told_of(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "library"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, 2)
        run("tool", "add", "-n", name, "-d", name, "-s", tmp_path / name, "--library", place)
        assert run("import", "-n", name, "--library", place).code == 0
    monkeypatch.setenv("EMBEDDING_PROVIDER", "hashing")
    assert run("reembed", "--library", place).code != 0, "which one is meant has to be said"
    assert run("reembed", "-n", "one", "--all", "--library", place).code == 2
    assert run("reembed", "-n", "one", "--library", place).code == 0
    done = run("reembed", "--all", "--library", place)
    assert (done.code, done.out.split(",")[0]) == (0, "2 documents with new vectors")
    monkeypatch.delenv("EMBEDDING_PROVIDER")
    both = run("reembed", "-n", "one", "-n", "two", "--library", place)
    assert (both.code, both.out.split(",")[0]) == (0, "4 documents with new vectors")
    monkeypatch.setenv("EMBEDDING_PROVIDER", "local")
    monkeypatch.setenv("LMSTUDIO_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("BUNKO_RETRY_MAX_RETRIES", "0")
    failed = run("reembed", "--all", "--library", place, "--json")
    assert failed.code == 5
    assert {one["tool"] for one in json.loads(failed.out)["failures"]} == {"one", "two"}
