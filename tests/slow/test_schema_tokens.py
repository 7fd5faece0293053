"""What the tools cost a model's context, counted with real ranks, and how near our own estimate comes to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.text.token_count import estimate_tokens
from bunko.types import Tool
from tests.mcp.test_token_cost import (
    FOLDERS,
    PAGE_QUERIES,
    PAGES,
    SAMPLE,
    compact,
    default_answers,
    five_folders,
    list_all_tools,
)  # fmt: skip
from tests.slow import corpus, npm, serving

pytestmark = pytest.mark.slow

MOST_FOLDER, MOST_ALL = 1_300, 3_500
__all__ = ["five_folders"]  # a fixture
COUNT = Path(__file__).parent / "node" / "count_tokens.js"


def counted(texts: list[str]) -> dict[str, list[int]]:
    """Return the real numbers of tokens of some texts, by vocabulary."""
    done = npm.run("node", "-e", COUNT.read_text(encoding="utf-8"), text=json.dumps(texts))
    assert done.returncode == 0, done.stderr
    found: dict[str, list[int]] = json.loads(done.stdout)
    return found


def listed(docs: Path, *options: str) -> list[dict[str, Any]]:
    """Return the tools as our server sends them."""
    with serving.Piped(docs, *options) as server:
        tools: list[dict[str, Any]] = server.ask("tools/list")["result"]["tools"]
        return tools


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "my documents"
    folder.mkdir()
    corpus.write(folder, {"京都.md": "# 京都\n\n寺と庭。\n"})
    return folder


def test_the_folder_toolset_is_cheap(docs: Path) -> None:
    sent = compact({"tools": listed(docs, "--toolsets", "folder")})
    found = {name: counts[0] for name, counts in counted([sent]).items()}
    assert max(found.values()) <= MOST_FOLDER, found


def test_all_toolsets_with_five_folders_are_cheap(five_folders: Library) -> None:
    sent = compact({"tools": list(list_all_tools(five_folders).values())})
    found = {name: counts[0] for name, counts in counted([sent]).items()}
    assert max(found.values()) <= MOST_ALL, found


def test_a_default_answer_over_long_pages_costs_less_than_1_8_times_its_text(tmp_path: Path) -> None:
    texts: list[str] = []
    answers: list[str] = []
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ={}) as library:
        library.store.tools.put(Tool("pages", "folder", "The manual.", str(PAGES)))
        library.store.tools.put(Tool("shiomi", "folder", FOLDERS["project"], str(SAMPLE / "project")))
        library.reindex()
        registry = ToolRegistry(lambda: library)
        for tool in registry.tools():
            if tool.name in ("search", "pages"):
                found = default_answers(registry, tool, PAGE_QUERIES)
                texts, answers = texts + found[0], answers + found[1]
    cost = {
        name: sum(counts[len(texts) :]) / sum(counts[: len(texts)]) for name, counts in counted(texts + answers).items()
    }
    assert max(cost.values()) < 1.8, cost


def test_the_estimate_is_near_the_real_count_in_japanese_and_english(docs: Path) -> None:
    paths = [*(npm.ROOT / "examples" / "library").rglob("*.md"), *npm.ROOT.glob("README*.md")]
    texts = {path.relative_to(npm.ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    texts |= {name: corpus.document(name, sections=2) for name in ("一", "two")}
    texts["tools as JSON"] = compact(listed(docs))
    estimates = [estimate_tokens(text) for text in texts.values()]
    real = counted(list(texts.values()))
    # In sum, since short texts vary; never much too low, since then an answer would be larger than a client allows.
    assert abs(sum(estimates) / sum(real["cl100k"]) - 1) <= 0.25
    low = {
        name: (estimate, count)
        for name, estimate, count in zip(texts, estimates, real["o200k"], strict=True)
        if estimate < 0.8 * count
    }
    assert not low
