"""HTTP clients that say nothing, too much or half a sentence, and those that go without a word."""

from __future__ import annotations

import http.client
import json
import logging
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from starlette.requests import ClientDisconnect

from bunko.interfaces.http import app as http_module
from bunko.interfaces.http import connections
from bunko.interfaces.http.app import build_app, build_server
from bunko.interfaces.http.guards import CLIENT_LOG, limit_client_logs
from bunko.interfaces.http.listener import open_listening_socket
from bunko.interfaces.mcp import streamable_http
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library

PATIENCE = 60.0
TOKEN = "a-token-of-this-test"
HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
HEAD = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    session: str
    text: str


class Server:
    """A server in a thread of this process, and the clients of a test."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.clients: list[socket.socket | http.client.HTTPConnection] = []

    def connect(self, data: str = "") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        self.clients.append(client)
        client.sendall(data.encode())
        return client

    def begin(self, method: str, body: str = "", session: str = "", **more: str) -> http.client.HTTPResponse:
        """Send a request and return its answer, which may not be complete yet."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        self.clients.append(connection)
        headers = HEADERS | ({"Mcp-Session-Id": session} if session else {}) | more
        connection.request(method, "/mcp", body, headers)
        return connection.getresponse()

    def request(self, method: str, body: str = "", session: str = "") -> Reply:
        response = self.begin(method, body, session)
        text = response.read().decode()
        self.clients.pop().close()
        return Reply(response.status, response.headers.get("Mcp-Session-Id", ""), text)

    def ask(self, method: str, params: dict[str, Any], session: str = "") -> Reply:
        return self.request("POST", question(method, params), session)

    def search(self, session: str) -> str:
        return self.ask("tools/call", {"name": "search", "arguments": {"query": "京都"}}, session).text

    def open_session(self) -> str:
        reply = self.ask("initialize", INITIALIZE)
        assert reply.status == 200
        assert reply.session
        return reply.session


def question(method: str, params: dict[str, Any], number: int = 1) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server whose limits are as short as the parameters of the test say."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name, value in getattr(request, "param", {}).items():
        modules = (connections, streamable_http, http_module)
        monkeypatch.setattr(next(module for module in modules if hasattr(module, name)), name, value)
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# 京都\n\n京都の寺を巡る旅。\n", encoding="utf-8")
    with open_library(locate_library(docs_dir=docs, environ={}), environ={}) as library:
        app = build_app(ToolRegistry(lambda: library, folder=str(docs)), token=TOKEN, host="127.0.0.1")
        listener = open_listening_socket("127.0.0.1", 0, allow_remote=False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # so that a client soon has enough to read
        web = build_server(app)
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]})
        thread.start()
        server = Server(listener.getsockname()[1])
        yield server
        for client in server.clients:
            client.close()
        web.should_exit = True
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive()
        listener.close()


def limits(**values: float) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("server", [values], indirect=True, ids=[""])


def trickle(client: socket.socket, data: str = "x") -> bytes:
    """Send a byte now and then until the server has enough, and return what it said."""
    received, deadline = b"", time.monotonic() + PATIENCE
    with client:
        while time.monotonic() < deadline:
            readable, _, _ = select.select([client], [], [], 0.02)
            try:
                if readable:
                    part = client.recv(100_000)
                    if not part:
                        return received
                    received += part
                client.sendall(data.encode())
            except OSError:
                return received
    raise AssertionError("The server still listens")


@pytest.mark.slow
@limits(HEADER_SECONDS=0.2, BODY_SECONDS=0.2, KEEP_ALIVE_SECONDS=0.2)
@pytest.mark.parametrize(
    "data",
    [
        "",
        "POST /m",
        HEAD,
        f"{HEAD}Content-Length: 1000\r\n\r\n{{",
        f"{HEAD}Transfer-Encoding: chunked\r\n\r\n",
        "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /m",  # the second request on a connection
    ],
)
def test_a_client_that_stops_in_the_middle_is_let_go(server: Server, data: str) -> None:
    with server.connect(data) as client:
        while True:
            try:
                if not client.recv(100_000):
                    break
            except ConnectionResetError:
                break
    assert server.open_session()


@pytest.mark.slow
@limits(HEADER_SECONDS=0.2, BODY_SECONDS=0.2, REFUSED_SECONDS=0.2)
@pytest.mark.parametrize(
    ("data", "more", "answer"),
    [
        (f"{HEAD}X-Long: ", "x", b""),
        (f"{HEAD}Content-Length: 1000\r\n\r\n", " ", b""),
        (f"{HEAD}Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", b""),
        (f"{HEAD}Content-Length: 100000000\r\n\r\n", "x", b" 413 "),
        ("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n", "x", b" 401 "),
    ],
)
def test_a_client_that_sends_byte_by_byte_is_let_go(server: Server, data: str, more: str, answer: bytes) -> None:
    assert answer in trickle(server.connect(data), more)
    assert server.open_session()


def test_a_header_without_end_is_refused(server: Server) -> None:
    assert trickle(server.connect(HEAD), f"X-{'y' * 1000}: z\r\n").startswith(b"HTTP/1.1 400 ")
    assert server.open_session()


@pytest.mark.slow
@limits(REFUSED_SECONDS=0.2)
def test_a_body_without_end_is_refused(server: Server) -> None:
    chunk = f"10000\r\n{'x' * 65536}\r\n"
    assert trickle(server.connect(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n"), chunk).startswith(b"HTTP/1.1 413 ")
    assert server.open_session()


@pytest.mark.slow
@limits(MAX_CONNECTIONS=50)
def test_two_hundred_silent_clients_keep_nobody_out(server: Server) -> None:
    silent = [server.connect("POST /mcp" if number % 2 else "") for number in range(200)]
    assert "a.md" in server.search(server.open_session())
    assert any(select.select(silent, [], [], PATIENCE))  # the first of them had to go


@limits(MAX_CONNECTIONS=3)
def test_half_a_request_makes_room_for_a_whole_one(server: Server) -> None:
    halves = [server.connect(f"{HEAD}Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n") for _ in range(3)]
    for half in halves:
        assert half.recv(1000).startswith(b"HTTP/1.1 100 ")  # it waits for the body
    assert server.open_session()
    assert any(select.select(halves, [], [], PATIENCE))  # the first of them had to go


@limits(MAX_CONNECTIONS=3)
def test_half_a_request_makes_room_before_a_client_that_has_just_come(server: Server) -> None:
    for _ in range(3):
        half = server.connect(f"{HEAD}Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n")
        assert half.recv(1000).startswith(b"HTTP/1.1 100 ")
    clients = [server.connect() for _ in range(3)]
    for client in clients:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert [client.recv(1000)[:13] for client in clients] == [b"HTTP/1.1 200 "] * 3


@limits(MAX_CONNECTIONS=3)
def test_a_client_that_only_listens_makes_room_for_one_that_asks(server: Server) -> None:
    streams = [server.begin("GET", session=server.open_session()) for _ in range(3)]
    assert [stream.status for stream in streams] == [200, 200, 200]
    assert server.open_session()
    with pytest.raises(http.client.IncompleteRead):
        streams[0].read()


@limits(MAX_CONNECTIONS=3, STREAM_AFTER_SECONDS=0)
def test_so_does_one_of_the_newer_protocol(server: Server) -> None:
    version, key, method = "2026-07-28", "io.modelcontextprotocol", "subscriptions/listen"
    meta = {f"{key}/protocolVersion": version, f"{key}/clientCapabilities": {}}
    body = question(method, {"notifications": {"toolsListChanged": True}, "_meta": meta})
    newer = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    streams = [server.begin("POST", body, **newer) for _ in range(3)]
    assert [stream.status for stream in streams] == [200, 200, 200]
    assert server.open_session()
    with pytest.raises(http.client.IncompleteRead):
        streams[0].read()


@limits(MAX_CONNECTIONS=2, STREAM_AFTER_SECONDS=0)
def test_while_all_clients_are_served_a_new_one_is_told_to_come_later(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, gate, running = server.open_session(), threading.Event(), threading.Semaphore(0)

    def wait(*_: object, **__: object) -> None:
        running.release()
        gate.wait(PATIENCE)

    monkeypatch.setattr(Library, "verify_citation", wait)
    call = {"name": "verify", "arguments": {"citation": "a.md:L1", "hash": "x"}}
    answers = [server.begin("POST", question("tools/call", call, number), session) for number in (1, 2)]
    for _ in answers:
        assert running.acquire(timeout=PATIENCE)
    with server.connect() as client:
        reply = client.recv(1000)
    assert reply.startswith(b"HTTP/1.1 503 ")
    assert json.loads(reply.partition(b"\r\n\r\n")[2])["error"]["message"].startswith("Too many open connections. Try")
    gate.set()
    for answer in answers:
        answer.read()
    assert server.open_session()


@pytest.mark.slow
@limits(STALLED_SECONDS=0.2)
def test_a_client_that_does_not_read_is_let_go(server: Server) -> None:
    session = server.open_session()
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    client.settimeout(PATIENCE)
    client.connect(("127.0.0.1", server.port))
    request = question("tools/list", {})
    head = f"{HEAD}Mcp-Session-Id: {session}\r\nContent-Length: {len(request)}\r\n\r\n"
    server.clients.append(client)
    with suppress(ConnectionError):
        while True:
            client.sendall(f"{head}{request}".encode())
    assert server.open_session()


@limits(STREAM_AFTER_SECONDS=0)
def test_a_cancelled_call_that_hangs_ends_for_its_client(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    session, gate, running = server.open_session(), threading.Event(), threading.Event()

    def hang(*_: object, **__: object) -> None:
        running.set()
        gate.wait(PATIENCE)

    monkeypatch.setattr(Library, "verify_citation", hang)
    call = {"name": "verify", "arguments": {"citation": "a.md:L1", "hash": "x"}}
    hanging = server.begin("POST", question("tools/call", call, 7), session)
    assert running.wait(PATIENCE)
    cancelled = json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
    assert server.request("POST", cancelled, session).status == 202
    hanging.read()  # the answer ends
    assert "a.md" in server.search(session)
    gate.set()


def test_the_parts_of_a_reply_do_not_wait_for_each_other(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this option, the system holds back the second part until the client has acknowledged the first."""
    options: list[int] = []
    detect = connections.detect_vanished_client

    def look(transport: Any) -> None:
        options.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        detect(transport)

    monkeypatch.setattr(connections, "detect_vanished_client", look)
    server.open_session()
    assert all(options)
    assert options


def test_clients_neither_fill_the_log_nor_control_the_terminal_that_shows_it(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    hostile = "GET /healthz HTTP/1.1\r\nHost: \x1b]0;owned\x07" + "x" * 5000 + "\r\nConnection: close\r\n\r\n"
    for _ in range(30):
        with server.connect(hostile) as client:
            assert b" 421 " in client.recv(1000)
    lines = [record.getMessage() for record in caplog.records if record.name == CLIENT_LOG]
    assert 1 <= len(lines) < 30
    assert "Invalid Host header" in lines[0]
    assert not {"\x1b", "\x07"} & set("".join(lines))
    assert max(map(len, lines)) < 300


def test_a_client_that_goes_in_the_middle_of_a_request_is_no_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("uvicorn.error")
    limit_client_logs()
    monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)  # False once a server has run
    for error in (ClientDisconnect(), ValueError("an error of ours")):
        try:
            raise error
        except (ClientDisconnect, ValueError):
            logger.exception("Error handling POST request")
    # After other tests a record may come twice.
    assert {record.exc_info[0] for record in caplog.records if record.exc_info} == {ValueError}
