"""Replies of tools on the wire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from bunko.interfaces.mcp.messages import Request
from bunko.interfaces.mcp.protocol import ClientCall, answer
from bunko.interfaces.mcp.server import BunkoServer
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.tool import DocumentLink, ToolDefinition, ToolReply, object_schema
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.rights.audit import local_caller
from bunko.types.access import Caller

REPLY = ToolReply(
    "二件。\n\n</text>",
    {"results": [{"score": 0.25, "date": None, "tags": ("a", "b")}], "total": 2},
    [DocumentLink("bunko://notes/a.md", "a.md", "題"), DocumentLink("bunko://notes/b.md", "b.md")],
)


class _Registry(ToolRegistry):
    def tools(self, caller: Caller | None = None) -> list[ToolDefinition]:
        return [ToolDefinition("two", "Two", "Two", (), object_schema({}), lambda _: REPLY, right="read")]


class _PlainServer(Server[None]):
    """A server that lets the SDK write the reply."""

    def __init__(self) -> None:
        super().__init__("plain", on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    async def _call(self, ctx: Any, params: Any) -> types.CallToolResult:
        links = [
            types.ResourceLink(type="resource_link", uri=link.address, name=link.name, title=link.title or None)
            for link in REPLY.links
        ]
        text = types.TextContent(type="text", text=REPLY.text)
        return types.CallToolResult(content=[text, *links], structured_content=REPLY.structured)


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
def test_a_reply_says_what_one_of_the_sdk_would_say(version: str, tmp_path: Path) -> None:
    library = open_library(locate_library(library=tmp_path / "library", environ={}), environ={})
    registry = _Registry(lambda: library)
    with library:
        ours, of_sdk = anyio.run(_our_result, BunkoServer(registry), version), anyio.run(_result_of_sdk, version)
    for result in (ours, of_sdk):
        result.pop("_meta", None)  # the name of the server

    assert json.loads(json.dumps(ours)) == json.loads(json.dumps(of_sdk))
    assert ours["structuredContent"]["total"] == 2


def _params(version: str) -> dict[str, Any]:
    envelope = {"protocolVersion": version, "clientInfo": {"name": "test", "version": "1"}, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in envelope.items()}
    return {"name": "two", "arguments": {}, "_meta": meta}


async def _our_result(server: BunkoServer, version: str) -> dict[str, Any]:
    async def send(message: object) -> None:
        raise AssertionError(message)

    call = ClientCall(Request(1, "tools/call", _params(version)), version, local_caller("stdio"), send)
    result: dict[str, Any] = (await answer(server, call))["result"]
    return result


async def _result_of_sdk(version: str) -> dict[str, Any]:
    class _Context:
        message_metadata = None
        request_id = 1

    context: Any = _Context()
    runner = ServerRunner(_PlainServer(), Connection.from_envelope(version, None, None), None)
    return await runner.on_request(context, "tools/call", _params(version))
