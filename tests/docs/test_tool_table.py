"""Test that the tables of MCP tools in the docs match the tools."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = runpy.run_path(str(ROOT / "docs" / "tools.py"))


@pytest.mark.parametrize(
    ("page", "language"), [("docs/tools.md", "english_table"), ("docs/guide.ja.md", "japanese_table")]
)
def test_the_table_of_tools_is_fresh(page: str, language: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert TOOLS["replace_table"](text, TOOLS[language]()) == text, "Run .venv/bin/python docs/tools.py."


def test_every_fixed_tool_is_in_the_table() -> None:
    assert {"job", "query_memos", "reindex", "search", "verify"} <= {tool.name for tool in TOOLS["fixed_tools"]()}
