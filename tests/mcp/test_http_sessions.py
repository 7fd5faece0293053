"""Sessions over HTTP: whose they are, how many there may be, and when they end."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bunko.interfaces.http import authorization
from bunko.interfaces.mcp import streamable_http
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types.access import Rights
from tests.mcp.served_registry import PATIENCE, SERVER_TOKEN, serve_registry

READ_ONLY = Rights()
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Client:
    """One caller with a connection that stays open."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def begin(self, method: str, body: str = "", **headers: str) -> http.client.HTTPResponse:
        self._connection.request(method, "/mcp", body.encode(), self._headers | headers)
        return self._connection.getresponse()

    def send(self, method: str, body: str = "", **headers: str) -> tuple[int, str, str]:
        """Return the status, the session and the text of an answer."""
        response = self.begin(method, body, **headers)
        text = response.read().decode()
        return response.status, response.headers["Mcp-Session-Id"] or "", text

    def ask(self, method: str, params: dict[str, Any], session: str = "") -> tuple[int, str, str]:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return self.send("POST", body, **({"Mcp-Session-Id": session} if session else {}))

    def open_session(self) -> str:
        status, session, text = self.ask("initialize", HANDSHAKE)
        assert status == 200, text
        assert session
        return session

    def has_session(self, session: str) -> bool:
        status, _, _ = self.ask("ping", {}, session)
        assert status in (200, 404)
        return status == 200

    def close(self) -> None:
        self._connection.close()


class Clients:
    """The callers of one server."""

    def __init__(self, port: int, library: Library) -> None:
        self._port, self._library, self._clients = port, library, list[Client]()

    def connect(self, token: str) -> Client:
        self._clients.append(Client(self._port, token))
        return self._clients[-1]

    def add(self, name: str, rights: Rights = READ_ONLY) -> Client:
        """Connect as somebody new, who may only read unless there are other rights."""
        return self.connect(self._library.tokens.add(name, rights))

    def revoke(self, name: str) -> None:
        self._library.tokens.revoke(name)

    def close(self) -> None:
        for client in self._clients:
            client.close()


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Clients]:
    """A server whose limits are as small as the parameters of the test say."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(authorization, "FRESH_SECONDS", 0.0)
    for name, value in getattr(request, "param", {}).items():
        monkeypatch.setattr(streamable_http, name, value)
    paths = locate_library(library=tmp_path / "library", environ={})
    with (
        open_library(paths, environ={"BUNKO_EMBEDDING_PROVIDER": "none"}) as library,
        serve_registry(ToolRegistry(lambda: library)) as server,
    ):
        clients = Clients(server.port, library)
        yield clients
        clients.close()


def limits(**values: float) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("clients", [values], indirect=True, ids=[""])


@pytest.mark.slow
def test_one_caller_with_1200_sessions_keeps_nobody_out(clients: Clients) -> None:
    alice, mallory, bob = clients.add("alice"), clients.add("mallory"), clients.add("bob")
    session = alice.open_session()
    sessions = [mallory.open_session() for _ in range(1200)]
    assert alice.has_session(session)
    assert bob.has_session(bob.open_session())
    assert clients.connect(SERVER_TOKEN).open_session()
    assert mallory.has_session(sessions[-1])
    assert not mallory.has_session(sessions[0])


@limits(MAX_OF_CALLER=3)
def test_at_its_limit_a_caller_loses_the_session_that_was_idle_for_longest(clients: Clients) -> None:
    alice, bob = clients.add("alice"), clients.add("bob")
    of_bob = bob.open_session()
    first, second, third = (alice.open_session() for _ in range(3))
    assert alice.has_session(first)  # and it is used
    fourth = alice.open_session()
    assert [alice.has_session(session) for session in (first, second, third, fourth)] == [True, False, True, True]
    assert bob.has_session(of_bob)


@limits(MAX_OF_CALLER=4, MAX_SESSIONS=5)
def test_at_the_limit_of_the_server_the_caller_with_the_most_sessions_loses_one(clients: Clients) -> None:
    alice, mallory = clients.add("alice"), clients.add("mallory")
    of_alice = alice.open_session()
    of_mallory = [mallory.open_session() for _ in range(4)]
    assert clients.add("bob").open_session()
    assert alice.has_session(of_alice)
    assert [mallory.has_session(session) for session in of_mallory] == [False, True, True, True]


@limits(MAX_OF_CALLER=2)
def test_a_session_that_only_listens_makes_room_after_those_that_are_idle(clients: Clients) -> None:
    alice, listening = clients.add("alice"), clients.connect(SERVER_TOKEN)
    assert alice.open_session()
    server_user = clients.connect(SERVER_TOKEN)
    heard, idle = server_user.open_session(), server_user.open_session()
    stream = listening.begin("GET", **{"Mcp-Session-Id": heard})
    assert stream.status == 200
    third = server_user.open_session()
    assert [server_user.has_session(session) for session in (heard, idle, third)] == [True, False, True]
    other = clients.connect(SERVER_TOKEN).begin("GET", **{"Mcp-Session-Id": third})
    assert other.status == 200
    assert server_user.open_session()
    assert stream.read() == b""  # its client is told that it ended
    assert not server_user.has_session(heard)
    other.close()


@limits(MAX_OF_CALLER=1)
def test_while_all_sessions_of_a_caller_are_busy_a_new_one_is_refused(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, running = threading.Event(), threading.Event()

    def wait(*_: object, **__: object) -> None:
        running.set()
        gate.wait(PATIENCE)

    monkeypatch.setattr(Library, "verify_citation", wait)
    alice, busy = clients.add("alice"), clients.connect(SERVER_TOKEN)
    session = busy.open_session()
    call = {"name": "verify", "arguments": {"citation": "a.md:L1", "hash": "x"}}
    calling = threading.Thread(target=busy.ask, args=("tools/call", call, session))
    calling.start()
    assert running.wait(PATIENCE)
    server_user = clients.connect(SERVER_TOKEN)
    status, _, text = server_user.ask("initialize", HANDSHAKE)
    assert status == 503
    assert "Too many open sessions" in text
    assert alice.open_session()
    gate.set()
    calling.join(PATIENCE)
    assert server_user.open_session()


@limits(IDLE_SECONDS=0.0)
def test_a_session_that_nobody_uses_ends(clients: Clients) -> None:
    alice = clients.add("alice")
    assert not alice.has_session(alice.open_session())


def test_a_session_has_the_rights_that_its_token_has_now(clients: Clients) -> None:
    alice = clients.add("alice", Rights(write=("*",)))
    session = alice.open_session()
    assert '"reindex"' in alice.ask("tools/list", {}, session)[2]
    clients.revoke("alice")
    alice = clients.add("alice", Rights())  # the same name, and fewer rights
    assert alice.has_session(session)
    assert '"reindex"' not in alice.ask("tools/list", {}, session)[2]


def test_a_session_ends_when_its_client_says_so(clients: Clients) -> None:
    alice, bob = clients.add("alice"), clients.add("bob")
    session = alice.open_session()
    header = {"Mcp-Session-Id": session}
    stream = clients.connect(SERVER_TOKEN).begin("GET", **header)
    assert stream.status == 404  # the session of somebody else
    assert bob.send("DELETE", **header)[0] == 404
    assert alice.send("DELETE", **header)[0] == 200
    assert alice.send("DELETE", **header)[0] == 404
    assert not alice.has_session(session)


def test_a_session_begins_with_a_handshake_that_succeeds(clients: Clients) -> None:
    alice = clients.add("alice")
    status, session, text = alice.ask("initialize", {"protocolVersion": 5})
    assert (status, session) == (200, "")
    assert json.loads(text)["error"]["code"] == -32602
    assert alice.ask("tools/list", {})[0] == 400
    assert alice.ask("tools/list", {}, "made-up")[0] == 404
    assert alice.ask("initialize", HANDSHAKE, "made-up")[0] == 404
    session = alice.open_session()
    assert alice.ask("initialize", HANDSHAKE, session)[1] == session


def test_a_client_listens_once_in_a_session(clients: Clients) -> None:
    alice, listening = clients.connect(SERVER_TOKEN), clients.connect(SERVER_TOKEN)
    header = {"Mcp-Session-Id": alice.open_session()}
    assert alice.send("GET", **header, Accept="application/json")[0] == 406
    stream = listening.begin("GET", **header)
    assert stream.headers["Content-Type"] == "text/event-stream"
    assert alice.send("GET", **header)[0] == 409
    assert alice.send("DELETE", **header)[0] == 200
    assert stream.read() == b""
