"""Requests over HTTP that no client should send: each gets a status and an error that say what is wrong."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from bunko.interfaces.mcp import streamable_http
from bunko.interfaces.tools.registry import ToolRegistry
from tests.http.server import BEARER, PATIENCE, serve_app

PREFIX = "io.modelcontextprotocol"
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
ENVELOPE = {f"{PREFIX}/protocolVersion": "2026-07-28", f"{PREFIX}/clientCapabilities": {}}
JSON_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **BEARER}
NEWER = {"MCP-Protocol-Version": "2026-07-28"}


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def code(self) -> int:
        """The code of the error."""
        return int(json.loads(self.body)["error"]["code"])


class Server:
    """A server, and the session of a client."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.session = ""

    def send(self, method: str, body: bytes = b"", headers: list[tuple[str, str]] | None = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        connection.putrequest(method, "/mcp")
        for name, value in headers or []:
            connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        reply = Reply(response.status, response.headers, response.read())
        connection.close()
        return reply

    def post(self, content: Any, **headers: str) -> Reply:
        """Send JSON in the session if there is one."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        session = {"Mcp-Session-Id": self.session} if self.session and "MCP-Protocol-Version" not in headers else {}
        return self.send("POST", body, list((JSON_HEADERS | session | headers).items()))

    def post_newer(self, method: str, params: dict[str, Any], **headers: str) -> Reply:
        """Send a request of the newer era; headers may differ from what it says."""
        content = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.post(content, **({"Mcp-Method": method} | NEWER | headers))


@pytest.fixture
def server(registry: ToolRegistry) -> Iterator[Server]:
    with serve_app(registry) as port:
        server = Server(port)
        reply = server.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE})
        server.session = reply.headers["Mcp-Session-Id"]
        yield server
        listed = server.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert len(json.loads(listed.body)["result"]["tools"]) > 3


def request(method: str, params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize("headers", [{}, NEWER], ids=["older", "newer"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700), (b"{", -32700), (b"\xff\xfe", -32700), (b'{"id": NaN}', -32700), (b"[" * 100_000, -32700),
        (b'{"a":' * 100_000, -32700), (b'"\\ud800"', -32700), (b"9" * 10_000, -32700), (b"null", -32600),
        (b"[]", -32600), (b"5", -32600), (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600), (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', -32602),
    ],
)  # fmt: skip
def test_a_body_that_is_no_message_is_refused(body: bytes, code: int, headers: dict[str, str], server: Server) -> None:
    reply = server.post(body, **headers)
    assert (reply.status, reply.code) == (400, code)


def test_a_body_has_a_limit_whether_it_is_announced_or_not(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamable_http, "MAX_BODY_BYTES", 1000)
    assert server.post(b" " * 1001).status == 413
    chunked = [*JSON_HEADERS.items(), ("Transfer-Encoding", "chunked")]
    connection = http.client.HTTPConnection("127.0.0.1", server._port, timeout=PATIENCE)
    connection.request("POST", "/mcp", iter([b" " * 600, b" " * 600]), dict(chunked), encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_what_a_request_accepts_and_sends_is_checked(server: Server) -> None:
    ping = request("ping")
    for accepted in ("application/json", "text/event-stream", "text/html", "", "application/jsonx, text/event-stream"):
        assert server.post(ping, Accept=accepted).status == 406
        assert server.post_newer("tools/list", {"_meta": ENVELOPE}, Accept=accepted).status == 406
    for accepted in ("*/*", "application/*, text/*", "Application/JSON;q=0.5,text/event-stream ; q=1"):
        assert server.post(ping, Accept=accepted).status == 200
    for sent in ("text/plain", "", "application/x-www-form-urlencoded"):
        assert server.post(ping, **{"Content-Type": sent}).status == 415
    assert server.post(ping, **{"Content-Type": "application/json; charset=utf-8"}).status == 200


def test_other_methods_are_named(server: Server) -> None:
    reply = server.send("PUT", b"{}", list(JSON_HEADERS.items()))
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, POST, DELETE")
    for method in ("GET", "DELETE", "PUT"):
        reply = server.send(method, b"", list((JSON_HEADERS | NEWER).items()))
        assert (reply.status, reply.headers["Allow"]) == (405, "POST")


def test_a_stateless_server_keeps_nothing_that_could_be_listened_to_or_ended(registry: ToolRegistry) -> None:
    with serve_app(registry, stateless=True) as port:
        server = Server(port)
        for method in ("GET", "DELETE"):
            reply = server.send(method, b"", list(JSON_HEADERS.items()))
            assert (reply.status, reply.headers["Allow"]) == (405, "POST")
        assert server.post(request("initialize", HANDSHAKE)).headers["Mcp-Session-Id"] is None
        assert json.loads(server.post(request("tools/list")).body)["result"]["tools"]


def test_messages_without_a_reply_are_accepted(server: Server) -> None:
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"jsonrpc": "2.0", "method": "no/such/notification"},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
    ):
        reply = server.post(message)
        assert (reply.status, reply.body) == (202, b"")
    notification = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    assert server.post(notification, **NEWER).status == 202
    assert server.post(notification, **{"MCP-Protocol-Version": "2099-01-01"}).code == -32022
    assert server.post({"jsonrpc": "2.0", "id": 5, "result": {}}, **NEWER).status == 400


@pytest.mark.parametrize("method", ["no/such/method", "server/discover", "prompts/list"])
def test_errors_of_the_older_era_come_with_the_status_that_its_clients_read(method: str, server: Server) -> None:
    reply = server.post(request(method))
    assert (reply.status, reply.code) == (200, -32601)


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("no/such/method", {"_meta": ENVELOPE}, 404, -32601),
        ("ping", {"_meta": ENVELOPE}, 404, -32601),
        ("initialize", {"_meta": ENVELOPE}, 404, -32601),
        ("tools/list", {}, 400, -32602),
        ("tools/list", {"_meta": 5}, 400, -32602),
        ("tools/list", {"_meta": {f"{PREFIX}/protocolVersion": "2026-07-28"}}, 400, -32602),
        ("tools/list", {"_meta": ENVELOPE, "cursor": 5}, 400, -32602),
        ("tools/list", {"_meta": ENVELOPE | {f"{PREFIX}/protocolVersion": "2099-01-01"}}, 400, -32020),
        ("tools/call", {"_meta": ENVELOPE, "name": 5}, 400, -32020),
    ],
)
def test_errors_of_the_newer_era_have_a_status_of_their_own(
    method: str, params: dict[str, Any], status: int, code: int, server: Server
) -> None:
    reply = server.post_newer(method, params)
    assert (reply.status, reply.code) == (status, code)


def test_headers_must_say_what_the_request_says(server: Server) -> None:
    call = {"_meta": ENVELOPE, "name": "search", "arguments": {"query": "京都"}}
    for headers in (
        {"Mcp-Method": "tools/list", "Mcp-Name": "search"},
        {"Mcp-Name": "list"},
        {},
        {"Mcp-Name": "=?base64?c2VhcmNo?"},
        {"Mcp-Name": "=?base64?%%%?="},
        {"Mcp-Name": "=?base64?c2VhcmNp?="},
    ):
        reply = server.post_newer("tools/call", call, **headers)
        assert (reply.status, reply.code) == (400, -32020)
    for name in ("search", "=?base64?c2VhcmNo?="):
        assert server.post_newer("tools/call", call, **{"Mcp-Name": name}).status == 200
    twice = [*(JSON_HEADERS | NEWER).items(), ("Mcp-Method", "tools/list"), ("Mcp-Method", "tools/list")]
    reply = server.send("POST", json.dumps(request("tools/list", {"_meta": ENVELOPE})).encode(), twice)
    assert (reply.status, reply.code) == (400, -32020)
    reply = server.post_newer(
        "tools/list",
        {"_meta": ENVELOPE | {f"{PREFIX}/protocolVersion": "2099-01-01"}},
        **{"MCP-Protocol-Version": "2099-01-01"},
    )
    assert (reply.status, reply.code) == (400, -32022)
