"""What a user chose for an index among documents stands, also beyond what such an index may say about itself."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types.build_info import BuildInfo
from tests.conftest import Opener, Run
from tests.library.test_changed_settings import chunk_lengths, long_text, scanner, uris
from tests.library.test_library import put

# Settings that no documents folder may set, and a file that is only read with them.
CHOICES = {
    "extensions": (scanner(file_extensions=".md,.log"), "c.log"),
    "size": (scanner(max_file_bytes="30000000"), "large.ipynb"),
    "gitignore": (scanner(respect_gitignore="false"), "ignored.md"),
    "folders": (scanner(exclude_dirs="drafts"), ".git/note.md"),
    "source code": (scanner(source_code="true"), "main.py"),
}
CHOSEN = pytest.mark.parametrize(("settings", "name"), CHOICES.values(), ids=list(CHOICES))


def write(docs: Path, name: str, words: str) -> None:
    """Write a file that is only read because of a setting."""
    if name.endswith(".ipynb"):
        cell = {"cell_type": "markdown", "source": [words], "metadata": {"padding": "x" * 20_000_001}}
        words = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
        (docs / name).write_text(words, encoding="utf-8")
    else:
        put(docs, name, words)


def build(docs: Path, open_docs: Opener, settings: dict[str, str], name: str) -> None:
    """Index a folder with settings, one of whose files is only read because of them."""
    (docs / ".gitignore").write_text("ignored.md\n", encoding="utf-8")
    put(docs, "a.md", "京都の話")
    write(docs, name, "大阪の話")
    library = open_docs(**settings)
    library.reindex()
    assert uris(library) == {"a.md", name}
    library.close()


@pytest.mark.slow
@CHOSEN
def test_what_the_user_chose_is_read_without_the_setting_too(
    settings: dict[str, str], name: str, docs: Path, open_docs: Opener
) -> None:
    build(docs, open_docs, settings, name)
    library = open_docs()
    assert name in {hit.uri for hit in library.search("大阪").hits}
    assert library.reindex().deleted == 0
    write(docs, name, "神戸の話")
    assert name in {hit.uri for hit in library.search("神戸", mode="bm25").hits}
    assert uris(library) == {"a.md", name}
    (docs / name).unlink()
    library.search("神戸")
    assert uris(library) == {"a.md"}


@pytest.mark.slow
@CHOSEN
def test_somebody_else_who_searches_the_folder_deletes_nothing_and_reads_nothing(
    settings: dict[str, str],
    name: str,
    docs: Path,
    open_docs: Opener,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build(docs, open_docs, settings, name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of somebody else"))
    library = open_docs()
    answer = library.search("大阪")
    assert name in {hit.uri for hit in answer.hits}
    is_harmless = name == "main.py"
    assert [("its own index may not choose" in notice) for notice in answer.notices] == [False, True][: 2 - is_harmless]
    write(docs, name, "神戸の秘密の話")
    put(docs, "b.md", "奈良の話")
    assert [hit.uri for hit in library.search("奈良", mode="bm25").hits] == ["b.md"]
    assert library.reindex().deleted == 0
    assert uris(library) == {"a.md", "b.md", name}
    secret = {hit.uri for hit in library.search("秘密", mode="bm25").hits}
    assert secret == ({name} if is_harmless else set())
    library.close()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert {hit.uri for hit in open_docs().search("秘密", mode="bm25").hits} == {name}, "whoever chose it still has it"
    (docs / name).unlink()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of somebody else"))
    library = open_docs()
    library.search("奈良")
    assert uris(library) == {"a.md", "b.md"}


def test_a_terminal_with_a_setting_and_a_server_without_it_do_not_take_turns(docs: Path, open_docs: Opener) -> None:
    settings, name = CHOICES["extensions"]
    build(docs, open_docs, settings, name)
    terminal, server = open_docs(**settings), open_docs()
    for number, library in enumerate((server, terminal, server, terminal)):
        write(docs, name, f"第{number}回の話")
        generation = library.store.generation()
        assert library.search("回の話").hits
        assert uris(library) == {"a.md", name}
        assert library.store.generation() > generation
    built = server.resolve_tool(None).built
    assert terminal.reindex().updated == 0
    assert terminal.resolve_tool(None).built == built


def test_a_mailbox_stays_whatever_size_is_allowed_now(docs: Path, open_docs: Opener) -> None:
    mail = "From a@example.com Mon Jan  1 00:00:00 2024\nFrom: a@example.com\nSubject: 京都\n\n京都の寺の話\n\n"
    (docs / "mail.mbox").write_text(mail, encoding="utf-8")
    library = open_docs()
    library.reindex()
    before = uris(library)
    assert len(before) == 1
    library = open_docs(BUNKO_MEMOS_MAX_FILE_BYTES="10")
    assert library.search("京都").hits
    (docs / "mail.mbox").write_text(mail + mail.replace("京都", "奈良"), encoding="utf-8")
    assert library.search("奈良", mode="bm25").hits
    assert uris(library) > before


def test_chunks_beyond_the_limits_for_folders_stay_too(docs: Path, open_docs: Opener) -> None:
    put(docs, "a.md", long_text("京都"))
    open_docs(BUNKO_CHUNKER_MAX_CHUNK_CHARS="30000").reindex()
    library = open_docs()
    put(docs, "b.md", long_text("奈良"))
    assert library.search("奈良").hits
    assert len(chunk_lengths(library)) == 2


def test_another_value_than_the_users_own_is_not_trusted(docs: Path, open_docs: Opener) -> None:
    settings, name = CHOICES["extensions"]
    build(docs, open_docs, settings, name)
    library = open_docs()
    tool = library.resolve_tool(None)
    forged = {**(tool.built.scanner or {}), "extensions": ["md", "log", "key"]}
    library.store.tools.update_build_info(tool.id, built=replace(tool.built, scanner=forged))
    (docs / "secret.key").write_text("合言葉は山と川\n", encoding="utf-8")
    assert library.search("合言葉", mode="bm25").hits == []
    assert uris(library) == {"a.md", name}


def test_files_that_the_user_includes_are_read_and_those_that_an_index_includes_are_not(
    docs: Path, open_docs: Opener, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(docs, "a.md", "京都の話")
    library = open_docs()
    library.reindex()
    update = ("tool", "update", "-n", "documents", "--include", "*.md", "--include", "*.log", "--docs-dir", str(docs))
    assert run(*update).code == 0
    put(docs, "c.log", "大阪の話")
    assert [hit.uri for hit in library.search("大阪", mode="bm25").hits] == ["c.log"]
    library.reindex(rebuild=True)
    put(docs, "c.log", "神戸の話")
    assert [hit.uri for hit in library.search("神戸", mode="bm25").hits] == ["c.log"]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "of somebody else"))
    put(docs, "d.log", "奈良の話")
    answer = library.search("奈良", mode="bm25")
    assert (answer.hits, uris(library)) == ([], {"a.md", "c.log"})
    [notice] = answer.notices
    assert "its own index may not choose .log." in notice
    command = shlex.split(notice.partition("set that yourself: ")[2])
    assert run(*command[1:]).code == 0
    assert [hit.uri for hit in library.search("奈良", mode="bm25").hits] == ["d.log"]


def test_a_rebuild_without_the_setting_forgets_it(docs: Path, open_docs: Opener) -> None:
    settings, name = CHOICES["extensions"]
    build(docs, open_docs, settings, name)
    library = open_docs()
    tool = library.resolve_tool(None)
    library.reindex(rebuild=True)
    assert uris(library) == {"a.md"}
    library.store.tools.update_build_info(tool.id, built=BuildInfo.from_json(tool.built.to_json()))
    assert library.search("大阪", mode="bm25").hits == []
    assert uris(library) == {"a.md"}


def test_the_shell_and_an_assistant_without_the_variable_find_what_it_chose(
    docs: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (docs / "a.md").write_text("# Notes\n\nSome notes.\n", encoding="utf-8")
    (docs / "c.log").write_text("a log line\n", encoding="utf-8")
    monkeypatch.setenv("BUNKO_SCANNER_FILE_EXTENSIONS", ".md,.log")
    assert run("reindex", "--docs-dir", docs).code == 0
    monkeypatch.delenv("BUNKO_SCANNER_FILE_EXTENSIONS")
    for _ in range(2):
        found = run("search", "log line", "--docs-dir", docs)
        assert (found.code, "c.log" in found.out) == (0, True)
        assert "a different scanner and keeps it" in found.err
    paths = locate_library(docs_dir=docs, environ={})
    registry = ToolRegistry(lambda: open_library(paths, environ={}), toolsets=("folder",), folder=str(docs))
    tools = {tool.name: tool for tool in registry.tools()}
    (docs / "c.log").write_text("a newer log line\n", encoding="utf-8")
    assert "a newer log line" in registry.call(tools["search"], {"query": "log line"}).text
    assert run("reindex", "--docs-dir", docs).code == 0
    registry.close()
    assert "c.log" in run("ls", "--docs-dir", docs).out
