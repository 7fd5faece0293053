"""Documents as MCP resources."""

from __future__ import annotations

from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError

from bunko.interfaces.mcp import resources, server
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from tests.conftest import Opener
from tests.mcp.mcp_client import (
    ERAS,
    FILLER,
    call,
    disable_recipes,
    talk,
    write_document,
)


def read(registry: ToolRegistry, address: str) -> str:
    [content] = talk(registry, lambda client: client.read_resource(address)).contents
    return str(content.text)


def test_documents_are_listed_in_pages_each_once(
    docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "PAGE_SIZE", 10)
    for number in range(25):
        write_document(docs, f"{number:02}.md", f"# 文書{number}\n\n{FILLER}")
    registry = ToolRegistry(open_docs, folder=str(docs))
    call(registry, "reindex")

    async def pages(client: Client) -> list[list[str]]:
        found: list[list[str]] = []
        cursor = None
        while cursor or not found:
            page = await client.list_resources(cursor=cursor)
            found.append([one.name for one in page.resources])
            cursor = page.next_cursor
        return found

    got = talk(registry, pages)
    assert [len(page) for page in got] == [10, 10, 5]
    assert [name for page in got for name in page] == [f"{number:02}.md" for number in range(25)]


@pytest.mark.parametrize("mode", ERAS)
def test_documents_of_any_name_can_be_read_at_their_address(mode: str, docs: Path, open_docs: Opener) -> None:
    names = ["a.md", "設計 書/第1章 100%.md", "a?b#c&d=e.md", "%2e%2e.md", "a%2Fb.md", "[x].md", "a:L1.md", "😀.txt"]
    for name in names:
        write_document(docs, name, f"# 文書\n\n{name} の中身。\n")
    registry = ToolRegistry(open_docs, folder=str(docs))
    call(registry, "reindex")

    async def read_all(client: Client) -> None:
        found = (await client.list_resources()).resources
        assert [one.name for one in found] == sorted(names)
        for one in found:
            assert one.mime_type == ("text/plain" if one.name.endswith(".txt") else "text/markdown")
            assert one.uri.isascii()
            [content] = (await client.read_resource(one.uri)).contents
            assert isinstance(content, types.TextResourceContents)
            assert content.uri == one.uri
            assert f"{one.name} の中身" in content.text

    talk(registry, read_all, mode)


OUTSIDE = (
    "documents/../../etc/passwd",
    "documents/..%2f..%2fetc%2fpasswd",
    "documents/%2e%2e/%2e%2e/etc/passwd",
    "documents//etc/passwd",
    "documents/%2Fetc%2Fpasswd",
    "documents/..\\..\\secret.md",
    "documents/../secret.md",
    "documents/%00",
    "documents/",
    "documents",
    "",
    "[documents/secret.md",
    "nothing/a.md",
    "a@documents:80/server.md",
    "documents/" + "x" * 100_000,
)


@pytest.mark.parametrize("mode", ERAS)
def test_nothing_outside_the_library_can_be_named(mode: str, registry: ToolRegistry, docs: Path) -> None:
    write_document(docs.parent, "secret.md", "秘密")
    call(registry, "reindex")

    async def try_all(client: Client) -> None:
        for path in OUTSIDE:
            for address in (f"bunko://{path}", f"file:///{path}", path):
                with pytest.raises(MCPError, match="Unknown document") as caught:
                    await client.read_resource(address)
                assert caught.value.error.code == (-32002 if mode == "legacy" else -32602)
                assert len(caught.value.error.message) < 400

    talk(registry, try_all, mode)


def test_documents_of_a_tool_that_is_not_active_are_neither_listed_nor_read(tool_library: Library) -> None:
    registry = ToolRegistry(lambda: tool_library)
    assert "玉葱" in read(registry, "bunko://recipes/one.md")
    disable_recipes(tool_library.store)  # type: ignore[arg-type]
    found = talk(registry, lambda client: client.list_resources()).resources
    assert [one.uri for one in found] == ["bunko://search/one.md", "bunko://tabi_no_kiroku/one.md"]
    assert "特許" in read(registry, found[0].uri)
    with pytest.raises(MCPError, match="Unknown document"):
        read(registry, "bunko://recipes/one.md")


@pytest.mark.parametrize("cursor", ["x", "京都", "AAAA"])
def test_a_garbled_cursor_of_a_listing_is_an_invalid_parameter(cursor: str, registry: ToolRegistry) -> None:
    with pytest.raises(MCPError, match="Leave it out") as caught:
        talk(registry, lambda client: client.list_resources(cursor=cursor))
    assert caught.value.error.code == types.INVALID_PARAMS


def test_a_resource_has_its_title_size_time_and_the_type_of_its_text(docs: Path, open_docs: Opener) -> None:
    text = "---\ntitle: 題\n---\n# 見出し\n\n本文。\n"
    write_document(docs, "a.md", text)
    write_document(docs, "b.txt", "ただの文。\n")
    write_document(docs, "c.html", "<title>頁</title><main><h1>頁</h1><p>段落の文。</p></main>")
    registry = ToolRegistry(lambda: open_docs(BUNKO_SCANNER_FILE_EXTENSIONS=".md,.txt,.html"), folder=str(docs))
    call(registry, "reindex")

    async def look(client: Client) -> dict[str, tuple[types.Resource, str | None]]:
        listed = (await client.list_resources()).resources
        return {one.name: (one, (await client.read_resource(one.uri)).contents[0].mime_type) for one in listed}

    found = talk(registry, look)
    assert {name: one.mime_type for name, (one, _) in found.items()} == {
        "a.md": "text/markdown", "b.txt": "text/plain", "c.html": "text/markdown",
    }  # fmt: skip
    assert all(one.mime_type == media_type for one, media_type in found.values())
    first = found["a.md"][0]
    assert (first.title, first.size) == ("題", len(text.encode()))
    assert found["c.html"][0].size is None, "the text is not the file"
    assert first.annotations is not None
    assert first.annotations.last_modified == "2023-11-14T22:13:20+00:00"


def test_the_form_of_an_address_is_offered(registry: ToolRegistry) -> None:
    [template] = talk(registry, lambda client: client.list_resource_templates()).resource_templates
    assert template.uri_template == "bunko://{tool}/{+path}"


@pytest.mark.parametrize("mode", ERAS)
def test_a_document_that_another_process_imports_is_announced(
    mode: str, docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "POLL_SECONDS", 0.05)
    write_document(docs, "old.md", f"# 旧\n\n{FILLER}")
    library, other = open_docs(), open_docs()
    library.reindex()
    told = anyio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, types.ResourceListChangedNotification):
            told.set()

    def import_new() -> None:
        write_document(docs, "new.md", f"# 新\n\n{FILLER}")
        other.reindex()

    async def follow(client: Client) -> None:
        capabilities = client.server_capabilities.resources
        assert capabilities is not None
        assert capabilities.list_changed
        assert [resource.name for resource in (await client.list_resources()).resources] == ["old.md"]
        if mode == "legacy":
            import_new()
            await told.wait()
        else:
            async with client.listen(resources_list_changed=True) as changes:
                import_new()
                await anext(changes)
        assert [resource.name for resource in (await client.list_resources()).resources] == ["new.md", "old.md"]

    registry = ToolRegistry(lambda: library, folder=str(docs))
    registry.library()
    talk(registry, follow, mode, message_handler=hear)
