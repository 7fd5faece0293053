"""How long the answers of a chat model are cached, and for whom."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from time import time

import pytest

from tests.llm.notes import QUESTION, WORDS, Notes
from tests.loopback import chatting


def test_the_same_query_is_asked_once_until_the_answer_is_out_of_date(notes: Notes) -> None:
    assert [notes.ask().rewritten_query for _ in range(3)] == [WORDS] * 3
    assert len(notes.service.asked) == 1
    [(kind, value, until)] = notes.rows()
    assert (kind, value) == ("rewrite", WORDS)
    assert time() + 600_000 < until < time() + 605_000
    notes.ask(BUNKO_REWRITE_MODEL="another")  # whose words may be others
    assert len(notes.service.asked) == 2
    notes.rows(f"UPDATE answers SET until = {time() - 1}")
    assert notes.ask().rewritten_query == WORDS
    assert len(notes.service.asked) == 3
    assert len(notes.rows()) == 1  # what is out of date has gone


def test_nothing_is_kept_where_the_settings_keep_it_for_no_time(notes: Notes) -> None:
    for _ in range(2):
        notes.ask(BUNKO_REWRITE_CACHE_SECONDS="0")
    assert len(notes.service.asked) == 2
    assert notes.rows() == []


def test_what_lies_in_a_library_is_checked_like_any_answer(notes: Notes) -> None:
    notes.ask()
    notes.rows("UPDATE answers SET value = '{\"tool\": 1}'")
    answer = notes.ask()
    assert answer.rewritten_query == ""
    assert "returned nothing that can be searched for" in answer.notices[0]


def test_a_library_that_may_not_be_written_answers_and_keeps_nothing(notes: Notes) -> None:
    from bunko.library.open import open_library
    from bunko.library.opening.paths import locate_library

    environ = chatting(notes.service)
    home = locate_library(library=notes.folder / "library", environ=environ)
    with open_library(home, environ=environ, read_only=True) as library:
        for _ in range(2):
            assert library.search(QUESTION, mode="bm25", rewrite=True).rewritten_query == WORDS
    assert len(notes.service.asked) == 2
    assert notes.rows() == []


def test_a_library_that_is_being_written_is_not_waited_for(notes: Notes) -> None:
    library = notes.library(BUNKO_SEARCH_FRESHNESS_SECONDS="1000")
    library.search("走る", mode="bm25")
    other = sqlite3.connect(notes.folder / "library" / "library.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert library.search(QUESTION, mode="bm25", rewrite=True).rewritten_query == WORDS
    other.execute("ROLLBACK")
    other.close()
    assert notes.rows() == []


@pytest.mark.slow
def test_two_processes_share_what_was_answered(notes: Notes) -> None:
    environ = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "XDG_CONFIG_HOME") if name in os.environ}
    command = [sys.executable, "-m", "bunko", "search", QUESTION, "--rewrite", "--library"]
    for _ in range(2):
        ran = subprocess.run(
            [*command, str(notes.folder / "library")],
            env=environ | chatting(notes.service) | {"PYTHONUTF8": "1"},
            capture_output=True,
            encoding="utf-8",
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.startswith(f"searched: {WORDS}\n")
    assert len(notes.service.asked) == 1
