"""The JSON object of a page is the same at the command line and for assistants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.serialize import page_to_dict
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.search.request import SearchRequest
from tests.conftest import Opener, Run
from tests.readers.zip_files import fixture


@pytest.fixture
def garden(docs: Path) -> Path:
    """A folder with one document."""
    text = "---\ntags: [庭]\ndate: 2024-01-15\n---\n# 京都\n\n京都の寺の庭を訪ねた日の記録である。\n"
    (docs / "a.md").write_text(text, encoding="utf-8")
    return docs


def search_as_assistant(library: Opener, docs: Path, **arguments: Any) -> dict[str, Any]:
    registry = ToolRegistry(library, folder=str(docs))
    [tool] = [tool for tool in registry.tools() if tool.name == "search"]
    return registry.call(tool, {"query": "京都の庭", **arguments}).structured


def test_an_assistant_gets_the_object_that_the_command_line_prints(garden: Path, open_docs: Opener, run: Run) -> None:
    printed: Any = run("search", "京都の庭", "--docs-dir", garden, "--explain", "--json").json()
    structured = search_as_assistant(open_docs, garden, response_format="detailed")
    assert structured["results"][0].pop("matched") == ["京都", "庭"]
    # A script opens files; an assistant reads them through the server.
    assert printed["results"][0].pop("absolute_path") == str(garden / "a.md")
    # A person checks how a score adds up; an assistant would pay for that with tokens.
    for name in ("fusion", "parts", "term_scores", "best_sentence", "nearest_sentence"):
        assert printed["results"][0]["explain"].pop(name)
    assert printed["results"][0]["explain"].pop("near_words") == []
    for answer in (printed, structured):
        answer["freshness"].pop("checked_at")
    assert structured == printed


def test_the_concise_form_is_a_part_of_the_detailed_one(garden: Path, open_docs: Opener) -> None:
    detailed = search_as_assistant(open_docs, garden, response_format="detailed")
    concise = search_as_assistant(open_docs, garden)
    assert concise["results"][0].items() <= detailed["results"][0].items()
    assert concise.keys() < detailed.keys()


def test_a_result_of_a_presentation_names_its_slide(docs: Path, open_docs: Opener) -> None:
    (docs / "deck.pptx").write_bytes(fixture("deck.pptx"))
    [result] = search_as_assistant(open_docs, docs, query="延滞は一日十円", top_k=1)["results"]
    assert (result["file_path"], result["place"]) == ("deck.pptx", "slide2")


def test_scores_have_four_decimals(garden: Path, open_docs: Opener) -> None:
    page = open_docs().page(SearchRequest("京都の庭", mode="hybrid", explain=True))
    numbers: list[float] = []
    json.loads(json.dumps(page_to_dict(page)), parse_float=lambda text: numbers.append(len(text.partition(".")[2])))
    assert numbers
    assert max(numbers) <= 4


def test_names_are_shortened_for_a_model_only(docs: Path, open_docs: Opener) -> None:
    (docs / "odd\nname.md").write_text(f"# {'長い見出し' * 50}\n\n京都の庭の話。\n", encoding="utf-8")
    page = open_docs().page(SearchRequest("京都の庭", mode="bm25"))
    [plain], [safe] = (page_to_dict(page, for_model=for_model)["results"] for for_model in (False, True))
    assert (plain["file_path"], safe["file_path"]) == ("odd\nname.md", "odd name.md")
    assert len(safe["title"]) < 110 < len(plain["title"])
    assert plain.keys() == safe.keys()
