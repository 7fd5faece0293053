"""Pictures of the tables for people, of a library with Japanese and English tools."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bunko.interfaces.cli.commands import embedders
from bunko.library.admin.provider_status import ProviderStatus
from tests.cli.pictures import Screen, Terminal, check_picture
from tests.cli.processes import at_a_terminal, subprocess_environment
from tests.conftest import Run

WIDTHS = (80, 120)
_SIZE = re.compile(r"[\d.]+ [kM]?B\b")
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?3[0-7]m")


def hide_sizes(screen: Screen) -> Screen:
    """Replace the digits of sizes, which depend on the version of SQLite, and leave out the versions of packages."""
    rows = [_SIZE.sub(lambda size: re.sub(r"\d", "0", size[0]), row) for row in screen.rows]
    if rows[0].startswith("Python 3."):
        rows = rows[next(index for index, row in enumerate(rows) if row.startswith("  ")) :]
    return replace(screen, rows=rows)


@pytest.mark.usefixtures("fixed_age", "shelf")
def test_tables_of_a_library_look_like_their_pictures(terminal: Terminal) -> None:
    for name, command in {
        "status": ("status",),
        "tool-ls": ("tool", "ls", "--all"),
        "tool-check": ("tool", "check"),
        "recent": ("recent",),
        "ls": ("ls",),
        "tags": ("tags",),
        "doctor": ("doctor",),
    }.items():
        for width in WIDTHS:
            check_picture(f"{name}-{width}", hide_sizes(terminal(*command, width=width)))


def test_the_table_of_embedders_looks_like_its_pictures(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    openai = ProviderStatus(
        "openai", "Embeddings from OpenAI, or any server with an OpenAI-compatible API.", True,
        "No API key is set. Set OPENAI_API_KEY to a valid key.", "text-embedding-3-small",
        'pip install "bunko[openai]"', "OPENAI_API_KEY", True,
    )  # fmt: skip
    package = 'The package torch is not installed; install it with: pip install "bunko[transformers]".'
    statuses = [
        ProviderStatus("static", "Semantic search in Japanese and English, offline.", False, "", "1", "", "", False),
        openai,
        replace(openai, name="openrouter", is_used=False, model="mixedbread-ai/mxbai-embed-large-v1", key_name="A_KEY"),
        ProviderStatus(
            "transformers", "Run PLaMo or another embedding model on this machine, through transformers and torch.",
            False, package, "pfnet/plamo-embedding-1b", 'pip install "bunko[transformers]"', "", False,
        ),
    ]  # fmt: skip
    monkeypatch.setattr(embedders, "provider_statuses", lambda _: statuses)
    for width in WIDTHS:
        check_picture(f"embedders-{width}", terminal("embedders", width=width))


@pytest.mark.slow
@pytest.mark.usefixtures("fixed_age", "shelf")
def test_no_table_is_wider_than_the_terminal_and_no_key_of_vectors_is_shown(terminal: Terminal) -> None:
    for command in (("status",), ("status", "-n", "日記-diary"), ("tool", "ls", "--all"), ("recent",), ("doctor",)):
        for width in (40, 60, 100):
            screen = terminal(*command, width=width)
            assert not [row for row in screen.rows if "static:" in row.replace("static: ", "")]
            lines = _STYLE.sub("", screen.written).splitlines()
            rule = next(line for line in lines if line.startswith("──"))
            assert len(rule) <= width


@pytest.mark.slow
def test_without_colour_a_table_says_the_same(notes: Path, tmp_path: Path) -> None:
    environment = subprocess_environment(tmp_path, TERM="xterm-256color", COLUMNS="80")
    environment.pop("NO_COLOR", None)
    at_a_terminal("reindex", "--docs-dir", notes, env=environment)
    coloured = at_a_terminal("doctor", "--docs-dir", notes, env=environment)
    plain = at_a_terminal("doctor", "--docs-dir", notes, env=environment | {"NO_COLOR": "1"})
    assert _COLOUR.search(coloured)
    assert not _COLOUR.search(plain)
    assert _STYLE.sub("", plain) == _STYLE.sub("", coloured)


def test_a_library_without_tools_or_pages_says_so(terminal: Terminal, run: Run, docs: Path) -> None:
    run("tool", "add", "-n", "notes", "-d", "Notes of this year", "-s", docs)
    assert terminal("web", "status", width=80).rows == ["No web pages yet. Add one with: bunko web add URL"]
    run("tool", "disable", "-n", "notes")
    assert terminal("tool", "ls", width=80).rows == ["No active tools; --all lists the others."]
    run("tool", "delete", "-n", "notes", "-y")
    for command in (("tool", "ls"), ("tool", "ls", "--all"), ("status",)):
        assert terminal(*command, width=80).rows[-1].startswith("No tools yet.")
