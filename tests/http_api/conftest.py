"""A library with two tools, and a client of its API."""

from __future__ import annotations

from pathlib import Path

import pytest

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
