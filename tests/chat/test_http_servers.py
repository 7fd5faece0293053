"""The tools of an MCP server behind a URL: the real `bunko serve --http`, with its token, and without."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from bunko.interfaces.chat.mcp_manager import MCPManager
from bunko.interfaces.chat.server_config import ServerConfig, load_server_configs
from bunko.interfaces.chat.server_connection import connect_servers
from bunko.interfaces.chat.servers import MCPServerError, MCPToolNotFoundError
from tests.mcp.test_http import Process

pytestmark = pytest.mark.slow  # starts a server as a process


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path)
    yield process
    process.end()


def listed(tmp_path: Path, server: Process, token: str) -> tuple[ServerConfig, ...]:
    """Return the servers of a list whose only entry sends a token from the environment."""
    entry = {"url": f"{server.origin}/mcp", "headers": {"Authorization": "Bearer ${BUNKO_TOKEN}"}}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"notes": entry}}), encoding="utf-8")
    return load_server_configs(path, {"BUNKO_TOKEN": token}).servers


def test_a_server_behind_a_url_is_called_with_its_headers(tmp_path: Path, server: Process) -> None:
    async def run() -> None:
        async with connect_servers(listed(tmp_path, server, server.token()), start_timeout=30) as connections:
            manager = MCPManager(connections)
            names = {tool.name: tool.tool.read_only for tool in await manager.tools()}
            assert (names["search"], names["reindex"]) == (True, False)
            output = await manager.call_tool("search", {"query": "京都"})
            assert output.structured is not None
            assert output.structured["results"][0]["citation"] == "京都.md:L1-L3"

    anyio.run(run)


def test_a_wrong_token_is_a_sentence_that_does_not_show_it(tmp_path: Path, server: Process) -> None:
    async def run() -> None:
        configs = listed(tmp_path, server, "not-the-token")
        assert "not-the-token" not in repr(configs)
        async with connect_servers(configs, start_timeout=30) as connections:
            manager = MCPManager(connections)
            assert await manager.tools() == []
            assert "not available" in manager.problems["notes"]
            assert "401" in manager.problems["notes"]
            assert "not-the-token" not in manager.problems["notes"]
            with pytest.raises(MCPToolNotFoundError, match="No MCP server offers the tool search"):
                await manager.call_tool("search", {"query": "京都"})

    anyio.run(run)


def test_a_server_that_ends_is_a_sentence_and_is_used_again_when_it_is_back(tmp_path: Path, server: Process) -> None:
    async def run() -> None:
        async with connect_servers(listed(tmp_path, server, server.token()), start_timeout=20) as connections:
            manager = MCPManager(connections, call_timeout=10)
            await manager.call_tool("search", {"query": "京都"})
            server._process.terminate()
            server._process.wait(60)
            with pytest.raises(MCPServerError, match="The MCP server notes is not available"):
                await manager.call_tool("search", {"query": "寺"})
            again = Process(tmp_path, "--port", str(server.port))
            try:
                with anyio.fail_after(60):
                    while True:
                        try:
                            output = await manager.call_tool("search", {"query": "京都"})
                            break
                        except MCPServerError:
                            await anyio.sleep(0.1)
                assert "京都.md:L1-L3" in output.text
            finally:
                again.end()

    anyio.run(run)


def test_nothing_behind_a_url_is_a_sentence(tmp_path: Path) -> None:
    async def run() -> None:
        config = ServerConfig("gone", "http", url="http://user:secret@127.0.0.1:9/mcp?key=secret")
        async with connect_servers([config], start_timeout=10) as connections:
            manager = MCPManager(connections)
            assert await manager.tools() == []
            assert "The MCP server gone is not available" in manager.problems["gone"]
            assert "secret" not in manager.problems["gone"]

    anyio.run(run)
