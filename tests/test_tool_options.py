"""The options of a tool: what is stored is read, and what is not understood is kept."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bunko.errors import SettingsError
from bunko.library.tools import catalog
from bunko.stores import memory, sqlite
from bunko.types import Tool
from bunko.types.tool_options import NO_OPTIONS, ToolOptions

STORED: dict[str, Any] = {
    "chunk_overlap": 0,
    "chunk_size": 512,
    "chunker": "tokens",
    "crawls": {"https://example.com/": {"depth": 2}},
    "embedder": "none",
    "exclude": ["drafts/"],
    "extract": "section",
    "include": ["*.md"],
    "search": {"k1": 0.4},
}


def test_stored_options_are_read_and_written_unchanged() -> None:
    options = ToolOptions.from_json(STORED)
    assert options == ToolOptions(
        include=("*.md",),
        exclude=("drafts/",),
        extract="section",
        embedder="none",
        chunker="tokens",
        chunk_size=512,
        chunk_overlap=0,
        search={"k1": 0.4},
        crawls={"https://example.com/": {"depth": 2}},
    )
    assert json.dumps(options.to_json()) == json.dumps(STORED)
    assert ToolOptions.from_json({}) == NO_OPTIONS
    assert NO_OPTIONS.to_json() == {}


@pytest.mark.parametrize(
    "newer",
    [{"reranker": {"model": "x"}}, {"extract": "page"}, {"include": {"glob": "*.md"}}, {"chunk_size": "512"}],
)
def test_an_option_of_a_newer_version_has_no_effect_and_is_kept(newer: dict[str, Any]) -> None:
    options = ToolOptions.from_json(newer)
    assert replace(options, other={}) == NO_OPTIONS
    changed = replace(options, embedder="none")
    assert changed.to_json() == newer | {"embedder": "none"}


def test_a_library_keeps_the_options_of_a_newer_version(tmp_path: Path) -> None:
    database = tmp_path / "library.db"
    store = sqlite.build(database)
    store.tools.put(Tool("notes"))
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE tools SET options = ?", (json.dumps({"exclude": ["x"], "reranker": "large"}),))
    connection.close()
    [tool] = store.tools.all()
    assert tool.options.exclude == ("x",)
    store.tools.put(replace(tool, options=replace(tool.options, extract="full")))
    store.close()
    with sqlite3.connect(database) as connection:
        [(text,)] = connection.execute("SELECT options FROM tools")
    connection.close()
    assert json.loads(text) == {"exclude": ["x"], "extract": "full", "reranker": "large"}


def test_another_chunker_replaces_size_and_overlap() -> None:
    tokens = NO_OPTIONS.with_chunker("tokens", 1024, 0)
    assert tokens.to_json() == {"chunk_overlap": 0, "chunk_size": 1024, "chunker": "tokens"}
    assert tokens.with_chunker("headings", 1024, 0).to_json() == {"chunker": "headings"}
    with pytest.raises(SettingsError, match="not possible"):
        NO_OPTIONS.with_chunker("tokens", 100, 0)


def test_an_overlap_of_0_survives_a_change_of_the_tool(tmp_path: Path) -> None:
    store = memory.build()
    catalog.Tools(store).add("docs", "About", tmp_path, options=NO_OPTIONS.with_chunker("tokens", 512, 0))
    changed = catalog.Tools(store).update("docs", include=["*.md"], exclude=[])
    assert changed.options == ToolOptions(("*.md",), chunker="tokens", chunk_size=512, chunk_overlap=0)
