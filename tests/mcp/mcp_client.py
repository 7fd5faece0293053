"""Connect the SDK's client to a server in memory, line by line as over stdio, and read its replies."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp import Client
from mcp.shared.message import SessionMessage

from bunko.interfaces.mcp.server import BunkoServer
from bunko.interfaces.mcp.stdio import serve_lines
from bunko.interfaces.tools.jobs import JOB_TOOL_NAME
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.tool import LIST_TOOL_NAME, READ_TOOL_NAME
from bunko.interfaces.tools.toolsets import load_toolset
from bunko.library.library import Library
from bunko.library.tools.assistant_names import choose_alias
from bunko.stores.sqlite.store import Sqlite
from bunko.types import Tool
from bunko.types.tool_options import ToolOptions

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
FOLDER_TOOL_NAMES = sorted((JOB_TOOL_NAME, READ_TOOL_NAME, LIST_TOOL_NAME, *load_toolset("folder").tool_names))
SNAPSHOTS = Path(__file__).parent / "snapshots"
TIMEOUT_SECONDS = 30.0
FILLER = "この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。" * 3

Result = types.CallToolResult
Talk = Callable[[Client], Awaitable[Any]]


class MemoryReader:
    """What a client has written, line by line."""

    def __init__(self, messages: Any) -> None:
        self._messages = messages

    def __aiter__(self) -> MemoryReader:
        return self

    async def __anext__(self) -> str:
        message = await anext(self._messages)
        text: str = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        return text


class MemoryWriter:
    """Hands each line to a client."""

    def __init__(self, messages: Any) -> None:
        self._messages = messages
        self.waiting_bytes = 0
        self.failure: asyncio.Future[OSError] = asyncio.get_running_loop().create_future()

    def write(self, line: bytes) -> None:
        assert line.count(b"\n") == 1
        self._messages.send_nowait(SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def drain(self) -> None:
        await anyio.lowlevel.checkpoint()

    def close(self) -> None:
        self._messages.close()


@asynccontextmanager
async def connect(server: BunkoServer) -> AsyncIterator[tuple[Any, Any]]:
    """Serve a client in memory; yield its streams."""
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](1000)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](1000)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve_lines, server, MemoryReader(from_client), MemoryWriter(to_client))
        async with from_server, to_server:
            yield from_server, to_server
    to_client.close()
    from_client.close()


def talk(registry: ToolRegistry, do: Talk, mode: str = "auto", **options: Any) -> Any:
    """Connect a client to a server over this registry, and let it do something."""

    async def main() -> Any:
        with anyio.fail_after(TIMEOUT_SECONDS):
            async with Client(connect(BunkoServer(registry)), mode=mode, cache=None, **options) as client:
                try:
                    return True, await do(client)
                except Exception as error:  # outside, it is not wrapped in the client's group of tasks
                    return False, error

    succeeded, outcome = anyio.run(main)
    if not succeeded:
        raise outcome
    return outcome


def call(registry: ToolRegistry, name: str, arguments: dict[str, Any] | None = None, mode: str = "auto") -> Result:
    return talk(registry, lambda client: client.call_tool(name, arguments or {}), mode)  # type: ignore[no-any-return]


def list_tools(registry: ToolRegistry) -> dict[str, types.Tool]:
    found = talk(registry, lambda client: client.list_tools())
    return {tool.name: tool for tool in found.tools}


def text_of(result: Result) -> str:
    [block] = [block for block in result.content if isinstance(block, types.TextContent)]
    return block.text


def links_of(result: Result) -> list[str]:
    """Return the addresses of the documents that a reply links to."""
    return [block.uri for block in result.content if isinstance(block, types.ResourceLink)]


def structure_of(result: Result) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    content: dict[str, Any] = result.structured_content
    return content


def search(registry: ToolRegistry, query: str, **arguments: Any) -> dict[str, Any]:
    """Return a detailed answer."""
    return structure_of(call(registry, "search", {"query": query, "response_format": "detailed", **arguments}))


def error_of(result: Result) -> str:
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)


def write_document(docs: Path, name: str, text: str, *, age: int = 0) -> None:
    path = docs / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))


def add_tool(library: Library, name: str, about: str, words: str, *, active: bool = True) -> Tool:
    folder = library.paths.folder.parent / "sources" / name.replace("/", "_")
    write_document(folder, "one.md", f"# {name}\n\n{words}{FILLER}\n")
    options = ToolOptions(alias=choose_alias(name, library.tools()))
    return library.store.tools.put(Tool(name, "folder", about, str(folder), active, options=options))


def assert_matches_snapshot(name: str, registry: ToolRegistry) -> None:
    """Compare what `tools/list` sends with what it sent when somebody last looked."""
    found = talk(registry, lambda client: client.list_tools())
    sent = {"tools": found.model_dump(by_alias=True, mode="json", exclude_none=True)["tools"]}
    path = SNAPSHOTS / f"{name}.json"
    if os.environ.get("BUNKO_UPDATE_SNAPSHOTS") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(sent, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert sent == kept, (
        f"Every assistant reads these schemas at every start. If the change is meant, run "
        f"`BUNKO_UPDATE_SNAPSHOTS=1 pytest tests/mcp -k snapshot` and commit {path.name}."
    )


def disable_recipes(store: Sqlite) -> None:
    [tool] = [tool for tool in store.tools.all() if tool.name == "recipes"]
    store.tools.put(replace(tool, active=False))
