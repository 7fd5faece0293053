"""`bunko ask`: what it prints in a pipe, as JSON and at a terminal, and its exit codes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.pictures import Terminal, check_picture
from tests.conftest import Run
from tests.loopback import Loopback, chatting, said, saying

BACKUPS = "# Backups\n\nBackups are kept for 35 days in the Osaka region. Restoring one takes two hours.\n"
QUESTION = "How long are backups kept?"
WRITTEN = (
    "Backups are kept for 35 days [1]. They are encrypted with AES-256 [1]. Restoring one takes two hours.\n\n"
    "- Bob keeps the keys [9]"
)


@pytest.fixture
def library(docs: Path) -> Path:
    (docs / "backups.md").write_text(BACKUPS, encoding="utf-8")
    return docs


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    with saying(WRITTEN) as loopback:
        for name, value in chatting(loopback).items():
            monkeypatch.setenv(name, value)
        yield loopback


def test_a_quoted_answer_has_sentences_and_then_sources(run: Run, library: Path) -> None:
    ran = run("ask", QUESTION, "--docs-dir", library)
    assert (ran.code, ran.out.splitlines()) == (
        0,
        ["Backups are kept for 35 days in the Osaka region. [1]", "", "[1] backups.md:L1-L3"],
    )
    assert "quoted from your documents" in ran.err


def test_the_exit_code_is_1_if_the_library_does_not_say(run: Run, library: Path) -> None:
    ran = run("ask", "What is the capital of Mongolia?", "--docs-dir", library)
    assert (ran.code, ran.out) == (1, "The library does not say.\n")
    ran = run("ask", "What is the capital of Mongolia?", "--docs-dir", library, "--json")
    assert ran.code == 1
    assert '"found": false' in ran.out


def test_what_the_sources_do_not_say_is_marked(run: Run, library: Path, service: Loopback) -> None:
    out = run("ask", QUESTION, "--docs-dir", library).out
    assert out.splitlines() == [
        "Backups are kept for 35 days. [1] They are encrypted with AES-256. [1] (not in the sources: AES-256,"
        " encrypted) Restoring one takes two hours. [+1]",
        "",
        "- Bob keeps the keys (there is no source [9]; not in the sources: Bob, keeps, keys)",
        "",
        "[1] backups.md:L1-L3",
    ]


def test_strict_leaves_out_what_the_sources_do_not_say(run: Run, library: Path, service: Loopback) -> None:
    out = run("ask", QUESTION, "--docs-dir", library, "--strict").out
    assert out.splitlines()[0] == "Backups are kept for 35 days. [1] Restoring one takes two hours. [+1]"
    assert "Bob" not in out
    service.always = lambda _: said("Bob keeps the keys [1].")
    ran = run("ask", QUESTION, "--docs-dir", library, "--strict")
    assert (ran.code, ran.out) == (1, "The library does not say.\n")


def test_json_has_every_sentence_with_its_citations_and_every_source(
    run: Run, library: Path, service: Loopback
) -> None:
    answer: Any = run("ask", QUESTION, "--docs-dir", library, "--json").json()
    assert (answer["found"], answer["model"]) == (True, "openrouter:openai/gpt-4o-mini")
    assert [sentence["status"] for sentence in answer["sentences"]] == [
        "supported", "unsupported", "supported", "unsupported",
    ]  # fmt: skip
    assert answer["sentences"][2]["citations"] == [
        {"label": "[1]", "source": 1, "state": "same", "supports": True, "added": True}
    ]
    assert answer["sentences"][3]["citations"][0] == {
        "label": "[9]", "source": None, "state": "not_shown", "supports": False, "added": False,
    }  # fmt: skip
    [source] = answer["sources"]
    assert (source["citation"], source["cited"]) == ("backups.md:L1-L3", True)


def test_one_tool_can_be_asked(run: Run, docs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (docs / "backups.md").write_text(BACKUPS, encoding="utf-8")
    (other / "cats.md").write_text("Cats sleep for 16 hours.\n", encoding="utf-8")
    place = ("--library", tmp_path / "library")
    run("add", docs, "--name", "ops", *place)
    run("add", other, "--name", "cats", *place)
    assert run("ask", QUESTION, "-n", "ops", *place).code == 0
    assert run("ask", QUESTION, "-n", "cats", *place).code == 1


@pytest.mark.parametrize("width", [80, 120])
def test_an_answer_at_a_terminal_picture(terminal: Terminal, library: Path, width: int) -> None:
    check_picture(f"ask-{width}", terminal("ask", QUESTION, "--docs-dir", library, width=width))


def test_a_marked_answer_at_a_terminal_picture(terminal: Terminal, library: Path, service: Loopback) -> None:
    check_picture("ask-marked-80", terminal("ask", QUESTION, "--docs-dir", library, width=80))
