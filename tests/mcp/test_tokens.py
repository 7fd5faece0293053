"""Tokens of a library over HTTP: who gets in, for how long, and what is said about those who do not."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator, MutableMapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from bunko.errors import LibraryUnreachable
from bunko.interfaces.http import authorization
from bunko.interfaces.mcp.server import BunkoServer
from bunko.interfaces.mcp.streamable_http import StreamableHttp
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.rights.tokens import token_digest
from bunko.types.access import Rights, Token
from tests.mcp.mcp_client import add_tool
from tests.mcp.served_registry import SERVER_TOKEN, HttpServer, serve_registry

UNKNOWN = "bunko_" + "x" * 43


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    paths = locate_library(library=tmp_path / "library", environ={})
    with open_library(paths, environ={"BUNKO_EMBEDDING_PROVIDER": "none"}) as opened:
        add_tool(opened, "recipes", "Recipes of the house.", "蜜柑を剝いてから食べる。")
        opened.reindex()
        yield opened


@pytest.fixture
def server(library: Library, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    monkeypatch.setattr(authorization, "FRESH_SECONDS", 0.0)
    with serve_registry(ToolRegistry(lambda: library)) as served:
        yield served


def bearer(token: str) -> str:
    return f"Bearer {token}"


def test_a_token_works_from_the_moment_it_is_added_until_it_is_revoked(library: Library, server: HttpServer) -> None:
    assert server.ask(bearer(UNKNOWN)).status == 401
    token = library.tokens.add("alice", Rights())
    opened = server.ask(bearer(token))
    assert opened.status == 200
    assert server.ask(bearer(token), "tools/list", opened.session).status == 200
    library.tokens.revoke("alice")
    assert server.ask(bearer(token), "tools/list", opened.session).status == 401
    assert server.ask(bearer(token)).status == 401
    assert server.ask(bearer(SERVER_TOKEN)).status == 200


@pytest.mark.parametrize("is_legacy", [True, False])
def test_a_stream_of_changes_ends_with_its_token(
    library: Library, server: HttpServer, monkeypatch: pytest.MonkeyPatch, is_legacy: bool
) -> None:
    monkeypatch.setattr(authorization, "LISTEN_SECONDS", 0.05)
    token = library.tokens.add("alice", Rights())
    session = server.ask(bearer(token)).session if is_legacy else ""
    with server.listen(bearer(token), session=session) as stream:
        assert stream.status == 200
        library.tokens.revoke("alice")
        stream.read()  # to its end, without an error
    assert server.ask(bearer(SERVER_TOKEN)).status == 200


@pytest.mark.slow
def test_a_token_that_another_process_revokes_is_refused(library: Library, server: HttpServer) -> None:
    command = [sys.executable, "-m", "bunko", "token", "{verb}", "alice", "--library", str(library.paths.folder)]

    def run(verb: str) -> str:
        arguments = [part.format(verb=verb) for part in command]
        return subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True).stdout.strip()

    token = run("add")
    assert server.ask(bearer(token)).status == 200
    run("revoke")
    assert server.ask(bearer(token)).status == 401


def test_an_expired_token_is_refused_like_one_that_never_existed(library: Library, server: HttpServer) -> None:
    now = datetime.now(UTC)
    for name, expires in (("old", now - timedelta(seconds=1)), ("new", now + timedelta(hours=1))):
        times = now.isoformat(timespec="seconds"), expires.isoformat(timespec="seconds")
        library.store.tokens.add(Token(name, token_digest(f"bunko_{name}"), Rights(), *times))
    library.store.tokens.add(Token("forged", token_digest("bunko_forged"), Rights(), "", "no time at all"))
    assert server.ask(bearer("bunko_new")).status == 200
    refused = [server.ask(bearer(text)) for text in ("bunko_old", "bunko_forged", UNKNOWN, "anything")]
    assert len(set(refused)) == 1
    assert refused[0].status == 401
    assert refused[0].authenticate == 'Bearer realm="bunko", error="invalid_token"'


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic YTpi", UNKNOWN])
def test_a_request_without_a_token_is_told_what_it_needs(server: HttpServer, header: str | None) -> None:
    refused = server.ask(header)
    assert (refused.status, refused.authenticate) == (401, 'Bearer realm="bunko"')
    assert "bearer token is required" in refused.text


def test_nobody_can_use_the_session_of_another_token(library: Library, server: HttpServer) -> None:
    alice, bob = (bearer(library.tokens.add(name, Rights())) for name in ("alice", "bob"))
    session = server.ask(alice).session
    assert server.ask(alice, "tools/list", session).status == 200
    assert server.ask(bob, "tools/list", session).status == 404
    assert server.ask(bearer(SERVER_TOKEN), "tools/list", session).status == 404


def test_a_refused_token_is_logged_without_its_text(
    library: Library, server: HttpServer, captured_log: pytest.LogCaptureFixture
) -> None:
    token = library.tokens.add("alice", Rights())
    captured_log.set_level(logging.DEBUG)
    assert server.ask(bearer(token)).status == 200
    for number in range(20):
        assert server.ask(bearer(f"{UNKNOWN}{number}")).status == 401
    refusals = [message for message in captured_log.messages if "invalid token" in message]
    assert refusals[0] == "Refused a request with an invalid token from 127.0.0.1 (0 before it)"
    assert len(refusals) < 20  # not one for each
    assert UNKNOWN not in captured_log.text
    assert token not in captured_log.text
    assert SERVER_TOKEN not in captured_log.text


def test_the_library_has_only_the_hash_of_a_token_and_when_it_was_used(library: Library, server: HttpServer) -> None:
    token = library.tokens.add("alice", Rights())
    assert library.store.tokens.all()[0].last_used_at == ""
    assert server.ask(bearer(token)).status == 200
    [stored] = library.store.tokens.all()
    assert stored.last_used_at >= stored.created_at
    assert stored.digest == token_digest(token)
    assert token.startswith("bunko_")
    assert len(token) >= len("bunko_") + 43  # 256 bits
    contents = b"".join(path.read_bytes() for path in library.paths.folder.rglob("*") if path.is_file())
    assert stored.digest.encode() in contents
    assert token.encode() not in contents
    assert token.removeprefix("bunko_").encode() not in contents


def test_tokens_are_read_once_a_second_however_many_requests_there_are(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, reads, read_all = library.tokens.add("alice", Rights()), [0], library.store.tokens.all

    def count() -> list[Token]:
        reads[0] += 1
        return read_all()

    assert authorization.FRESH_SECONDS == 1.0
    monkeypatch.setattr(authorization, "FRESH_SECONDS", 3600.0)
    monkeypatch.setattr(library.store.tokens, "all", count)
    with serve_registry(ToolRegistry(lambda: library)) as server:
        for _ in range(5):
            assert server.ask(bearer(token)).status == 200
            assert server.ask(bearer(UNKNOWN)).status == 401
    assert reads == [1]


def test_while_the_tokens_cannot_be_read_only_the_token_of_the_server_works(
    library: Library, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = library.tokens.add("alice", Rights())

    def fail() -> list[Token]:
        raise LibraryUnreachable("The server is away", hint="Start it.")

    monkeypatch.setattr(library.store.tokens, "all", fail)
    assert server.ask(bearer(token)).status == 503
    assert server.ask(bearer("nonsense")).status == 401
    assert server.ask(bearer(SERVER_TOKEN)).status == 200


def test_tokens_that_came_with_the_documents_open_nothing(
    docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (docs / "a.md").write_text("# 京都\n\n京都の寺を巡る旅。\n", encoding="utf-8")
    paths = locate_library(docs_dir=docs, environ={})
    with open_library(paths, environ={}) as library:
        library.reindex()
    with open_library(locate_library(library=paths.folder, environ={}), environ={}) as library:
        token = library.tokens.add("mallory", Rights())
    with (
        open_library(paths, environ={}) as library,
        serve_registry(ToolRegistry(lambda: library, folder=str(docs))) as server,
    ):
        assert server.ask(bearer(token)).status == 401
        assert server.ask(bearer(SERVER_TOKEN)).status == 200


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_server_for_others_answers_nobody_whom_it_does_not_know(version: str, library: Library) -> None:
    server = BunkoServer(ToolRegistry(lambda: library))
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    async def ask() -> None:
        headers = {"content-type": "application/json", "accept": "*/*", "mcp-protocol-version": version}
        scope = {
            "type": "http", "method": "POST", "path": "/mcp", "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip
        await StreamableHttp(server, stateless=False)(scope, receive, send)  # past the check of tokens

    anyio.run(ask)
    assert sent[0]["status"] == 403
    assert b"Nobody has checked who sends this request" in sent[1]["body"]
