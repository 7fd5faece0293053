"""What bunko costs a model: the schemas it reads at every start, and what stands around the text of an answer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.mcp.server import tool_to_mcp
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.toolsets import TOOLSET_NAMES
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.paths import locate_library
from bunko.text.token_count import estimate_tokens
from tests.conftest import Opener
from tests.mcp.mcp_client import add_tool

SAMPLE = Path(__file__).parents[2] / "examples" / "library"
QUERIES = (
    "走る", "玉ねぎ", "データベース", "butter", "holiday", "休日", "病気で休みたい", "stationId", "stale forecast",
    "有給休暇はいつまでに申請すればよいですか", "How do I roll back a release?", "how to restart the server",
    "バックアップの手順",
)  # fmt: skip
FOLDERS = {
    "handbook": "How we work: on call, holidays, remote work, setup.",
    "project": "Shiomi, the tide app: API, stations, design.",
    "recipes": "Recipes of the house, in Japanese and English.",
    "travel": "Travel notes: Kyoto, Lisbon.",
    "decisions": "Decisions that we took, and why.",
}


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_a_default_answer_costs_at_most_1_6_times_its_text(docs: Path, open_docs: Opener) -> None:
    shutil.copytree(SAMPLE, docs, dirs_exist_ok=True)
    registry = ToolRegistry(open_docs, folder=str(docs))
    [tool] = [tool for tool in registry.tools() if tool.name == "search"]
    text_tokens = answer_tokens = 0
    for query in QUERIES:
        structured = registry.call(tool, {"query": query}).structured
        text_tokens += sum(estimate_tokens(result["content"]) for result in structured["results"])
        answer_tokens += estimate_tokens(json.dumps(structured, ensure_ascii=False))
        for result in structured["results"]:
            assert {"citation", "content", "hash", "uri"} <= result.keys()
    registry.close()
    assert answer_tokens <= 1.6 * text_tokens


@pytest.fixture
def five_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A library with five tools."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ={}) as library:
        for name, description in FOLDERS.items():
            add_tool(library, name, description, "本文。")
        yield library


def list_all_tools(library: Library) -> dict[str, dict[str, Any]]:
    """Return the tools of all toolsets as a server sends them, by name."""
    tools = ToolRegistry(lambda: library, toolsets=TOOLSET_NAMES).tools()
    return {tool.name: tool_to_mcp(tool).model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools}


def test_all_toolsets_with_five_folders_cost_at_most_3000_tokens(five_folders: Library) -> None:
    tools = list_all_tools(five_folders)
    assert tools.keys() > FOLDERS.keys()
    # The estimate counts the punctuation of JSON a quarter too high; tests/slow counts with real vocabularies.
    assert estimate_tokens(compact(list(tools.values()))) <= 3000 * 1.25


def test_the_output_schema_of_a_folder_is_a_small_part_of_what_it_costs(five_folders: Library) -> None:
    tools = list_all_tools(five_folders)
    for name in FOLDERS:
        output = estimate_tokens(compact(tools[name]["outputSchema"]))
        assert output <= 0.1 * estimate_tokens(compact(tools[name]))
