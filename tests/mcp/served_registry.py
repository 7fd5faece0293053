"""Serve a library over HTTP in a thread, and talk to it with the SDK's client."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bunko.interfaces.http.app import build_app, build_server
from bunko.interfaces.tools.registry import ToolRegistry

PATIENCE = 60.0
SERVER_TOKEN = "the-token-of-this-server"


class HttpReply(NamedTuple):
    """A whole answer."""

    status: int
    authenticate: str
    session: str
    text: str


class HttpServer:
    """A server in a thread of this process."""

    def __init__(self, port: int) -> None:
        self.port = port

    def talk(self, token: str, do: Callable[[Client], Awaitable[Any]], mode: str = "auto") -> Any:
        """Connect a client with a token, and let it do something."""

        async def main() -> Any:
            address, headers = f"http://127.0.0.1:{self.port}/mcp", {"Authorization": f"Bearer {token}"}
            with anyio.fail_after(PATIENCE):
                async with (
                    httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as web,
                    Client(streamable_http_client(address, http_client=web), mode=mode, cache=None) as client,
                ):
                    try:
                        return True, await do(client)
                    except Exception as error:  # outside, it is not wrapped in the client's group of tasks
                        return False, error

        succeeded, outcome = anyio.run(main)
        if not succeeded:
            raise outcome
        return outcome

    def call(self, token: str, name: str, **arguments: Any) -> Any:
        """Call a tool."""
        return self.talk(token, lambda client: client.call_tool(name, arguments))

    def tool_names(self, token: str) -> list[str]:
        """Return the names of the tools that a token can list."""
        return [tool.name for tool in self.talk(token, lambda client: client.list_tools()).tools]

    def ask(self, authorization: str | None, method: str = "initialize", session: str = "") -> HttpReply:
        """Send one request of the older protocol with this header."""
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": client if method == "initialize" else {}}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= {"Authorization": authorization} if authorization is not None else {}
        headers |= {"Mcp-Session-Id": session} if session else {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("POST", "/mcp", json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode()
            found = response.headers
            return HttpReply(response.status, found["WWW-Authenticate"] or "", found["Mcp-Session-Id"] or "", text)
        finally:
            connection.close()

    @contextmanager
    def listen(self, authorization: str, *, session: str = "") -> Iterator[http.client.HTTPResponse]:
        """Open a stream of changes: in a session of the older protocol, else as the newer one does."""
        headers = {"Accept": "application/json, text/event-stream", "Authorization": authorization}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            if session:
                connection.request("GET", "/mcp", headers=headers | {"Mcp-Session-Id": session})
            else:
                version, method, key = "2026-07-28", "subscriptions/listen", "io.modelcontextprotocol"
                client = {"name": "test", "version": "1"}
                meta = {f"{key}/protocolVersion": version, f"{key}/clientInfo": client, f"{key}/clientCapabilities": {}}
                params = {"notifications": {"toolsListChanged": True}, "_meta": meta}
                body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
                headers |= {"Content-Type": "application/json", "MCP-Protocol-Version": version, "Mcp-Method": method}
                connection.request("POST", "/mcp", body, headers)
            yield connection.getresponse()
        finally:
            connection.close()


@contextmanager
def serve_registry(registry: ToolRegistry) -> Iterator[HttpServer]:
    """Serve a registry until the block ends."""
    app = build_app(registry, token=SERVER_TOKEN, host="127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = build_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield HttpServer(listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(timeout=PATIENCE)
            assert not thread.is_alive()
