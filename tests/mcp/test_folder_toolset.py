"""The tools over one folder: search, reindex and verify, over both protocol versions."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from mcp import Client, MCPError

from bunko.interfaces.text import UNTRUSTED_NOTE
from bunko.interfaces.tools.registry import ToolRegistry
from tests.conftest import Opener
from tests.mcp.mcp_client import (
    ERAS,
    FILLER,
    FOLDER_TOOL_NAMES,
    call,
    error_of,
    list_tools,
    search,
    structure_of,
    talk,
    text_of,
    write_document,
)


@pytest.mark.parametrize("mode", ERAS)
def test_the_first_search_on_an_empty_library_imports_by_itself(mode: str, registry: ToolRegistry) -> None:
    found = structure_of(call(registry, "search", {"query": "再起動", "response_format": "detailed"}, mode))
    assert [one["file_path"] for one in found["results"]] == ["server.md"]
    assert found["total_chunks"] == 2
    assert found["freshness"]["generation"] > 0


def test_a_detailed_search_answers_with_the_promised_fields(registry: ToolRegistry) -> None:
    found = search(registry, "清水寺")
    assert found["query"] == "清水寺"
    [result] = found["results"]
    assert list(result)[:5] == ["file_path", "heading", "content", "score", "chunk_index"]
    assert result["file_path"] == "旅/京都.md"
    assert result["heading"] == "# 京都"
    assert result["content"].startswith("# 京都\n\n京都の寺を巡る旅。")
    assert result["score"] > 0
    assert result["chunk_index"] == 0
    assert result["citation"] == "旅/京都.md:L1-L3"
    assert (result["line_start"], result["line_end"]) == (1, 3)
    assert result["heading_path"] == ["京都"]
    assert found["truncated"] is False
    assert "next_cursor" not in found


def test_a_reindex_answers_with_the_promised_fields(registry: ToolRegistry, docs: Path) -> None:
    promised = ("added", "updated", "deleted", "unchanged", "total_chunks")

    def counts() -> tuple[int, ...]:
        found = structure_of(call(registry, "reindex"))
        assert tuple(found)[:5] == promised
        return tuple(found[name] for name in promised)

    assert counts() == (2, 0, 0, 0, 2)
    write_document(docs, "server.md", "# サーバー\n\n再起動は朝に行うことにした。\n", age=10)
    write_document(docs, "new.md", "# 新しい文書\n\nここに新しいことを書く。\n")
    assert counts() == (1, 1, 0, 1, 3)
    (docs / "new.md").unlink()
    assert counts() == (0, 0, 1, 2, 2)


def test_a_rebuild_applies_changed_settings(docs: Path, open_docs: Opener) -> None:
    write_document(docs, "long.md", "# 長い文書\n\n" + "段落がここにある。\n\n" * 100)
    open_docs().reindex()
    registry = ToolRegistry(lambda: open_docs(BUNKO_CHUNKER_MAX_CHUNK_CHARS="200"), folder=str(docs))
    found = call(registry, "search", {"query": "段落"})
    assert "a different chunker" in text_of(found)
    kept = structure_of(call(registry, "reindex"))
    assert kept["updated"] == 0
    assert ["a different chunker" in notice for notice in kept["notices"]] == [True]
    rebuilt = structure_of(call(registry, "reindex", {"rebuild": True}))
    assert rebuilt["total_chunks"] > kept["total_chunks"]
    assert "a different chunker" not in text_of(call(registry, "search", {"query": "段落"}))
    registry.close()


def test_what_cannot_be_indexed_is_named_in_both_forms(registry: ToolRegistry, docs: Path) -> None:
    (docs / "broken.md").write_bytes(bytes(range(256)) * 20)
    result = call(registry, "reindex")
    assert structure_of(result)["problems"][0]["file_path"] == "broken.md"
    assert "Not indexed: broken.md" in text_of(result)


@pytest.mark.parametrize("response_format", ["concise", "detailed"])
def test_the_text_and_the_structure_are_each_complete(registry: ToolRegistry, response_format: str) -> None:
    result = call(registry, "search", {"query": "京都 server", "response_format": response_format})
    text, found = text_of(result), structure_of(result)
    assert len(found["results"]) == 2
    for one in found["results"]:
        for name in ("file_path", "heading", "content", "citation", "hash"):
            assert one[name] in text
        assert f"score {one['score']}, chunk {one['chunk_index']}" in text
        assert all(heading in text for heading in one.get("heading_path", ()))
    assert text.startswith(f"2 results among {found['total_chunks']} chunks.")
    if response_format == "detailed":
        fresh = found["freshness"]
        assert f"Generation {fresh['generation']}, checked {fresh['checked_at']}" in text
    assert UNTRUSTED_NOTE in text
    assert found["note"] == UNTRUSTED_NOTE
    shown = re.findall(r"<excerpt-[0-9a-f]{6}>[^\n]*\n(.*?)\n</excerpt-", text, re.DOTALL)
    assert shown == [one["content"] for one in found["results"]]


def test_the_structured_answers_keep_to_their_schemas(registry: ToolRegistry) -> None:
    async def ask(client: Client) -> None:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        found = structure_of(await client.call_tool("search", {"query": "京都"}))
        cited = found["results"][0]
        started = await client.call_tool("reindex", {"background": True})
        answers = [
            ("search", found),
            ("search", structure_of(await client.call_tool("search", {"query": "存在しない言葉xyzzy"}))),
            ("reindex", structure_of(await client.call_tool("reindex", {}))),
            ("reindex", structure_of(started)),
            ("job", structure_of(await client.call_tool("job", {"id": structure_of(started)["job"]}))),
            ("verify", structure_of(await client.call_tool("verify", {n: cited[n] for n in ("citation", "hash")}))),
            ("read", structure_of(await client.call_tool("read", {"document": cited["citation"]}))),
            ("list", structure_of(await client.call_tool("list", {}))),
            ("list", structure_of(await client.call_tool("list", {"outline": cited["file_path"]}))),
        ]
        for name, answer in answers:
            jsonschema.validate(answer, schemas[name])

    talk(registry, ask)


def test_a_detailed_answer_says_which_wording_found_a_result(registry: ToolRegistry) -> None:
    arguments = {"query": "再起動", "also": ["restart"], "response_format": "detailed"}
    assert re.search(r"found by [^|\n]*(再起動|restart)", text_of(call(registry, "search", arguments)))
    assert "found by" not in text_of(call(registry, "search", arguments | {"also": []}))


def test_a_detailed_answer_says_more_than_a_concise_one(registry: ToolRegistry) -> None:
    detailed, concise = (search(registry, "清水寺", response_format=how) for how in ("detailed", "concise"))
    assert set(concise) == {"query", "total_chunks", "results", "note"}
    assert (concise["query"], concise["total_chunks"]) == ("清水寺", 2)
    fields = ["file_path", "heading", "content", "score", "chunk_index", "citation", "hash"]
    assert list(concise["results"][0]) == fields
    assert concise["results"][0].items() <= detailed["results"][0].items()
    assert {"title", "date", "tags", "explain", "bm25_score"} <= detailed["results"][0].keys()


def test_a_result_names_its_heading_which_is_empty_where_there_is_none(docs: Path, open_docs: Opener) -> None:
    write_document(docs, "long.md", f"# 長い文書\n\n象の話。{FILLER}" + f"\n\n{FILLER}" * 60 + "\n\n鯨の話。\n")
    write_document(docs, "memo.txt", f"海豚の話。{FILLER}\n")
    registry = ToolRegistry(open_docs, folder=str(docs))
    for query, heading in (("象の話", "# 長い文書"), ("鯨の話", "# 長い文書"), ("海豚の話", "")):
        [one] = search(registry, query, top_k=1, mode="bm25")["results"]
        assert query in one["content"]
        assert one["heading"] == heading


def test_the_words_that_matched_are_shown_as_they_stand_in_the_text(registry: ToolRegistry) -> None:
    result = call(registry, "search", {"query": "restarting 巡った", "mode": "bm25", "response_format": "detailed"})
    matched = {one["file_path"]: one["matched"] for one in structure_of(result)["results"]}
    assert matched == {"server.md": ["restarts", "起動"], "旅/京都.md": ["巡る"]}
    assert "matched restarts" in text_of(result)
    unrelated = call(registry, "search", {"query": "神社仏閣", "mode": "semantic", "response_format": "detailed"})
    assert structure_of(unrelated)["results"]
    assert all(one.get("matched", ["word"]) for one in structure_of(unrelated)["results"])
    assert not re.search(r"matched *(,|\n|$)", text_of(unrelated))


@pytest.mark.parametrize("mode", ERAS)
def test_other_wordings_are_searched_and_a_detailed_answer_says_what_each_adds(
    mode: str, registry: ToolRegistry
) -> None:
    asked = {"query": "zzzz", "also": ["清水寺"], "passage": "京都の寺を巡る。", "mode": "bm25"}
    assert not structure_of(call(registry, "search", {"query": "zzzz", "mode": "bm25"}, mode))["results"]
    [result] = structure_of(call(registry, "search", asked | {"response_format": "detailed"}, mode))["results"]
    assert result["file_path"] == "旅/京都.md"
    wordings = result["explain"]["wordings"]
    assert [(wording["kind"], wording["rank"]) for wording in wordings] == [
        ("query", None),
        ("also", 1),
        ("passage", 1),
    ]
    assert sum(wording["added"] for wording in wordings) == pytest.approx(result["score"], abs=1e-9)


def test_nothing_found_is_told_with_what_to_try(registry: ToolRegistry) -> None:
    result = call(registry, "search", {"query": "xyzzy"})
    assert structure_of(result)["results"] == []
    assert "No results" in text_of(result)
    assert "other words" in text_of(result)


def test_filters_narrow_a_search(registry: ToolRegistry) -> None:
    def files(**filters: str) -> list[str]:
        return [one["file_path"] for one in search(registry, "京都 再起動", **filters)["results"]]

    assert sorted(files()) == ["server.md", "旅/京都.md"]
    assert files(path="旅/**") == ["旅/京都.md"]
    assert files(tag="#運用") == ["server.md"]
    assert files(since="2030") == []


def test_the_first_call_already_obeys_the_settings(docs: Path, open_docs: Opener) -> None:
    for number in range(4):
        write_document(docs, f"{number}.md", f"# 文書{number}\n\n京都の寺 {number}。{FILLER}")
    registry = ToolRegistry(lambda: open_docs(BUNKO_SEARCH_TOP_K="2"), folder=str(docs))
    assert len(search(registry, "京都")["results"]) == 2


def test_a_server_for_reading_offers_and_does_nothing_that_writes(docs: Path, open_docs: Opener) -> None:
    write_document(docs, "a.md", f"# 一\n\n京都の寺。{FILLER}")
    writer = open_docs()
    writer.reindex()
    writer.close()
    registry = ToolRegistry(lambda: open_docs(read_only=True), folder=str(docs), read_only=True)
    before = writer.paths.database.read_bytes()
    write_document(docs, "b.md", f"# 二\n\n京都の庭。{FILLER}")
    assert {"search", "verify"} <= set(list_tools(registry)) <= set(FOLDER_TOOL_NAMES) - {"reindex", "job"}
    found = search(registry, "京都")
    assert [one["file_path"] for one in found["results"]] == ["a.md"]
    cited = {name: found["results"][0][name] for name in ("citation", "hash")}
    assert structure_of(call(registry, "verify", cited))["status"] == "same"
    with pytest.raises(MCPError, match="Unknown tool: reindex"):
        call(registry, "reindex")
    assert writer.paths.database.read_bytes() == before


def test_a_citation_is_checked_with_what_a_search_returned(registry: ToolRegistry, docs: Path) -> None:
    cited = {name: search(registry, "清水寺")["results"][0][name] for name in ("citation", "hash")}

    def verdict() -> tuple[str, str]:
        result = call(registry, "verify", cited)
        found = structure_of(result)
        assert text_of(result).startswith(f"{found['status']}: {found['citation']}. ")
        return found["status"], found["citation"]

    path = docs / "旅" / "京都.md"
    original = path.read_text(encoding="utf-8")
    assert verdict() == ("same", "旅/京都.md:L1-L3")
    write_document(docs, "旅/京都.md", f"序。\n\n{original}", age=1)
    assert verdict() == ("moved", "旅/京都.md:L3-L5")
    write_document(docs, "旅/京都.md", original.replace("バス", "電車"), age=2)
    assert verdict() == ("changed", "旅/京都.md:L1-L3")
    write_document(docs, "旅/京都.md", original, age=3)
    path.rename(docs / "kyoto.md")
    assert verdict() == ("moved", "kyoto.md:L1-L3")
    (docs / "kyoto.md").unlink()
    assert verdict() == ("deleted", "旅/京都.md:L1-L3")


def test_what_is_no_citation_is_refused_in_a_sentence(registry: ToolRegistry) -> None:
    said = error_of(call(registry, "verify", {"citation": "somewhere", "hash": "0" * 12 + "." + "0" * 12}))
    assert said == "'somewhere' is not a citation. Give it as it was returned: path:L12-L30."
