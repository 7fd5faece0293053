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
from starlette.datastructures import Headers

from bunko.interfaces.http import app as http
from bunko.interfaces.mcp import server
from bunko.interfaces.mcp.messages import Message
from bunko.interfaces.mcp.protocol import STATELESS_VERSIONS, ClientCall
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.tool import ToolCall, ToolDefinition, ToolReply, object_schema
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types import Tool as LibraryTool
from bunko.types.access import Caller
from tests.slow.conformance import fixtures

TOKEN = "conformance"


PROMPTS_CHANGED = "notifications/prompts/list_changed"


class Suite(server.BunkoServer):
    """Bunko with the suite's fixtures."""

    def __init__(self, desk: ToolRegistry, **options: bool) -> None:
        super().__init__(desk, **options)
        self.handlers |= {"prompts/list": fixtures.list_prompts, "prompts/get": fixtures.get_prompt}
        self.announced["promptsListChanged"] = PROMPTS_CHANGED

    def capabilities(self, version: str) -> dict[str, Any]:
        return super().capabilities(version) | {"prompts": {"listChanged": version in STATELESS_VERSIONS}}

    def receive_response(self, message: Message) -> None:
        fixtures.take_response(message)

    async def _list_tools(self, call: ClientCall) -> dict[str, Any]:
        found = await super()._list_tools(call)
        own = fixtures.described([*fixtures.TOOLS, "test_trigger_prompt_change"])
        return {"tools": sorted([*found["tools"], *own], key=lambda tool: tool["name"])}

    async def _call_tool(self, call: ClientCall) -> dict[str, Any]:
        name = call.params.get("name")
        if name == "test_trigger_prompt_change":
            self.announcements.announce(PROMPTS_CHANGED)
            return fixtures.dump(fixtures.complete(fixtures.text("The prompts changed.")))
        if name in fixtures.TOOLS:
            params = types.CallToolRequestParams.model_validate(call.params, by_name=False)
            return fixtures.dump(await fixtures.TOOLS[name](call, params))
        return await super()._call_tool(call)

    async def _read_resource(self, call: ClientCall) -> dict[str, Any]:
        known = fixtures.RESOURCES.get(call.params.get("uri", ""))
        if known is not None:
            return {"contents": [fixtures.dump(known)]}
        return await super()._read_resource(call)


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
    server.POLL_SECONDS = 0.1  # the suite waits a second and a half for news, on whatever machine
    app = http.build_app(desk, token=TOKEN, host="127.0.0.1")

    async def with_token(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            fixtures.HEADERS.set(Headers(scope=scope))
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
