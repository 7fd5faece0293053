"""Pages of results: the token budget and the cursor."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from bunko.interfaces.tools.registry import ToolRegistry
from bunko.text.token_count import estimate_tokens
from tests.conftest import Opener
from tests.mcp.mcp_client import (
    FILLER,
    Result,
    call,
    error_of,
    search,
    structure_of,
    talk,
    text_of,
    write_document,
)


def long_documents(docs: Path, number: int) -> dict[str, str]:
    texts = {}
    for document in range(number):
        parts = [
            f"## 第{part}章\n\n索引の話の{document}の{part}。" + "検索の仕組みを順に説明していく文である。" * 30
            for part in range(4)
        ]
        texts[f"長い文書{document}.md"] = "\n\n".join(parts) + "\n"
    for name, text in texts.items():
        write_document(docs, name, text)
    return texts


@pytest.mark.parametrize("extract", ["chunk", "section", "full"])
@pytest.mark.parametrize("response_format", ["concise", "detailed"])
def test_no_answer_exceeds_its_budget(docs: Path, open_docs: Opener, extract: str, response_format: str) -> None:
    long_documents(docs, 8)
    write_document(docs, "headings.md", f"# {'見出しが長い' * 300}\n\n## {'もっと長い' * 300}\n\n索引の話。{FILLER}")
    write_document(
        docs, "tags.md", f"---\ntags: [{', '.join(f'札{n}' for n in range(500))}]\n---\n# 札\n\n索引の話。{FILLER}"
    )
    for budget in (500, 2000, 8000):
        registry = ToolRegistry(
            partial(open_docs, BUNKO_SERVE_MAX_RESULT_TOKENS=str(budget)),
            folder=str(docs),
        )
        shape = {"query": "索引の話 検索の仕組み", "top_k": 50, "extract": extract, "response_format": response_format}
        result = call(registry, "search", shape)
        assert structure_of(result)["results"]
        assert estimate_tokens(text_of(result)) <= 1.3 * budget
        assert estimate_tokens(json.dumps(result.structured_content, ensure_ascii=False)) <= 1.3 * budget


def test_other_wordings_do_not_swell_a_detailed_answer(docs: Path, open_docs: Opener) -> None:
    for number in range(40):
        write_document(docs, f"{number}.md", f"# 文書{number}\n\n索引の話のその{number}。")
    shape = {
        "query": "索引の話",
        "top_k": 50,
        "response_format": "detailed",
        "passage": "索引は検索の仕組みの話である。",
    }
    shape["also"] = [f"索引という仕組みを{number}番目の言い方で尋ねるとこのような文になる" for number in range(5)]
    for budget in (2000, 4000):
        registry = ToolRegistry(partial(open_docs, BUNKO_SERVE_MAX_RESULT_TOKENS=str(budget)), folder=str(docs))
        structured = structure_of(call(registry, "search", shape))
        assert len(structured["results"][0]["explain"]["wordings"]) == 7
        tokens = estimate_tokens(json.dumps(structured, ensure_ascii=False))
        assert 0.6 * budget <= tokens <= 1.3 * budget


def test_a_query_as_long_as_a_page_does_not_swell_the_answer(docs: Path, open_docs: Opener) -> None:
    words = [
        f"{place}の{thing}"
        for place in "京都 奈良 大阪 神戸 東京 横浜".split()
        for thing in "寺 城 港 庭 駅 橋".split()
    ]
    for number in range(40):
        write_document(docs, f"{number}.md", f"# 文書{number}\n\n" + "。".join(words) + "\n")
    registry = ToolRegistry(lambda: open_docs(BUNKO_SERVE_MAX_RESULT_TOKENS="8000"), folder=str(docs))
    result = call(registry, "search", {"query": " ".join(words * 4)[:2000], "top_k": 50, "response_format": "detailed"})
    assert len(structure_of(result)["results"]) >= 10
    for form in (text_of(result), json.dumps(result.structured_content, ensure_ascii=False)):
        assert estimate_tokens(form) <= 1.3 * 8000


def read_all_pages(registry: ToolRegistry, arguments: dict[str, Any]) -> list[Result]:
    """Follow the cursor to the last page."""

    async def follow(client: Client) -> list[Result]:
        pages: list[Result] = []
        cursor = None
        while cursor or not pages:
            pages.append(await client.call_tool("search", arguments | ({"cursor": cursor} if cursor else {})))
            cursor = structure_of(pages[-1]).get("next_cursor")
            assert cursor is None or f"cursor {cursor}" in text_of(pages[-1])
            assert len(pages) < 500
        return pages

    return talk(registry, follow)  # type: ignore[no-any-return]


@pytest.mark.parametrize("extract", ["chunk", "section", "full"])
@pytest.mark.parametrize(("budget", "top_k"), [(500, 50), (1000, 3), (8000, 4)])
def test_the_cursor_leads_through_everything_exactly_once(
    docs: Path, open_docs: Opener, extract: str, budget: int, top_k: int
) -> None:
    texts = long_documents(docs, 4)
    registry = ToolRegistry(lambda: open_docs(BUNKO_SERVE_MAX_RESULT_TOKENS=str(budget)), folder=str(docs))
    passages: dict[tuple[str, str], str] = {}
    for page in read_all_pages(registry, {"query": "索引の話", "extract": extract, "top_k": top_k}):
        for one in structure_of(page)["results"]:
            key = (one["citation"].rpartition(":")[0], one["citation"])
            passages[key] = passages.get(key, "") + one["content"]
    given_lines: dict[str, list[int]] = {name: [] for name in texts}
    for (name, citation), content in passages.items():
        first, last = (int(number) for number in re.findall(r"L(\d+)", citation.rpartition(":")[2]))
        stands = "\n".join(texts[name].split("\n")[first - 1 : last])
        assert content == stands
        given_lines[name] += range(first, last + 1)
    for name, text in texts.items():
        lines = text.split("\n")
        assert len(given_lines[name]) == len(set(given_lines[name]))
        assert {number for number, line in enumerate(lines, 1) if "索引の話" in line} <= set(given_lines[name])


def test_a_passage_cut_by_the_budget_says_where_it_goes_on(docs: Path, open_docs: Opener) -> None:
    long_documents(docs, 1)
    registry = ToolRegistry(lambda: open_docs(BUNKO_SERVE_MAX_RESULT_TOKENS="700"), folder=str(docs))
    pages = read_all_pages(registry, {"query": "索引の話", "extract": "full"})
    assert len(pages) > 2
    assert "continues with the cursor" in text_of(pages[0])
    assert structure_of(pages[0])["results"][0]["truncated"] is True
    assert "continued from the last page" in text_of(pages[1])
    last = text_of(next(page for page in reversed(pages) if structure_of(page)["results"]))
    assert "continues with the cursor" not in last


def test_the_page_after_the_last_says_that_there_is_no_more(registry: ToolRegistry) -> None:
    pages = read_all_pages(registry, {"query": "京都 再起動", "top_k": 1})
    assert [len(structure_of(page)["results"]) for page in pages] == [1, 1, 0]
    assert "No more results" in text_of(pages[-1])


@pytest.mark.parametrize(
    "other", [{"query": "再起動"}, {"extract": "full"}, {"top_k": 2}, {"path": "*.md"}, {"mode": "hybrid"}]
)
def test_a_cursor_fits_the_call_it_came_with_and_no_other(registry: ToolRegistry, other: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"query": "京都 再起動", "top_k": 1}
    cursor = search(registry, **asked)["next_cursor"]
    said = error_of(call(registry, "search", {**asked, **other, "cursor": cursor}))
    assert "another request" in said
    assert "leave the cursor out" in said


def test_a_cursor_that_is_none_is_refused_in_a_sentence(registry: ToolRegistry) -> None:
    said = error_of(call(registry, "search", {"query": "京都", "cursor": "bm90IGEgY3Vyc29y"}))
    assert said == "The cursor is invalid. Leave it out to start again."


def test_an_index_that_changed_between_pages_is_told_in_both_forms(registry: ToolRegistry, docs: Path) -> None:
    asked: dict[str, Any] = {"query": "京都 再起動", "top_k": 1}
    first = search(registry, **asked)
    write_document(docs, "new.md", f"# 新しい文書\n\n京都の新しい話。{FILLER}")
    result = call(registry, "search", {**asked, "cursor": first["next_cursor"]})
    assert any("index changed" in notice for notice in structure_of(result)["notices"])
    assert "index changed" in text_of(result)


def test_neighbouring_chunks_come_as_one_result(docs: Path, open_docs: Opener) -> None:
    text = "\n\n".join(f"## 第{number}節\n\n索引の話の{number}。{FILLER}" for number in range(3)) + "\n"
    write_document(docs, "a.md", text)
    [one] = search(ToolRegistry(open_docs, folder=str(docs)), "索引の話")["results"]
    assert one["content"] == text.rstrip()
    assert one["citation"] == "a.md:L1-L11"


@pytest.mark.parametrize("extract", ["chunk", "section", "full"])
def test_as_many_results_come_as_were_asked_for_whatever_is_joined(docs: Path, open_docs: Opener, extract: str) -> None:
    write_document(docs, "long.md", "\n\n".join(f"## 第{n}節\n\n索引の話、索引の話の{n}。{FILLER}" for n in range(40)))
    for number in range(8):
        write_document(docs, f"{number}.md", f"# {number}\n\n索引の話の{number}。{FILLER}\n")
    registry = ToolRegistry(open_docs, folder=str(docs))
    results = search(registry, "索引の話", top_k=5, extract=extract)["results"]
    assert len(results) == 5
    assert len({one["citation"] for one in results}) == 5
    pages = read_all_pages(registry, {"query": "索引の話", "top_k": 3, "extract": extract})
    sizes = [len(structure_of(page)["results"]) for page in pages]
    assert sizes[:-1] == [3] * (len(sizes) - 1)
    citations = [one["citation"] for page in pages for one in structure_of(page)["results"]]
    assert len(set(citations)) == len(citations)
    assert {citation.partition(":")[0] for citation in citations} == {"long.md", *(f"{n}.md" for n in range(8))}


def test_a_joined_result_is_labelled_by_what_its_parts_have_in_common(docs: Path, open_docs: Opener) -> None:
    parts = "\n\n".join(f"### 第{number}項\n\n索引の話の{number}。{FILLER}" for number in range(3))
    write_document(docs, "a.md", f"# 本\n\n前書き。{FILLER}\n\n## 検索 #\n\n{parts}\n\n## 別の章\n\n猫と犬。{FILLER}\n")
    registry = ToolRegistry(open_docs, folder=str(docs))
    [one] = search(registry, "索引の話", mode="bm25", response_format="detailed")["results"]
    assert (one["heading"], one["heading_path"]) == ("## 検索 #", ["本", "検索"])
    [single] = search(registry, "前書き", mode="bm25", response_format="detailed")["results"]
    assert single["heading"] == "# 本"
    assert one["chunk_index"] == single["chunk_index"] + 1, "the first of its chunks"
    write_document(docs, "b.md", "\n\n".join(f"# 第{n}部\n\n暗号の話の{n}。{FILLER}" for n in range(2)))
    [one] = search(registry, "暗号の話", path="b.md", response_format="detailed")["results"]
    assert (one["heading"], one["heading_path"], one["chunk_index"]) == ("", [], 0)


def test_an_assistant_can_ask_for_fewer_hits_of_a_document_and_is_told_of_the_others(
    docs: Path, open_docs: Opener
) -> None:
    long_documents(docs, 2)
    registry = ToolRegistry(open_docs, folder=str(docs))
    result = call(registry, "search", {"query": "索引の話", "top_k": 4, "per_document": 1})
    results = structure_of(result)["results"]
    assert len({one["citation"].partition(":")[0] for one in results}) == len(results) == 2
    counts = [one["more_in_document"] for one in results if "more_in_document" in one]
    assert counts
    assert f"{counts[0]} more in this document" in text_of(result)
    pages = read_all_pages(registry, {"query": "索引の話", "top_k": 1, "per_document": 1})
    citations = [one["citation"] for page in pages for one in structure_of(page)["results"]]
    assert len({citation.partition(":")[0] for citation in citations}) == len(citations) == 2
    assert "from 1 to 50" in error_of(call(registry, "search", {"query": "索引の話", "per_document": 0}))
