"""A library with two tools, and a client of its API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from tests.conftest import Opener
from tests.http_api.client import ApiClient
from tests.mcp.mcp_client import FILLER


@pytest.fixture
def client(docs: Path, open_docs: Opener) -> ApiClient:
    """A client with all rights over a small folder."""
    (docs / "guide").mkdir()
    guide = "# 導入\n\n蜜柑の設定を行う。\n\n## Install\n\nRun the installer.\n"
    (docs / "guide/setup.md").write_text(guide + FILLER, "utf-8")
    plain = "---\ndate: 2024-05-01\ntags: [果物]\n---\n# 葡萄\n\n葡萄を食べる。"
    (docs / "plain.md").write_text(plain + FILLER, "utf-8")
    return ApiClient(open_docs(BUNKO_EMBEDDING_PROVIDER="none"))


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A library without tools."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    environ = {"BUNKO_SEARCH_FRESHNESS_SECONDS": "0", "BUNKO_EMBEDDING_PROVIDER": "none"}
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ=environ) as opened:
        yield opened
