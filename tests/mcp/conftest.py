"""Servers over a folder and over a library with several tools."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.conftest import Opener
from tests.mcp.mcp_client import add_tool, write_document


@pytest.fixture
def registry(docs: Path, open_docs: Opener) -> Iterator[ToolRegistry]:
    """The server of one folder, with two documents in it."""
    write_document(docs, "旅/京都.md", "# 京都\n\n京都の寺を巡る旅。バスで清水寺へ行き、歩いて帰る。\n")
    write_document(
        docs, "server.md", "---\ntags: [運用]\n---\n# サーバー\n\nThe server restarts at night. 再起動は夜に行う。\n"
    )
    folder_registry = ToolRegistry(open_docs, folder=str(docs))
    yield folder_registry
    folder_registry.close()


@pytest.fixture
def tool_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A library with three tools."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    home = locate_library(library=tmp_path / "library", environ={})
    with open_library(home, environ={"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}) as library:
        add_tool(library, "recipes", "Recipes of the house.", "玉葱を炒めてから水を加える。")
        add_tool(library, "旅の記録", "旅先で書いた記録。", "京都の寺を巡る旅。")
        add_tool(library, "search", "A tool whose name is taken.", "特許の出願の手順。")
        library.reindex()
        yield library


@pytest.fixture
def captured_log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """The captured log, whatever its configuration."""
    monkeypatch.setattr(logging.getLogger("bunko"), "propagate", True)
    return caplog
