"""What bunko costs a model: the schemas it reads at every start, and what stands around the text of an answer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.mcp.server import describe_tool
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.search_tool import WORDING_PARAMS, WORDINGS_ADVICE
from bunko.interfaces.tools.tool import ToolDefinition
from bunko.interfaces.tools.toolsets import TOOLSET_NAMES
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.text.token_count import estimate_tokens
from tests.conftest import Opener
from tests.mcp.mcp_client import add_tool

SAMPLE = Path(__file__).parents[2] / "examples" / "library"
PAGES = Path(__file__).parents[2] / "docs"  # long ones, in both languages
QUERIES = (
    "走る", "玉ねぎ", "データベース", "butter", "holiday", "休日", "病気で休みたい", "stationId", "stale forecast",
    "有給休暇はいつまでに申請すればよいですか", "How do I roll back a release?", "how to restart the server",
    "バックアップの手順",
)  # fmt: skip
PAGE_QUERIES = (
    "設定の優先順位", "スコアの意味", "Slack のボットを動かす", "インデックスを作り直す", "権限とトークン",
    "robots.txt", "how to add a web page", "which embedding model is used", "token budget of a reply", "backup",
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


def default_answers(
    registry: ToolRegistry, tool: ToolDefinition, queries: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the texts that a search finds, and the structured answers that have them."""
    answers = [registry.call(tool, {"query": query}).structured for query in queries]
    texts = ["\n".join(result["content"] for result in answer["results"]) for answer in answers]
    return texts, list(map(compact, answers))


@pytest.mark.slow
def test_a_default_answer_over_long_pages_costs_at_most_1_4_times_its_text(docs: Path, open_docs: Opener) -> None:
    shutil.copytree(PAGES, docs, dirs_exist_ok=True)
    registry = ToolRegistry(open_docs, folder=str(docs))
    registry.library().reindex()  # a search does not wait for all of it on a busy machine
    [tool] = [tool for tool in registry.tools() if tool.name == "search"]
    texts, answers = default_answers(registry, tool, PAGE_QUERIES)
    registry.close()
    assert sum(map(estimate_tokens, answers)) <= 1.4 * sum(map(estimate_tokens, texts))


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
    return {tool.name: describe_tool(tool) for tool in tools}


def test_all_toolsets_with_five_folders_cost_at_most_3450_tokens(five_folders: Library) -> None:
    tools = list_all_tools(five_folders)
    assert tools.keys() > FOLDERS.keys()
    # The estimate counts the punctuation of JSON too high by a third; tests/slow counts with real vocabularies.
    assert estimate_tokens(compact(list(tools.values()))) <= 3450 * 1.3


def test_other_wordings_cost_at_most_120_tokens_a_tool(five_folders: Library) -> None:
    tools = {name: tool for name, tool in list_all_tools(five_folders).items() if "also" in properties(tool)}
    assert {"search", "query_memos", "rag_search", *FOLDERS} <= set(tools)
    for tool in tools.values():
        plain = json.loads(compact(tool))
        plain["description"] = plain["description"].replace(WORDINGS_ADVICE, "")
        for param in WORDING_PARAMS:
            del properties(plain)[param.name]
        assert estimate_tokens(compact(tool)) - estimate_tokens(compact(plain)) <= 120


def properties(tool: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = tool["inputSchema"]["properties"]
    return found


def test_the_output_schema_of_a_folder_is_a_small_part_of_what_it_costs(five_folders: Library) -> None:
    tools = list_all_tools(five_folders)
    for name in FOLDERS:
        output = estimate_tokens(compact(tools[name]["outputSchema"]))
        assert output <= 0.1 * estimate_tokens(compact(tools[name]))
