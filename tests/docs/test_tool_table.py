"""The tables of MCP tools in the READMEs say what the tools are."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = runpy.run_path(str(ROOT / "docs" / "tools.py"))


@pytest.mark.parametrize(("page", "language"), [("README.md", "english"), ("README.ja.md", "japanese")])
def test_the_table_of_tools_is_fresh(page: str, language: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert TOOLS["refreshed"](text, TOOLS[language]()) == text, "Run .venv/bin/python docs/tools.py."


def test_every_fixed_tool_is_in_the_table() -> None:
    assert {"job", "query_memos", "reindex", "search", "verify"} <= {tool.name for tool in TOOLS["fixed"]()}
