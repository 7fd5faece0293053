"""Searches are kept only if the settings say so, and `bunko judge` offers and forgets them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Opener, Run


def test_nothing_is_kept_unless_the_settings_say_so(run: Run, notes: Path) -> None:
    assert run("search", "京都", "--docs-dir", notes).code == 0
    listed = run("judge", "--kept", "--docs-dir", notes, "--json").json()
    assert listed == {"keeping": False, "searches": []}
    assert "京都" not in str(tables(notes))
    # A folder of documents may come from somebody else, who has no right to what is asked there.
    (notes / "bunko.toml").write_text("[log]\nkeep_searches = true\n", encoding="utf-8")
    assert "log.keep_searches in" in run("search", "京都", "--docs-dir", notes).err
    assert run("judge", "--kept", "--docs-dir", notes, "--json").json()["searches"] == []


def tables(notes: Path) -> list[str]:
    connection = sqlite3.connect(notes / ".rag-index" / "library.db")
    found = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    connection.close()
    return found


def test_searches_are_kept_offered_most_frequent_first_and_forgotten(
    run: Run, judge: Callable[..., str], notes: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "asked" not in tables(notes)
    monkeypatch.setenv("BUNKO_LOG_KEEP_SEARCHES", "true")
    for query in ("backup", "京都の寺", "京都の寺"):
        assert run("search", query, "--docs-dir", notes).code == 0
    assert run("search", "京都の寺", "-n", "documents", "--docs-dir", notes).code == 0
    listed = run("judge", "--kept", "--docs-dir", notes).out.splitlines()
    assert [line.split("\t")[0::2] for line in listed] == [["2", "(all)"], ["1", "(all)"], ["1", "documents"]]
    printed = judge(keys="y" * 20)
    assert "Query 1 of 2: 京都の寺" in printed
    assert "Query 2 of 2: backup" in printed
    assert run("judge", "--docs-dir", notes, "--output", output).code == 2, "all are judged"
    assert run("judge", "--clear-kept", "--docs-dir", notes).out == "Deleted 3 recorded searches.\n"
    assert run("judge", "--kept", "--docs-dir", notes, "--json").json()["searches"] == []
    assert run("judge", "--kept", "--clear-kept", "--docs-dir", notes).code == 2


def test_what_was_forgotten_is_not_left_in_the_file(run: Run, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNKO_LOG_KEEP_SEARCHES", "true")
    database = notes / ".rag-index" / "library.db"
    secret = "xyzzyplughplover"
    assert run("search", secret, "--docs-dir", notes).code == 1
    assert secret.encode() in database.read_bytes()
    assert run("judge", "--clear-kept", "--docs-dir", notes).code == 0
    assert secret.encode() not in database.read_bytes()


def test_a_search_does_not_wait_for_a_writer_to_be_kept(notes: Path, open_docs: Opener) -> None:
    library = open_docs(BUNKO_LOG_KEEP_SEARCHES="true")
    writer = sqlite3.connect(library.paths.database, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    library.log_search("京都")  # would wait half a minute, then fail
    writer.execute("ROLLBACK")
    writer.close()
    assert library.searches.log.all() == []
    library.log_search("京都")
    assert [one.query for one in library.searches.log.all()] == ["京都"]


def test_a_library_that_may_only_be_read_keeps_nothing_and_answers(notes: Path, open_docs: Opener) -> None:
    open_docs(BUNKO_LOG_KEEP_SEARCHES="true").log_search("before")
    library = open_docs(read_only=True, BUNKO_LOG_KEEP_SEARCHES="true")
    assert library.search("京都").hits
    library.log_search("京都")
    assert [one.query for one in library.searches.log.all()] == ["before"]


def test_an_assistants_searches_are_kept_once_however_many_pages_it_reads(notes: Path, open_docs: Opener) -> None:
    from threading import Event

    from bunko.interfaces.tools import search_tool
    from bunko.interfaces.tools.tool import ToolCall
    from bunko.library.access import LibraryAccess
    from bunko.library.rights.audit import local_caller

    library = open_docs(BUNKO_LOG_KEEP_SEARCHES="true")
    given = {"query": "京都の寺", "top_k": 1, "extract": "chunk", "response_format": "concise"}

    def search(**more: Any) -> Any:
        return search_tool.search(
            ToolCall(LibraryAccess(library, local_caller("stdio")), given | more, lambda *_: None, Event()), None
        )

    first = search()
    cursor = first.structured["next_cursor"]
    search(cursor=cursor)
    assert [(one.query, one.count) for one in library.searches.log.all()] == [("京都の寺", 1)]
