"""Clients as they come: ten at once, one that goes in the middle of a call, one that calls a thousand times."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.slow import corpus, serving

pytestmark = pytest.mark.slow

SERVERS = 10
ROUNDS = 5
DOCUMENTS = 40
CALLS = 1000
_VERSION = re.compile(r"第(\d+)版")


def version(number: int, round: int) -> str:
    return f"# 文書{number}、第{round}版\n\n京都の寺の庭を訪ねた日の記録 {number}-{round}。\n"


def files_of(round: int) -> corpus.Files:
    return {f"{n}.md": version(n, round) for n in range(DOCUMENTS)}


def over_stdio(docs: Path, **options: Any) -> Client:
    """Return a client that starts a server of its own."""
    program, *arguments = serving.command(docs)
    environ = corpus.environment(BUNKO_SEARCH_FRESHNESS_SECONDS="0")
    server = StdioServerParameters(command=program, args=arguments, env=environ)
    return Client(server, read_timeout_seconds=corpus.PATIENCE, **options)


@asynccontextmanager
async def over_http(server: serving.Listening, **options: Any) -> AsyncIterator[Client]:
    """Connect to a server over HTTP."""
    headers = {"Authorization": f"Bearer {serving.TOKEN}"}
    async with httpx2.AsyncClient(headers=headers, timeout=corpus.PATIENCE) as http:
        transport = streamable_http_client(server.address, http_client=http)
        async with Client(transport, read_timeout_seconds=corpus.PATIENCE, **options) as client:
            yield client


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    corpus.write(folder, files_of(0))
    return folder


def run(main: Callable[..., Awaitable[None]], *arguments: Any) -> None:
    """Run to the end; of the errors of several tasks the first is told plainly."""
    try:
        anyio.run(main, *arguments)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


def test_ten_servers_search_one_library_while_one_of_them_imports_again_and_again(docs: Path) -> None:
    imported = 0
    searches = 0

    async def search(client: Client) -> None:
        nonlocal searches
        while imported < ROUNDS:
            before = imported
            found = await client.call_tool("search", {"query": "京都の寺の庭", "top_k": 20})
            assert not found.is_error, found.content
            results = found.structured_content["results"]
            assert results
            versions = {int(_VERSION.findall(result["content"])[0]) for result in results}
            assert min(versions) >= before, "an answer is older than an import that had ended"
            searches += 1

    async def main() -> None:
        nonlocal imported
        async with AsyncExitStack() as stack:
            # Half of them speak the handshake, half the newest revision.
            modes = ["legacy" if number % 2 else "auto" for number in range(SERVERS)]
            clients = [await stack.enter_async_context(over_stdio(docs, mode=mode)) for mode in modes]
            importer, *searchers = clients
            await importer.call_tool("reindex", {})
            async with anyio.create_task_group() as tasks:
                for client in searchers:
                    tasks.start_soon(search, client)
                for round in range(1, ROUNDS + 1):
                    corpus.write(docs, files_of(round))
                    done = await importer.call_tool("reindex", {})
                    assert not done.is_error, done.content
                    assert done.structured_content["total_chunks"] == DOCUMENTS
                    imported = round
            answers = [await client.call_tool("search", {"query": "京都 第5版", "top_k": 5}) for client in clients]
            found = [[one["citation"] for one in answer.structured_content["results"]] for answer in answers]
            assert found == [found[0]] * SERVERS

    run(main)
    assert searches >= SERVERS
    with corpus.opened(docs) as library:
        assert library.store.check() == ""
        assert corpus.stored(library) == files_of(ROUNDS)


@pytest.mark.parametrize("goes", ["closes its end", "is killed"])
def test_a_server_whose_client_goes_in_the_middle_of_an_import_ends_and_leaves_the_library_whole(
    goes: str, tmp_path: Path
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    files = {f"{n}.md": corpus.document(f"{n}", sections=8, sentences=20) for n in range(300)}
    corpus.write(docs, files)
    with serving.Piped(docs) as server:
        process = server.process
        assert process.stdin is not None
        assert process.stdout is not None
        server.send("tools/call", name="reindex", arguments={}, _meta={"progressToken": "p"})
        assert server.read()["method"] == "notifications/progress"
        if goes == "is killed":
            process.stdout.close()  # nobody reads any more
        process.stdin.close()
        code = process.wait(timeout=corpus.PATIENCE)
        told = server.logged()
    assert code == 0, told
    assert "Traceback" not in told
    with corpus.opened(docs) as library:
        assert library.store.check() == ""
        assert corpus.stored(library).items() <= files.items()
        library.reindex()
        assert corpus.stored(library) == files


def test_a_client_that_hangs_up_over_http_in_the_middle_of_an_import_leaves_the_server_at_work(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    files = {f"{n}.md": corpus.document(f"{n}", sections=8, sentences=20) for n in range(300)}
    corpus.write(docs, files)

    async def main(server: serving.Listening) -> None:
        begun = anyio.Event()

        async def report(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        async def call(client: Client) -> None:
            await client.call_tool("reindex", {}, progress_callback=report)

        for mode in ("legacy", "2026-07-28"):
            async with over_http(server, mode=mode) as client, anyio.create_task_group() as tasks:
                tasks.start_soon(call, client)
                await begun.wait()
                tasks.cancel_scope.cancel()
        async with over_http(server) as client:
            done = await client.call_tool("reindex", {})
            assert not done.is_error, done.content
            assert done.structured_content["total_chunks"] > 0

    with serving.over_http(docs) as server:
        run(main, server)
    with corpus.opened(docs) as library:
        assert library.store.check() == ""
        assert corpus.stored(library) == files


def state(pid: int) -> dict[str, int]:
    """Return what a process holds: kB of memory of its own, threads, open files."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    facts = {name: int(re.findall(rf"^{name}:\s+(\d+)", text, re.M)[0]) for name in ("RssAnon", "Threads")}
    return facts | {"files": len(list(Path(f"/proc/{pid}/fd").iterdir()))}


async def call_in_many_ways(client: Client, number: int) -> None:
    """Make one call out of a round of searches, checks, and what a confused model sends."""
    match number % 5:
        case 0:
            found = await client.call_tool("search", {"query": f"京都の寺 {number}", "response_format": "detailed"})
            assert not found.is_error
        case 1:
            found = await client.call_tool("search", {"query": "記録", "top_k": 50, "extract": "full"})
            assert not found.is_error
        case 2:
            found = await client.call_tool("search", {"query": "記録", "top_k": 1})
            cited = {name: found.structured_content["results"][0][name] for name in ("citation", "hash")}
            found = await client.call_tool("verify", cited)
            assert found.structured_content["status"] == "same"
        case 3:
            found = await client.call_tool("search", {"query": ["not", "a", "text"]})
            assert found.is_error
        case 4:
            with suppress(MCPError):
                await client.call_tool("no_such_tool", {})
                pytest.fail("an unknown tool was called")


def check_steady(before: dict[str, int], after: dict[str, int]) -> None:
    """Assert that a process holds no more than it did.

    A little is allowed: a connection or a thread on its way out, memory that is given out in steps. A leak of one
    thread or file, or of 8 kB, in each of a thousand calls is far beyond that.
    """
    allowed = {"Threads": 4, "files": 4, "RssAnon": 8_000}
    assert all(after[name] <= before[name] + more for name, more in allowed.items()), (before, after)


needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="what a process holds is read in /proc")


@needs_proc
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_thousand_calls_over_stdio_leave_the_server_as_it_was(mode: str, docs: Path) -> None:
    async def main() -> None:
        async with over_stdio(docs, mode=mode) as client:
            (pid,) = [pid for pid in corpus.processes_below(os.getpid()) if is_server(pid)]
            for number in range(300):
                await call_in_many_ways(client, number)
            before = state(pid)
            for number in range(CALLS):
                await call_in_many_ways(client, number)
            check_steady(before, state(pid))

    run(main)


@needs_proc
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_fifty_clients_with_ten_calls_each_over_http_leave_the_server_as_it_was(mode: str, docs: Path) -> None:
    async def visits(server: serving.Listening, number: int) -> None:
        for _ in range(number):
            async with over_http(server, mode=mode) as client:
                for call in range(10):
                    await call_in_many_ways(client, call)

    async def main(server: serving.Listening) -> None:
        await visits(server, 30)
        before = state(server.pid)
        await visits(server, 50)
        check_steady(before, state(server.pid))

    with serving.over_http(docs) as server:
        run(main, server)


def is_server(pid: int) -> bool:
    return b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
