"""A server over HTTP and an importer in processes of their own, with one library on PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bunko.types.records import DatabaseServer
from tests.scale.postgres_server import environment
from tests.slow import corpus

pytestmark = pytest.mark.scale

TOKEN = "a-token-of-this-test-alone"
NOTE = "# 抹茶\n\n宇治の抹茶について、飲み方と点て方をとても詳しく書いてある文書です。"


@pytest.fixture
def served(server: DatabaseServer, docs: Path, tmp_path: Path) -> Iterator[str]:
    """Serve the library over HTTP in a process of its own, and return the address."""
    place = ("--library", tmp_path / "serving")
    corpus.write(docs, {"old.md": corpus.document("old")})
    assert (
        corpus.run("tool", "add", "-n", "docs", "-d", "Notes", "-s", docs, *place, **environment(server)).returncode
        == 0
    )
    process = corpus.start("serve", "--http", "--port", "0", *place, **environment(server), BUNKO_TOKEN=TOKEN)
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "Listening on" in line:
            break
    try:
        yield re.findall(r"http://\S+/mcp", "".join(lines))[0]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_clients_of_a_server_see_at_once_what_another_machine_imports(
    mode: str, served: str, server: DatabaseServer, docs: Path, tmp_path: Path
) -> None:
    told = {kind: anyio.Event() for kind in (types.ResourceListChangedNotification, types.ToolListChangedNotification)}

    async def hear(message: object) -> None:
        for kind, event in told.items():
            if isinstance(message, kind):
                event.set()

    async def run_elsewhere(*arguments: str | Path) -> None:
        place = ("--library", tmp_path / "importing")
        done = await anyio.to_thread.run_sync(lambda: corpus.run(*arguments, *place, **environment(server)))
        assert done.returncode == 0, done.stderr

    async def main() -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=corpus.PATIENCE) as web,
            Client(
                streamable_http_client(served, http_client=web), mode=mode, message_handler=hear, cache=None
            ) as client,
        ):

            async def results(query: str) -> list[str]:
                answer = await client.call_tool("search", {"query": query})
                assert answer.structured_content is not None
                return [str(result) for result in answer.structured_content["results"]]

            async def follow() -> None:
                await run_elsewhere("import", "-n", "docs")
                assert [resource.name for resource in (await client.list_resources()).resources] == ["old.md"]
                assert "new.md" not in str(await results("宇治の抹茶"))
                corpus.write(docs, {"old.md": corpus.document("old"), "new.md": NOTE})
                await run_elsewhere("import", "-n", "docs", "--mode", "update")
                # The first search after it, without any pause.
                assert "new.md" in (await results("宇治の抹茶"))[0]
                names = [resource.name for resource in (await client.list_resources()).resources]
                assert names == ["new.md", "old.md"]
                await run_elsewhere("tool", "update", "-n", "docs", "-d", "Something else")
                found = {tool.name: tool.description or "" for tool in (await client.list_tools()).tools}
                assert "Something else" in found["docs"]
                corpus.write(docs, {"old.md": corpus.document("old")})
                await run_elsewhere("import", "-n", "docs", "--mode", "update")
                assert "new.md" not in str(await results("宇治の抹茶"))

            if mode == "legacy":
                await follow()
                for event in told.values():
                    await event.wait()
                return
            async with (
                client.listen(resources_list_changed=True) as documents,
                client.listen(tools_list_changed=True) as tools,
            ):
                await follow()
                await anext(documents)
                await anext(tools)

    async def bounded() -> None:
        with anyio.fail_after(corpus.PATIENCE):
            await main()

    anyio.run(bounded)
