"""Our real server over real HTTP with the suite's fixtures added: `python -m tests.slow.conformance.server FOLDER`.

The class, the desk, the library and the app around them are bunko's own. Added are the tools, resources and prompts
that the suite calls by name, and the bearer token, which the suite has no way to send.
"""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import PromptsListChanged

from bunko.interfaces.http import app as http
from bunko.interfaces.mcp import server
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.tool import ToolCall, ToolDefinition, ToolReply, object_schema
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.paths import locate_library
from bunko.types import Tool as LibraryTool
from bunko.types.access import Caller
from tests.slow.conformance import fixtures
from tests.slow.conformance.fixtures import Context

TOKEN = "conformance"


class Suite(server.BunkoServer):
    """Bunko with the suite's fixtures."""

    def __init__(self, desk: ToolRegistry, **options: bool) -> None:
        super().__init__(desk, **options)
        self.add_request_handler("prompts/list", types.PaginatedRequestParams, fixtures.list_prompts)
        self.add_request_handler("prompts/get", types.GetPromptRequestParams, fixtures.get_prompt)
        self.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="bunko"))

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        found = await super()._list_tools(ctx, params)
        own = fixtures.described([*fixtures.TOOLS, "test_trigger_prompt_change"])
        return found.model_copy(update={"tools": sorted([*found.tools, *own], key=lambda tool: tool.name)})

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        if params.name == "test_trigger_prompt_change":
            await self._bus.publish(PromptsListChanged())
            return fixtures.complete(fixtures.text("The prompts changed."))
        if params.name in fixtures.TOOLS:
            return await fixtures.TOOLS[params.name](ctx, params)
        return await super()._call_tool(ctx, params)

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        known = fixtures.RESOURCES.get(str(params.uri))
        if known is not None:
            return types.ReadResourceResult(contents=[known])
        return await super()._read_resource(ctx, params)


class Counter(ToolRegistry):
    """A desk with the suite's plain tools, one of which changes the library as another process would."""

    def tools(self, caller: Caller | None = None) -> list[ToolDefinition]:
        change = ToolDefinition(
            "test_trigger_tool_change", "Change", "Change the tools", (), object_schema({}), self._change, right="read"
        )
        return sorted([*super().tools(caller), *fixtures.DESK_TOOLS, change], key=lambda tool: tool.name)

    def _change(self, call: ToolCall) -> ToolReply:
        store = self.library().store
        changing = next(tool for tool in store.tools.all() if tool.name == "changing")
        store.tools.put(replace(changing, active=not changing.active))
        return ToolReply("The tools changed.", {})


def application(docs: Path) -> Any:
    """Return bunko's app over a folder, with the fixtures."""

    def opener() -> Library:
        library = open_library(locate_library(library=docs.with_name("library"), environ={}), environ={})
        library.store.tools.put(LibraryTool("documents", "folder", "Documents", str(docs)))
        library.store.tools.put(LibraryTool("changing", "folder", "A tool that comes and goes", str(docs)))
        library.reindex()
        return library

    desk = Counter(opener, toolsets=("folder", "tools"))
    desk.library()
    vars(server)["BunkoServer"] = Suite  # the app builds its server by this name
    server._POLL_SECONDS = 0.1  # the suite waits a second and a half for news, on whatever machine
    app = http.build_app(desk, token=TOKEN, host="127.0.0.1")

    async def with_token(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {TOKEN}".encode())]}
        await app(scope, receive, send)

    return with_token


def main() -> None:
    """Serve until killed; the port is the first line of output."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = application(Path(sys.argv[1]))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, http="h11", log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
