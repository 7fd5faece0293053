"""The server over HTTP on loopback: the token, the Host and Origin checks, and a client that passes them."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import anyio
import httpx2
import mcp_types as types
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bunko.errors import SettingsError
from bunko.interfaces.http.app import build_app
from bunko.interfaces.http.listener import open_listening_socket
from bunko.interfaces.mcp import server as server_module
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.types import Tool
from tests.mcp.mcp_client import FOLDER_TOOL_NAMES

PATIENCE = 60.0
SECRET = "a-token-from-the-environment-7f3a"
TEXT = "# 京都\n\n京都の寺を巡る旅。この文は一つの塊になるだけの長さを保つために、少し長めに書かれている。\n"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


class Process:
    """`bunko serve --http` in a process of its own, once it listens."""

    def __init__(self, folder: Path, *arguments: object, **environ: str) -> None:
        docs = folder / "docs"
        docs.mkdir(exist_ok=True)
        (docs / "京都.md").write_text(TEXT, encoding="utf-8")
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "SYSTEMROOT")}
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bunko", "serve", "--http", "--port", "0", "--docs-dir", docs, *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**kept, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"),
                 "XDG_DATA_HOME": str(folder / "data"), **environ},
        )  # fmt: skip
        self.output: list[str] = []
        listens = threading.Event()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(stream, listens), daemon=True)
            for stream in (self._process.stdout, self._process.stderr)
        ]
        for reader in self._readers:
            reader.start()
        assert listens.wait(PATIENCE), self.output
        [found] = re.findall(r"Listening on (http://[^/]+)/mcp", "".join(self.output))
        self.origin = found
        self.port = int(found.rpartition(":")[2])

    def _read(self, stream: IO[str], listens: threading.Event) -> None:
        for line in stream:
            self.output.append(line)
            if "Listening on" in line:
                listens.set()
        listens.set()

    def command_line(self) -> str:
        return Path(f"/proc/{self._process.pid}/cmdline").read_text()

    @property
    def token_file(self) -> Path:
        [path] = (self.folder / "data" / "bunko" / "tokens").iterdir()
        return path

    def token(self) -> str:
        return self.token_file.read_text(encoding="ascii").strip()

    def post(self, **headers: str) -> http.client.HTTPResponse:
        """Begin a session with these headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        try:
            connection.request("POST", "/mcp", json.dumps(INITIALIZE), given | headers)
            response = connection.getresponse()
            response.read()
            return response
        finally:
            connection.close()

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=PATIENCE)
        for reader in self._readers:
            reader.join(timeout=PATIENCE)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdout.close()
        self._process.stderr.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    process = Process(tmp_path_factory.mktemp("http"))
    yield process
    process.end()
    assert "Traceback" not in "".join(process.output)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdks_own_client_works_with_the_token(server: Process, mode: str) -> None:
    async def main() -> dict[str, Any]:
        with anyio.fail_after(PATIENCE):
            async with (
                httpx2.AsyncClient(headers=bearer(server.token()), timeout=PATIENCE) as web,
                Client(streamable_http_client(f"{server.origin}/mcp", http_client=web), mode=mode) as client,
            ):
                assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[mode]
                assert len((await client.list_tools()).tools) == len(FOLDER_TOOL_NAMES)
                found = await client.call_tool("search", {"query": "京都"})
                assert found.structured_content is not None
                content: dict[str, Any] = found.structured_content
                return content

    assert anyio.run(main)["results"][0]["citation"] == "京都.md:L1-L3"


@pytest.mark.slow
def test_nobody_gets_in_without_the_token(server: Process) -> None:
    for headers in ({}, bearer("wrong"), bearer(""), {"Authorization": server.token()}, bearer(server.token() + "x")):
        response = server.post(**headers)
        assert response.status == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert server.post(**bearer(server.token())).status == 200


def test_the_token_is_asked_for_on_every_path_and_method(server: Process) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    for method, path in (("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/"), ("OPTIONS", "/mcp"), ("GET", "/mcp/../x")):
        connection.request(method, path)
        response = connection.getresponse()
        response.read()
        assert response.status == 401
    connection.close()


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "null", "http://127.0.0.1.evil.example", "file://", "http://127.0.0.1:18801.evil.com",
        "http://localhost:evil", "http://localhost:80@evil.example", "http://localhost/", "ftp://localhost",
    ],
)  # fmt: skip
def test_pages_of_other_sites_are_refused_even_with_the_token(server: Process, origin: str) -> None:
    assert server.post(**bearer(server.token()), Origin=origin).status == 403


def test_pages_of_this_machine_are_welcome(server: Process) -> None:
    for origin in (server.origin, f"http://localhost:{server.port}", "http://localhost"):
        assert server.post(**bearer(server.token()), Origin=origin).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "0.0.0.0"])
def test_a_name_that_was_bent_to_this_machine_is_refused(server: Process, host: str) -> None:
    assert server.post(**bearer(server.token()), Host=host).status == 421


def test_a_request_far_too_large_is_refused_and_the_server_goes_on(server: Process) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    headers = {"Content-Type": "application/json", "Content-Length": str(10**8), **bearer(server.token())}
    connection.request("POST", "/mcp", b"{", headers)
    assert connection.getresponse().status == 413
    connection.close()
    assert server.post(**bearer(server.token())).status == 200


def test_the_token_is_kept_for_its_owner_alone_and_never_said(server: Process) -> None:
    assert server.token_file.stat().st_mode & 0o777 == 0o600
    assert len(server.token()) >= 40
    assert str(server.token_file) in "".join(server.output)
    assert server.token() not in "".join(server.output)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks into /proc")
def test_a_token_from_the_environment_is_used_and_never_said(tmp_path: Path) -> None:
    process = Process(tmp_path, "--verbose", BUNKO_TOKEN=SECRET)
    try:
        assert process.post(**bearer(SECRET)).status == 200
        assert process.post(**bearer("wrong")).status == 401
        assert not (process.folder / "data").exists()
        assert SECRET not in process.command_line()
    finally:
        process.end()
    assert "BUNKO_TOKEN" in "".join(process.output)
    assert SECRET not in "".join(process.output)


@pytest.mark.slow
def test_a_token_that_came_with_the_documents_opens_nothing(tmp_path: Path) -> None:
    shipped = tmp_path / "docs" / ".rag-index" / "token"
    shipped.parent.mkdir(parents=True)
    shipped.write_text("known-to-somebody-else\n")
    shipped.chmod(0o600)
    process = Process(tmp_path)
    try:
        assert process.post(**bearer("known-to-somebody-else")).status == 401
        assert process.post(**bearer(process.token())).status == 200
    finally:
        process.end()
    assert f"{shipped} is ignored" in "".join(process.output)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Library, str]]:
    """A library without tools, served in a thread, and where."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(server_module, "POLL_SECONDS", 0.05)
    with open_library(locate_library(library=tmp_path / "library", environ={}), environ={}) as library:
        app = build_app(ToolRegistry(lambda: library), token=SECRET, host="127.0.0.1")
        ear = open_listening_socket("127.0.0.1", 0, allow_remote=False)
        web = uvicorn.Server(uvicorn.Config(app, http="h11", log_level="warning"))
        thread = threading.Thread(target=web.run, kwargs={"sockets": [ear]})
        thread.start()
        yield library, f"http://127.0.0.1:{ear.getsockname()[1]}/mcp"
        web.should_exit = True
        thread.join(timeout=PATIENCE)
        ear.close()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_tool_that_another_process_adds_is_announced_over_http(mode: str, shelf: tuple[Library, str]) -> None:
    library, address = shelf
    told = anyio.Event()
    names = (f"tool-{number}" for number in itertools.count())

    async def hear(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async def main() -> None:
        async with (
            httpx2.AsyncClient(headers=bearer(SECRET)) as web,
            Client(
                streamable_http_client(address, http_client=web), mode=mode, message_handler=hear, cache=None
            ) as client,
        ):
            assert len((await client.list_tools()).tools) == len(FOLDER_TOOL_NAMES)
            if mode == "auto":
                async with client.listen(tools_list_changed=True) as changes:
                    library.store.tools.put(Tool(next(names)))
                    await anext(changes)
            while mode == "legacy" and not told.is_set():
                # The stream on which it is told opens beside the first requests; what comes before it is lost.
                library.store.tools.put(Tool(next(names)))
                with anyio.move_on_after(0.5):
                    await told.wait()
            assert "tool-0" in {tool.name for tool in (await client.list_tools()).tools}

    async def bounded() -> None:
        with anyio.fail_after(PATIENCE):
            await main()

    anyio.run(bounded)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_other_machines_are_let_in_only_on_demand(host: str) -> None:
    with pytest.raises(SettingsError, match="other machines") as caught:
        open_listening_socket(host, 0, allow_remote=False)
    assert "--allow-remote" in caught.value.hint


def test_on_demand_any_address_is_listened_on() -> None:
    with open_listening_socket("0.0.0.0", 0, allow_remote=True) as ear:
        assert ear.getsockname()[0] == "0.0.0.0"


def test_a_port_that_is_taken_is_told_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SettingsError, match="port") as caught:
        open_listening_socket("127.0.0.1", taken.getsockname()[1], allow_remote=False)
    assert "--port" in caught.value.hint


@pytest.mark.slow
def test_the_command_line_refuses_other_machines_before_it_says_that_it_listens(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "bunko", "serve", "--http", "--host", "0.0.0.0", "--library", tmp_path / "library"],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "other machines" in ended.stderr
    assert "Listening on http" not in ended.stderr
