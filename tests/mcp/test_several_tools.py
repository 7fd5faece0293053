"""A library with several tools: no document is taken for another one of the same name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types import Tool
from tests.mcp.mcp_client import add_tool, call, error_of, structure_of, text_of


def answer(library: Library, name: str, **arguments: Any) -> dict[str, Any]:
    return structure_of(call(ToolRegistry(lambda: library), name, arguments))


def refusal(library: Library, name: str, **arguments: Any) -> str:
    return error_of(call(ToolRegistry(lambda: library), name, arguments))


def test_a_path_of_several_tools_is_not_guessed_but_asked_for_by_address(tool_library: Library) -> None:
    found = answer(tool_library, "tabi_no_kiroku", query="京都の寺", top_k=1)
    [hit] = found["results"]
    assert hit["citation"].startswith("one.md:")
    addresses = "bunko://recipes/one.md, bunko://search/one.md, bunko://tabi_no_kiroku/one.md"
    for name, arguments in (("read", {"document": hit["citation"]}), ("list", {"outline": "one.md"})):
        said = refusal(tool_library, name, **arguments)
        assert said == f"Several tools have a document 'one.md'. Give one of these addresses: {addresses}."
    document = f"{found['tool']}/{hit['file_path']}"
    assert "京都の寺" in answer(tool_library, "read", document=document)["text"]
    assert "京都の寺" in answer(tool_library, "read", document="one.md", tool="tabi_no_kiroku")["text"]


def test_the_same_text_in_two_tools_is_read_from_either(tool_library: Library) -> None:
    [source] = [tool.source for tool in tool_library.tools() if tool.name == "recipes"]
    for tool in tool_library.tools():
        tool_library.store.tools.put(replace(tool, source=source))
    tool_library.reindex()
    assert "玉葱" in answer(tool_library, "read", document="one.md")["text"]


def test_a_path_may_begin_with_the_name_of_its_tool(tool_library: Library) -> None:
    for document in ("tabi_no_kiroku/one.md", "旅の記録/one.md:L1-L3"):
        found = answer(tool_library, "read", document=document)
        assert found["uri"] == "bunko://tabi_no_kiroku/one.md"
        assert "京都の寺" in found["text"]
    assert answer(tool_library, "list", outline="recipes/one.md")["uri"] == "bunko://recipes/one.md"


def test_a_citation_is_verified_by_the_address_of_its_document(tool_library: Library) -> None:
    [hit] = answer(tool_library, "recipes", query="玉葱", top_k=1)["results"]
    lines = hit["citation"].rpartition(":")[2]
    for place in (f"bunko://recipes/one.md:{lines}", f"recipes/one.md:{lines}"):
        checked = answer(tool_library, "verify", citation=place, hash=hit["hash"])
        assert checked == {"status": "same", "citation": hit["citation"]}
    elsewhere = answer(tool_library, "verify", citation=f"bunko://tabi_no_kiroku/one.md:{lines}", hash=hit["hash"])
    assert elsewhere["status"] == "changed"


def test_a_list_names_the_tool_of_each_document_also_if_a_page_has_those_of_one(tool_library: Library) -> None:
    [row] = answer(tool_library, "list", limit=1)["documents"]
    assert row["tool"] == "recipes"
    [row] = answer(tool_library, "list", tool="recipes")["documents"]
    assert "tool" not in row


def test_a_long_outline_continues_with_a_cursor(tool_library: Library) -> None:
    [tool] = [tool for tool in tool_library.tools() if tool.name == "recipes"]
    headings = [f"{'長い見出し' * 10}{number}" for number in range(400)]
    text = "".join(f"## {heading}\n\n本文。\n\n" for heading in headings)
    (Path(tool.source) / "many.md").write_text(text, encoding="utf-8")
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        result = call(ToolRegistry(lambda: tool_library), "list", {"outline": "many.md", **cursor})
        page = structure_of(result)
        assert page["total"] == 400
        seen += [row["heading"] for row in page["headings"]]
        if "next_cursor" not in page:
            break
        assert f"cursor {page['next_cursor']}" in text_of(result)
        cursor = {"cursor": page["next_cursor"]}
    assert cursor, "it does not fit on one page"
    assert seen == headings


def test_a_memo_whose_id_does_not_say_them_is_found_with_its_title_and_date(tool_library: Library) -> None:
    path = tool_library.paths.folder.parent / "log.jsonl"
    line = {"id": "a1", "title": "予算会議", "date": "2024-04-01", "text": "見積もりを三社から取る。"}
    path.write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8")
    tool_library.store.tools.put(Tool("log", "jsonl", "A log.", str(path)))
    [hit] = answer(tool_library, "log", query="見積もり")["results"]
    assert (hit["heading"], hit["date"]) == ("予算会議", "2024-04-01")
    assert not {"title", "date"} & answer(tool_library, "recipes", query="玉葱")["results"][0].keys()


@pytest.mark.parametrize("name", ["search", "recipes"])
@pytest.mark.parametrize("extract", ["chunk", "full"])
def test_every_search_answers_in_the_same_form(tmp_path: Path, name: str, extract: str) -> None:
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ={}) as library:
        add_tool(library, "recipes", "Recipes of the house.", "玉葱を炒める。")
        found = answer(library, name, query="玉葱", extract=extract)
        assert (found["query"], found["total_chunks"]) == ("玉葱", 1)
        [result] = found["results"]
        fields = ["file_path", "heading", "content", "score", "chunk_index", "citation", "hash"]
        assert list(result) == fields
        assert (result["file_path"], result["heading"], result["chunk_index"]) == ("one.md", "# recipes", 0)
        assert 0 < result["score"] <= 1
