"""`bunko serve --http --workers 2`: any process answers any request, and clients notice nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bunko.stores import sqlite
from tests.conftest import Run
from tests.http.server import ask
from tests.mcp.mcp_client import structure_of
from tests.mcp.test_endpoints import read_metrics
from tests.mcp.test_http import PATIENCE, SECRET, Process, bearer

pytestmark = pytest.mark.slow
CALLS = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """Two workers that look for changes at every search."""
    process = Process(
        tmp_path_factory.mktemp("workers"), "--workers", 2, "--toolsets", "folder,tools",
        BUNKO_TOKEN=SECRET, BUNKO_SEARCH_FRESHNESS_SECONDS="0",
    )  # fmt: skip
    assert ask(process.port, "/readyz").status == 200  # the first worker has started
    yield process
    process.end()
    assert "Traceback" not in "".join(process.output)


@asynccontextmanager
async def connected(server: Process, mode: str = "auto") -> AsyncIterator[Client]:
    """A client with connections of its own."""
    async with (
        httpx2.AsyncClient(headers=bearer(SECRET), timeout=PATIENCE) as web,
        Client(streamable_http_client(f"{server.origin}/mcp", http_client=web), mode=mode, cache=None) as client,
    ):
        yield client


async def search(server: Process, query: str, mode: str) -> dict[str, Any]:
    async with connected(server, mode) as client:
        return structure_of(await client.call_tool("search", {"query": query}))


def search_at_once(server: Process, query: str, mode: str = "auto") -> list[dict[str, Any]]:
    """Search with several new clients at the same time, so that more than one worker answers."""
    answers: list[dict[str, Any]] = []

    async def main() -> None:
        async def add() -> None:
            answers.append(await search(server, query, mode))

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for _ in range(CALLS):
                    tasks.start_soon(add)

    anyio.run(main)
    return answers


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_clients_of_both_protocols_are_answered_by_any_worker(server: Process, mode: str) -> None:
    answers = search_at_once(server, "京都", mode)
    assert [answer["results"][0]["citation"] for answer in answers] == ["京都.md:L1-L3"] * CALLS


def test_no_session_is_kept(server: Process) -> None:
    response = server.post(**bearer(SECRET))
    assert response.status == 200
    assert "Mcp-Session-Id" not in response.headers


def test_the_numbers_are_those_of_all_workers(server: Process) -> None:
    before = read_numbers(server)
    search_at_once(server, "京都")
    after = read_numbers(server)
    searches = "bunko_searches_total{mode=hybrid},{result=hits}"
    assert after[searches] - before.get(searches, 0) == CALLS
    assert after["bunko_worker_starts_total"] == 2


def read_numbers(server: Process) -> dict[str, float]:
    return read_metrics(server.port, **bearer(SECRET))


def test_a_new_file_that_all_workers_notice_is_imported_once(server: Process) -> None:
    search_at_once(server, "京都")
    before = read_numbers(server)["bunko_imported_documents_total"]
    (server.folder / "docs" / "奈良.md").write_text("# 奈良\n\n奈良の鹿について書いた文。\n", encoding="utf-8")
    for answer in search_at_once(server, "奈良の鹿"):
        assert answer["results"][0]["citation"].startswith("奈良.md")
        assert not answer.get("notices")
    assert read_numbers(server)["bunko_imported_documents_total"] == before + 1


def test_each_worker_finds_the_jobs_of_the_others(server: Process) -> None:
    async def main() -> None:
        with anyio.fail_after(PATIENCE):
            async with connected(server) as client:
                job = structure_of(await client.call_tool("reindex", {"background": True}))["job"]
                for _ in range(10):  # any worker may answer each of them
                    assert structure_of(await client.call_tool("job", {"id": job}))["name"] == "reindex"

    anyio.run(main)


def test_only_clients_that_can_be_notified_are_promised_notifications(server: Process) -> None:
    async def main() -> None:
        with anyio.fail_after(PATIENCE):
            async with connected(server, "legacy") as old, connected(server) as new:
                promises = [client.server_capabilities.tools for client in (old, new)]
                assert [promise.list_changed for promise in promises if promise is not None] == [False, True]

    anyio.run(main)


def test_a_client_that_listens_hears_of_a_changed_tool_from_its_worker(server: Process) -> None:
    async def main() -> None:
        with anyio.fail_after(PATIENCE):
            async with connected(server) as client:
                await client.list_tools()
                async with client.listen(tools_list_changed=True) as changes:
                    await anyio.to_thread.run_sync(describe_tool)
                    await anext(changes)

    def describe_tool() -> None:
        with closing(sqlite.build(server.folder / "docs" / ".rag-index" / "library.db")) as store:
            [tool] = store.tools.all()
            store.tools.put(replace(tool, description="Described by another process"))

    anyio.run(main)


def test_workers_are_for_http_only(run: Run, docs: Path) -> None:
    ended = run("serve", "--docs-dir", docs, "--workers", "2")
    assert ended.code == 2
    assert "--workers needs --http" in ended.err


def test_the_number_of_workers_may_come_from_the_settings(tmp_path: Path) -> None:
    process = Process(tmp_path, BUNKO_TOKEN=SECRET, BUNKO_SERVE_WORKERS="1")
    try:
        assert "Mcp-Session-Id" not in process.post(**bearer(SECRET)).headers
    finally:
        process.end()
