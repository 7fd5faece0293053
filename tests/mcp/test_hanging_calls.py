"""Calls that hang for ever: a cancel and a new call still get through, and the server still ends."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from filelock import FileLock
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.mcp.mcp_client import FILLER
from tests.mcp.stdio_process import PATIENCE, Process, environment

HANGING: dict[str, Any] = {"name": "verify", "arguments": {"citation": "a.md:L1", "hash": "x"}}
Start = Callable[..., Process]
MANY = 45  # more than the 40 threads that asyncio programs share by default


class Silence:
    """A server that accepts connections and says nothing."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self._listener.settimeout(PATIENCE)
        self._connections: list[socket.socket] = []
        self.port = str(self._listener.getsockname()[1])

    def wait_for(self, count: int) -> None:
        """Wait until so many calls hang."""
        while len(self._connections) < count:
            self._connections.append(self._listener.accept()[0])

    def end(self) -> None:
        for connection in self._connections:
            connection.close()
        self._listener.close()


@pytest.fixture
def silence() -> Iterator[Silence]:
    server = Silence()
    yield server
    server.end()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "京都.md").write_text(f"# 京都\n\n京都の寺を巡る旅。{FILLER}\n", encoding="utf-8")
    return docs


@pytest.fixture
def start(tmp_path: Path, silence: Silence, folder: Path) -> Iterator[Start]:
    """Start a server whose tool `verify` hangs."""
    started: list[Process] = []

    def start(*arguments: str, module: str = "tests.mcp.hanging_server", **environ: str) -> Process:
        environ["HANG_PORT"] = silence.port
        process = Process(tmp_path, "--docs-dir", folder, *arguments, module=module, environ=environ)
        started.append(process)
        process.shake_hands()
        return process

    yield start
    for process in started:
        process.kill()


def cancel(process: Process, number: int) -> None:
    params = {"requestId": number, "reason": "The user is tired of waiting"}
    process.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))


def found(process: Process) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = process.call("search", {"query": "京都"})["structuredContent"]["results"]
    return results


@pytest.mark.slow
def test_calls_get_through_whatever_else_hangs(start: Start, silence: Silence) -> None:
    process = start()
    hanging = [process.send("tools/call", HANGING) for _ in range(MANY)]
    silence.wait_for(MANY)
    assert found(process)
    assert process.ask("tools/list")["tools"]
    for number in hanging:
        cancel(process, number)
    for _ in range(MANY):
        process.send("tools/call", HANGING)
    silence.wait_for(2 * MANY)
    assert found(process)
    assert process.end() == 0  # though all of them still hang
    answered = {json.loads(line).get("id") for line in process.lines}
    assert not answered & set(hanging)
    assert "Traceback" not in process.stderr()


@pytest.mark.slow
def test_beyond_the_limit_a_call_is_told_that_the_server_is_busy(start: Start, silence: Silence) -> None:
    process = start(HANG_CALLS="3")
    hanging = [process.send("tools/call", HANGING) for _ in range(3)]
    silence.wait_for(3)
    refused = process.call("search", {"query": "京都"})
    assert refused["isError"]
    assert "3 calls of this server are still running" in refused["content"][0]["text"]
    cancel(process, hanging[0])
    assert process.ask("resources/list")["resources"] == []
    assert process.end() == 0


@pytest.mark.slow
def test_a_listing_that_hangs_can_be_cancelled(start: Start, silence: Silence) -> None:
    process = start(HANG="resources")
    number = process.send("resources/list", {})
    silence.wait_for(1)
    cancel(process, number)
    assert found(process)
    assert process.end() == 0


@pytest.mark.slow
def test_the_server_ends_although_its_library_does_not_close(start: Start) -> None:
    process = start(HANG="close")
    assert found(process)
    assert process.end() == 0


@pytest.mark.slow
def test_a_page_that_never_comes_stops_nobody(start: Start, silence: Silence, tmp_path: Path) -> None:
    place = ("--data-dir", str(tmp_path / "library"))  # the index inside a folder is for that folder only
    process = start(*place, "--toolsets", "folder,web", module="bunko", BUNKO_CRAWL_ALLOWED_HOSTS="127.0.0.1")
    address = f"http://127.0.0.1:{silence.port}/"
    number = process.send("tools/call", {"name": "rag_add", "arguments": {"url": address}})
    silence.wait_for(1)
    assert process.call("rag_stats")["structuredContent"]["total_chunks"] == 0
    cancel(process, number)
    assert found(process)
    assert process.end() == 0


@pytest.mark.slow
def test_an_embedder_that_never_answers_stops_nobody(start: Start, silence: Silence) -> None:
    service = {
        "EMBEDDING_PROVIDER": "lmstudio",
        "BUNKO_EMBEDDING_LMSTUDIO_BASE_URL": f"http://127.0.0.1:{silence.port}",
    }
    process = start(module="bunko", BUNKO_SEARCH_FRESHNESS_WAIT_SECONDS="0.1", **service)
    number = process.send("tools/call", {"name": "reindex", "arguments": {}})
    silence.wait_for(1)
    assert not process.call("search", {"query": "京都", "mode": "bm25"})["isError"]
    cancel(process, number)
    assert not process.call("search", {"query": "京都", "mode": "bm25"})["isError"]
    assert process.end() == 0


@pytest.mark.slow
def test_a_library_that_another_process_locks_stops_no_search(start: Start, folder: Path) -> None:
    process = start(module="bunko")
    assert found(process)
    with FileLock(folder / ".rag-index" / "library.db.lock"):
        number = process.send("tools/call", {"name": "reindex", "arguments": {}, "_meta": {"progressToken": 7}})
        process.wait_for("notifications/progress")
        assert found(process)
        cancel(process, number)
        assert found(process)
    assert process.call("reindex")["structuredContent"]["unchanged"] == 1
    assert process.end() == 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdks_own_client_gives_up_and_goes_on(mode: str, tmp_path: Path, silence: Silence, folder: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tests.mcp.hanging_server", "serve", "--docs-dir", str(folder)],
        env=environment(tmp_path) | {"HANG_PORT": silence.port},
    )

    async def main() -> None:
        with anyio.fail_after(PATIENCE), (tmp_path / "stderr.txt").open("w") as log:
            async with (
                Client(stdio_client(parameters, errlog=log), mode=mode) as client,
                anyio.create_task_group() as tasks,
            ):
                for _ in range(MANY):
                    tasks.start_soon(client.call_tool, HANGING["name"], HANGING["arguments"])
                await anyio.to_thread.run_sync(silence.wait_for, MANY)
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    result = await client.call_tool("search", {"query": "京都"})
                    assert result.structured_content is not None
                    assert result.structured_content["results"]

    anyio.run(main)
