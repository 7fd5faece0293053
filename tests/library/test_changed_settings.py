"""What a tool was built with stands until it is rebuilt: other settings stop no search and delete nothing."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from bunko.errors import BunkoError
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from tests.conftest import Opener, Run
from tests.library.test_library import put

HASHING = {"EMBEDDING_PROVIDER": "hashing"}


def uris(library: Library) -> set[str]:
    tool = library.resolve_tool(None)
    return set(library.store.documents.uris(tool.id, limit=1000))


def chunk_lengths(library: Library) -> list[int]:
    rows = library.maintenance.sample_chunks(library.resolve_tool(None).name, 1000)
    return [len(row.chunk.text) for row in rows]


def long_text(word: str) -> str:
    return "\n\n".join(f"{word}の話を段落 {number} に書く。" + "長い文章を続けていく。" * 20 for number in range(20))


# A first import that fails


@pytest.mark.parametrize(
    "settings",
    [
        {"EMBEDDING_PROVIDER": "gemini"},
        {"EMBEDDING_PROVIDER": "openai"},
        {"EMBEDDING_PROVIDER": "transformers", "BUNKO_EMBEDDING_MODEL_TRANSFORMERS": "/nowhere"},
    ],
    ids=["no key or package", "no key", "no model"],
)
def test_a_first_import_that_fails_leaves_the_choice_open(
    settings: dict[str, str], docs: Path, open_docs: Opener
) -> None:
    put(docs, "a.md", "京都")
    with pytest.raises(BunkoError):
        open_docs(**settings, BUNKO_RETRY_MAX_RETRIES="0").reindex()
    library = open_docs()
    report = library.reindex()
    assert (report.added, report.notices) == (1, [])
    answer = library.search("京都")
    assert (answer.mode, len(answer.hits), answer.notices) == ("hybrid", 1, [])


def test_a_first_import_without_its_service_leaves_the_choice_open(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都")
    settings = {"EMBEDDING_PROVIDER": "local", "LMSTUDIO_BASE_URL": "http://127.0.0.1:9/v1"}
    assert open_docs(**settings, BUNKO_RETRY_MAX_RETRIES="0").reindex().added == 1
    library = open_docs()
    report = library.reindex()
    assert (report.unchanged, report.embedded, report.notices) == (1, 1, [])
    answer = library.search("京都")
    assert (answer.mode, len(answer.hits), answer.notices) == ("hybrid", 1, [])


def test_a_tool_that_holds_nothing_takes_whatever_the_settings_say(docs: Path, open_docs: Opener) -> None:
    empty = open_docs(**HASHING, BUNKO_CHUNKER_MAX_CHUNK_CHARS="500", BUNKO_SCANNER_FILE_EXTENSIONS="txt")
    (docs / "b.txt").touch()
    empty.reindex()
    put(docs, "a.md", "京都")
    library = open_docs()
    report = library.reindex()
    assert (report.added, report.notices) == (1, [])
    assert library.search("京都").notices == []


# Chunks


def test_a_search_answers_whatever_the_chunk_settings_are_and_says_so_once(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", long_text("京都"))
    open_docs().reindex()
    library = open_docs(BUNKO_CHUNKER_MAX_CHUNK_CHARS="500")
    answer = library.search("京都")
    assert answer.hits
    (notice,) = answer.notices
    assert notice == (
        "documents was built with a different chunker and keeps it."
        f" To use the current settings: bunko reindex --docs-dir {docs} --force"
    )


def test_an_import_keeps_how_a_tool_is_cut_until_it_is_rebuilt(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", long_text("京都"))
    library = open_docs()
    library.reindex()
    before = chunk_lengths(library)
    put(docs, "b.md", long_text("奈良"))
    other = open_docs(BUNKO_CHUNKER_MAX_CHUNK_CHARS="500")
    report = other.reindex()
    assert report.added == 1
    assert ["--force" in notice for notice in report.notices] == [True]
    assert max(chunk_lengths(other)) == max(before) > 500
    rebuilt = other.reindex(rebuild=True)
    assert rebuilt.updated == 2
    assert rebuilt.notices == []
    assert max(chunk_lengths(other)) <= 500
    assert other.search("京都").notices == []


def test_the_chunk_size_of_web_pages_is_not_that_of_folders(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", long_text("京都"))
    open_docs().reindex()
    library = open_docs(RAG_CHUNK_SIZE="300", RAG_CHUNK_OVERLAP="10")
    assert library.search("京都").notices == []
    assert library.reindex().notices == []


# Which files are read


def scanner(**settings: str) -> dict[str, str]:
    return {f"BUNKO_SCANNER_{name.upper()}": value for name, value in settings.items()}


NARROWER = [
    scanner(file_extensions="txt"),
    scanner(max_file_bytes="10"),
    scanner(exclude_dirs="deep"),
]


@pytest.mark.parametrize("settings", NARROWER, ids=["extensions", "size", "folders"])
def test_a_search_deletes_nothing_because_a_setting_differs(
    settings: dict[str, str], docs: Path, open_docs: Opener
) -> None:
    put(docs, "a.md", "京都の話")
    put(docs, "deep/b.md", "奈良の話")
    put(docs, "c.txt", "大阪の話")
    open_docs().reindex()
    library = open_docs(**settings)
    put(docs, "deep/d.md", "神戸の話")
    answer = library.search("神戸")
    assert [hit.uri for hit in answer.hits][:1] == ["deep/d.md"]
    assert ["a different scanner" in notice for notice in answer.notices] == [True]
    assert library.reindex().deleted == 0
    assert uris(library) == {"a.md", "deep/b.md", "deep/d.md", "c.txt"}
    (docs / "a.md").unlink()
    library.reindex()
    assert uris(library) == {"deep/b.md", "deep/d.md", "c.txt"}
    library.reindex(rebuild=True)
    assert uris(library) < {"deep/b.md", "deep/d.md", "c.txt"}, "a rebuild takes the new settings"


@pytest.mark.parametrize("settings", NARROWER, ids=["extensions", "size", "folders"])
def test_a_tool_built_before_this_was_recorded_loses_nothing_either(
    settings: dict[str, str], docs: Path, open_docs: Opener
) -> None:
    put(docs, "a.md", "京都の話")
    put(docs, "deep/b.md", "奈良の話")
    put(docs, "c.txt", "大阪の話")
    library = open_docs()
    library.reindex()
    tool = library.resolve_tool(None)
    forgotten = {name: value for name, value in tool.built.to_json().items() if name != "scanner"}
    library.store.tools.update_build_info(tool.id, built=type(tool.built).from_json(forgotten))
    library.close()
    library = open_docs(**settings)
    (docs / "c.txt").write_text("大阪の新しい話\n", encoding="utf-8")
    assert library.search("新しい").hits
    assert uris(library) == {"a.md", "deep/b.md", "c.txt"}


# Words


def test_a_tool_that_an_older_version_built_is_searched_and_the_next_import_brings_it_up_to_date(
    docs: Path, open_docs: Opener
) -> None:
    put(docs, "a.md", long_text("京都"))
    library = open_docs(BUNKO_CHUNKER_MAX_CHUNK_CHARS="500")
    library.reindex()
    tool = library.resolve_tool(None)
    older = tool.built.to_json() | {"words": 0}
    library.store.tools.update_build_info(tool.id, built=type(tool.built).from_json(older))
    answer = library.search("京都")
    assert answer.hits
    assert ["a different tokenizer" in notice for notice in answer.notices] == [True]
    report = library.reindex()
    assert ["was rebuilt" in notice for notice in report.notices] == [True]
    assert report.embedded == 0
    assert max(chunk_lengths(library)) <= 500
    assert library.search("京都").notices == []


# Several tools


def test_tools_with_different_embedders_are_searched_together(tmp_path: Path) -> None:
    place = paths_for_folder(tmp_path / "library")
    for number, (name, environ) in enumerate({"one": {}, "two": HASHING, "three": {}}.items()):
        folder = tmp_path / name
        folder.mkdir()
        put(folder, "a.md", f"京都の話 {number}")
        with open_library(place, environ=environ) as library:
            library.add(folder, name=name)
            library.import_tools([name])
    with open_library(place, environ={}) as library:
        answer = library.search("京都の話", top_k=10)
        assert {hit.tool for hit in answer.hits} == {"one", "two", "three"}
        assert any("Only the words of two are searched" in notice for notice in answer.notices)
        assert [hit.vector_distance is None for hit in answer.hits if hit.tool == "two"] == [True]
        library.reembed(["two"])
        answer = library.search("京都の話", top_k=10)
        assert answer.notices == []
        assert all(hit.vector_distance is not None for hit in answer.hits)


def test_a_folder_that_cannot_be_read_does_not_stop_the_search(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", "京都")
    library = open_docs()
    library.reindex()
    library.close()
    (docs / "b.md").symlink_to("b.md")
    os.mkfifo(docs / "c.md")
    answer = open_docs().search("京都")
    assert [hit.uri for hit in answer.hits] == ["a.md"]


def test_the_shell_answers_too_and_names_the_command_once(
    docs: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(docs, "a.md", "京都")
    assert run("reindex", "--docs-dir", docs).code == 0
    monkeypatch.setenv("BUNKO_CHUNKER_MAX_CHUNK_CHARS", "500")
    found = run("search", "京都", "--docs-dir", docs)
    assert found.code == 0
    assert "a.md" in found.out
    assert found.err.count(f"bunko reindex --docs-dir {docs} --force") == 1
    kept = run("reindex", "--docs-dir", docs)
    assert kept.code == 0
    assert "--force" in kept.err + kept.out
    assert run("doctor", "--docs-dir", docs).code == 0


def test_a_check_for_changes_that_hangs_keeps_no_other_search_waiting(
    docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(docs, "a.md", "京都")
    library = open_docs(BUNKO_SEARCH_FRESHNESS_WAIT_SECONDS="0.2")
    library.reindex()
    begun, released = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        begun.set()
        released.wait()
        raise OSError("the drive is gone")

    def search() -> None:
        with pytest.raises(OSError, match="the drive is gone"):
            library.search("京都")

    monkeypatch.setattr("bunko.sources.folder.Folder.look", hang)
    hanging = threading.Thread(target=search)
    hanging.start()
    assert begun.wait(60)
    answer = library.search("京都")
    assert [hit.uri for hit in answer.hits] == ["a.md"]
    assert ["still being checked" in notice for notice in answer.notices] == [True]
    released.set()
    hanging.join()
