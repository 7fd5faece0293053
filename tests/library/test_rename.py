"""A tool gets another name, and everything about it follows."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bunko.errors import LibraryBusy, SettingsError, UnknownName
from bunko.evaluation.judge import Judgements, default_file
from bunko.library.library import Library
from bunko.library.memos import import_memos
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.tools import catalog
from bunko.library.watch import WatchEvent, watch_library
from bunko.types import Tool
from tests.conftest import Opener, Run

TEXT = "# 京都\n\n京都の寺を三日かけて巡った。庭園の紅葉がとても美しかったことを覚えている。\n"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A library with the tool notes."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    environ = {"BUNKO_LOG_KEEP_SEARCHES": "true", "BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text(TEXT, encoding="utf-8")
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ=environ) as opened:
        opened.add(docs, name="notes", description="Notes")
        opened.import_("notes")
        yield opened


def test_a_renamed_tool_keeps_its_documents_and_computes_nothing_again(library: Library) -> None:
    before = library.search("京都", tool="notes")
    renamed = library.rename_tool("notes", "日記")
    assert (renamed.name, renamed.options.alias) == ("日記", "nikki")
    after = library.search("京都", tool="nikki")
    assert [(hit.tool, hit.uri, hit.score) for hit in after.hits] == [("日記", "a.md", before.hits[0].score)]
    assert after.freshness.generation == before.freshness.generation
    report = library.import_("日記")
    assert (report.unchanged, report.embedded) == (1, 0)
    with pytest.raises(UnknownName, match="no tool called 'notes'"):
        library.search("京都", tool="notes")
    assert library.rename_tool("nikki", "Notes").options.alias is None


def test_a_name_that_is_taken_is_refused_and_nothing_changes(library: Library, tmp_path: Path) -> None:
    library.add(tmp_path / "docs", name="日記")
    for name in ("日記", "nikki", "Nikki", "~x", ""):
        with pytest.raises(SettingsError):
            library.rename_tool("notes", name)
    with pytest.raises(SettingsError, match="A tool named '日記' already exists") as caught:
        library.rename_tool("notes", "日記")
    assert caught.value.hint == "Choose another name."
    assert [tool.name for tool in library.tools()] == ["notes", "日記"]


def test_the_unfinished_rebuild_and_the_logged_searches_of_a_tool_follow_it(library: Library) -> None:
    notes = catalog.get_tool(library.store, "notes")
    library.store.tools.put(replace(notes, name="~notes", id=0))
    library.log_search("京都", "notes")
    library.rename_tool("notes", "diary")
    assert [tool.name for tool in library.store.tools.all()] == ["diary", "~diary"]
    library.log_search("寺", "diary")
    assert {search.tool for search in library.searches.log.all()} == {"diary"}


def test_searches_are_logged_by_the_name_of_the_tool(library: Library) -> None:
    library.rename_tool("notes", "日記")
    library.log_search("京都", "nikki")
    assert [search.tool for search in library.searches.log.all()] == ["日記"]


def test_the_tool_of_a_documents_folder_cannot_be_renamed(open_docs: Opener) -> None:
    library = open_docs()
    with pytest.raises(SettingsError, match="cannot be renamed"):
        library.rename_tool("documents", "notes")


def test_a_tool_whose_pages_are_being_collected_is_not_renamed(library: Library) -> None:
    library.store.tools.put(Tool("pages", kind="web"))
    lock = library.store.lock("web")
    assert lock.acquire(0)
    with pytest.raises(LibraryBusy, match="collecting pages"):
        library.rename_tool("pages", "knowledge")
    lock.release()
    assert library.rename_tool("pages", "knowledge").name == "knowledge"


def test_memos_under_a_new_name_are_still_updated_by_build(library: Library, tmp_path: Path) -> None:
    log = tmp_path / "memo.txt"
    log.write_text("* [2024-01-15] 会議\n予算を決めた。\n", encoding="utf-8")
    import_memos(library, log)
    library.rename_tool("memos", "日誌")
    assert import_memos(library, log).unchanged == 1
    import_memos(library, io.BytesIO(b"* [2024-01-15] A\nText.\n"))
    library.rename_tool("memos", "piped")
    assert import_memos(library, io.BytesIO(b"* [2024-01-15] A\nText.\n")).unchanged == 1
    assert [tool.name for tool in library.tools()] == ["notes", "piped", "日誌"]


def test_a_watch_of_one_tool_follows_its_new_name(library: Library, tmp_path: Path) -> None:
    watched: list[list[str]] = []
    stop = threading.Event()

    def on_event(event: WatchEvent) -> None:
        if event.kind == "watching":
            watched.append([tool.tool for tool in event.watched_tools])
            if len(watched) == 1:
                library.rename_tool("notes", "日記")
            else:
                stop.set()

    open_again = lambda: open_library(library.paths, environ={})  # noqa: E731
    thread = threading.Thread(
        target=lambda: watch_library(open_again, on_event, stop, name="notes", poll=0.05), daemon=True
    )
    thread.start()
    thread.join(30)
    stop.set()
    assert watched == [["notes"], ["日記"]]


def test_the_judgements_of_a_tool_follow_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    flags = ("--library", tmp_path / "library")
    run("tool", "add", "-n", "notes", "-d", "Notes", "-s", tmp_path / "docs", *flags)
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ={}) as library:
        judgements = Judgements(default_file(library, catalog.get_tool(library.store, "notes")), "notes")
        judgements.set_grade("京都", "a.md", 1)
    ran = run("tool", "rename", "notes", "日記", *flags)
    assert ran.out == "Renamed notes to 日記. Assistants see it as nikki.\n"
    [judged] = (tmp_path / "library" / "judged").iterdir()
    assert judged.name == "nikki.json"
    assert json.loads(judged.read_text(encoding="utf-8"))["tool"] == "日記"


def test_a_tool_is_renamed_on_the_command_line_by_either_name(run: Run, tmp_path: Path) -> None:
    flags = ("--library", tmp_path / "library")
    run("tool", "add", "-n", "日記", "-d", "x y", "-s", tmp_path, *flags)
    assert run("tool", "rename", "nikki", "diary", *flags, "--json").json()["name"] == "diary"
    refused = run("tool", "rename", "diary", "search", *flags)
    assert refused.code != 0
    assert "'search' is the name of a built-in tool" in refused.err
    assert run("tool", "rename", "nikki", "x", *flags).code != 0
