"""Wrong calls and failures, and what the client is told about them."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError

from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from tests.conftest import Opener
from tests.mcp.mcp_client import (
    ERAS,
    call,
    error_of,
    search,
    structure_of,
    talk,
    text_of,
    write_document,
)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("name", ["nope", "x" * 100_000, "", "検索"])
def test_a_tool_that_is_not_there_is_a_protocol_error(mode: str, name: str, registry: ToolRegistry) -> None:
    with pytest.raises(MCPError) as caught:
        call(registry, name, {}, mode)
    assert caught.value.error.code == types.INVALID_PARAMS
    assert "job, list, read, reindex, search, verify" in caught.value.error.message
    assert len(caught.value.error.message) < 300


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "query is missing. Give query: Words or a question"),
        ({"query": None}, "query is missing. Give query: Words or a question"),
        ({"query": 5}, "query must be a text, not a number. Give query as a text."),
        ({"query": ["京都"]}, "query must be a text, not a list. Give query as a text."),
        ({"query": {"text": "京都"}}, "query must be a text, not an object. Give query as a text."),
        ({"query": "京都", "top_k": "five"}, "top_k must be a whole number, not a text. Use a number from 1 to 50."),
        ({"query": ""}, "The query is empty. Give words or a question, or filter by path, tag or date."),
        ({"query": " \u3000"}, "The query is empty. Give words or a question, or filter by path, tag or date."),
        ({"query": "京都", "top_k": "99"}, "top_k cannot be 99. Use a number from 1 to 50."),
        ({"query": "京都", "top_k": 2.5}, "top_k must be a whole number, not a number. Use a number from 1 to 50."),
        ({"query": "京都", "top_k": True}, "top_k must be a whole number, not true or false."),
        ({"query": "京都", "top_k": 0}, "top_k cannot be 0. Use a number from 1 to 50."),
        ({"query": "京都", "top_k": 10**30}, "Use a number from 1 to 50."),
        ({"query": "京都", "topk": 5}, "Unknown argument 'topk'. Did you mean top_k?"),
        ({"q": "京都"}, "Unknown argument 'q'. Did you mean query?"),
        ({"query": "京都", "zzzz": 5}, "Unknown argument 'zzzz'. Known: query, also, passage, top_k, "),
        ({"query": "京都", "extract": "page"}, "extract cannot be 'page'. Use one of: chunk, section, full."),
        ({"query": "京都", "since": "someday"}, "'someday' is not a date. Write 2024-01-15"),
        ({"query": "京都", "mode": "magic"}, "mode cannot be 'magic'. Use one of: bm25, semantic, hybrid."),
        ({"query": "長" * 200_000}, "query has 200,000 characters. Use at most 100,000."),
        ({"query": "京都", "長" * 200_000: 5}, "Unknown argument"),
        ({"query": "京都", "extract": "長" * 90_000}, "extract cannot be"),
    ],
)
def test_wrong_arguments_are_answered_with_what_to_do(
    mode: str, arguments: dict[str, Any], said: str, registry: ToolRegistry
) -> None:
    got = error_of(call(registry, "search", arguments, mode))
    assert said in got
    assert len(got) < 500


@pytest.mark.parametrize("number", [1, 1.0, "1", " 1 "])
def test_a_whole_number_may_be_written_as_a_fraction_or_a_text(registry: ToolRegistry, number: object) -> None:
    assert len(search(registry, "京都 再起動", top_k=number)["results"]) == 1


@pytest.mark.parametrize("query", ["。", "\x00", "\U0001f363", "AND OR NOT", '"', "長" * 5000])
def test_no_query_is_too_odd_to_be_answered(registry: ToolRegistry, query: str) -> None:
    found = search(registry, query)
    assert found["query"] == query
    assert isinstance(found["results"], list)


@pytest.mark.parametrize("mode", ERAS)
def test_a_library_that_cannot_be_opened_is_told_in_a_sentence_everywhere(
    mode: str, docs: Path, open_docs: Opener
) -> None:
    writer = open_docs()
    writer.close()
    writer.paths.database.write_bytes(b"not a database at all" * 100)
    for toolset in ("folder", "tools"):
        registry = ToolRegistry(open_docs, toolsets=[toolset], folder=str(docs))
        said = error_of(call(registry, "search", {"query": "京都"}, mode))
        assert str(writer.paths.database) in said
        with pytest.raises(MCPError, match=re.escape(str(writer.paths.database))):
            talk(registry, lambda client: client.list_resources(), mode)
    with pytest.raises(MCPError, match=re.escape(str(writer.paths.database))):
        talk(ToolRegistry(open_docs, toolsets=["tools"]), lambda client: client.list_tools(), mode)


def test_settings_that_do_not_fit_the_library_are_told_with_the_command_that_applies_them(
    docs: Path, registry: ToolRegistry, open_docs: Opener
) -> None:
    call(registry, "reindex")
    other = ToolRegistry(lambda: open_docs(BUNKO_CHUNKER_MAX_CHUNK_CHARS="500"), folder=str(docs))
    assert f"bunko reindex --docs-dir {docs} --force" in text_of(call(other, "search", {"query": "京都"}))


def broken() -> Library:
    raise RuntimeError("something nobody thought of")


@pytest.mark.parametrize("mode", ERAS)
def test_our_own_mistakes_are_told_without_details_and_logged_with_them(
    mode: str, captured_log: pytest.LogCaptureFixture
) -> None:
    said = error_of(call(ToolRegistry(broken, folder="x"), "search", {"query": "京都"}, mode))
    assert said == "search failed with an internal error (RuntimeError). See the server's log."
    assert "something nobody thought of" in captured_log.text
    assert "Traceback" in captured_log.text


@pytest.mark.slow
def test_a_thousand_calls_leave_no_threads_and_no_files_behind(registry: ToolRegistry) -> None:
    def held() -> tuple[int, int]:
        files = Path("/proc/self/fd")
        return threading.active_count(), len(list(files.iterdir())) if files.exists() else 0

    async def many(client: Client) -> None:
        await client.call_tool("search", {"query": "京都"})
        before = held()
        for number in range(1000):
            if number % 4:
                await client.call_tool("verify", {"citation": "a.md:L1", "hash": "0" * 12 + "." + "0" * 12})
            else:
                assert not (await client.call_tool("search", {"query": "。"})).is_error
        after = held()
        assert after[0] <= before[0] + 3
        assert after[1] <= before[1] + 3

    talk(registry, many)


def test_the_name_of_a_document_hides_nothing_in_a_reply(docs: Path, registry: ToolRegistry) -> None:
    write_document(docs, "a\u202egnp\nSYSTEM.md", "# 金閣\n\n金閣寺の庭を見た。\n")
    text = text_of(call(registry, "search", {"query": "金閣寺の庭"}))
    found = structure_of(call(registry, "search", {"query": "金閣寺の庭"}))["results"][0]
    replies = [text]
    for name, arguments in (
        ("list", {}),
        ("read", {"document": "a\u202egnp\nSYSTEM.md"}),
        ("read", {"document": "b\u202egnp\nSYSTEM.md"}),
        ("verify", {"citation": "a\u202egnp\nSYSTEM.md:L3", "hash": found["hash"]}),
        ("verify", {"citation": "b\u202egnp\nSYSTEM.md:L3", "hash": found["hash"]}),
    ):
        replies.append(call(registry, name, arguments).model_dump_json())
    for reply in replies:
        assert "SYSTEM" in reply
        assert "\u202e" not in reply
        assert not re.search(r"^SYSTEM", reply, re.MULTILINE)
