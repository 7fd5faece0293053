"""Progress, cancellation and background jobs of a long reindex."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from bunko.errors import LibraryBusy
from bunko.interfaces.mcp import server as server_module
from bunko.interfaces.tools.jobs import Jobs
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.interfaces.tools.tool import ToolCall, ToolReply
from bunko.library.access import LibraryAccess
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library
from bunko.library.rights.audit import local_caller
from tests.conftest import Opener
from tests.mcp.mcp_client import ERAS, FILLER, call, error_of, structure_of, talk, text_of, write_document


def many_documents(docs: Path, number: int) -> None:
    for document in range(number):
        write_document(docs, f"{document}.md", f"# 文書{document}\n\n京都の寺の話の{document}。{FILLER}")


@pytest.mark.parametrize("mode", ERAS)
def test_a_reindex_reports_its_progress_to_whoever_asks(mode: str, docs: Path, open_docs: Opener) -> None:
    many_documents(docs, 250)
    seen: list[tuple[float, float | None, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def ask(client: Client) -> None:
        await client.call_tool("reindex", progress_callback=report)
        while not seen or seen[-1][0] != 250:
            await anyio.lowlevel.checkpoint()

    talk(ToolRegistry(open_docs, folder=str(docs)), ask, mode)
    assert [done for done, *_ in seen] == sorted(done for done, *_ in seen)
    assert {total for _, total, _ in seen} == {250}
    assert all("chunks" in (message or "") for *_, message in seen)


def test_progress_over_several_tools_counts_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MIN_SECONDS", 0.0)
    seen: list[tuple[float, float | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async def ask(client: Client) -> None:
        await client.call_tool("reindex", progress_callback=report)
        while not seen or seen[-1][0] != 6:
            await anyio.lowlevel.checkpoint()

    with open_library(locate_library(library=tmp_path / "library", environ={}), environ={}) as library:
        for name, number in (("diary", 3), ("notes", 2), ("plans", 1)):
            many_documents(tmp_path / name, number)
            library.add(tmp_path / name, name=name, description=f"{name} of a small team")
        talk(ToolRegistry(lambda: library), ask)
    counts = [done for done, _ in seen]
    assert counts == sorted(set(counts)), "a client may take a number that does not grow for an error"
    assert seen[-1] == (6, 6)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ERAS)
def test_a_cancelled_reindex_leaves_the_library_whole_and_the_next_completes_it(
    mode: str, docs: Path, open_docs: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MIN_SECONDS", 0.0)  # so that the first transaction is told of
    many_documents(docs, 600)
    library = open_docs()

    async def cancel(client: Client) -> dict[str, Any]:
        with anyio.CancelScope() as scope:

            async def report(progress: float, total: float | None, message: str | None) -> None:
                if progress:
                    scope.cancel()

            await client.call_tool("reindex", progress_callback=report)
        assert scope.cancelled_caught
        return structure_of(await client.call_tool("reindex"))

    later = talk(ToolRegistry(lambda: library, folder=str(docs)), cancel, mode)
    assert later["added"] + later["unchanged"] == 600
    assert later["unchanged"] > 0
    assert later["added"] > 0
    assert library.store.check() == ""
    assert len(library.search("京都", top_k=1000).hits) == 600


async def wait_for_job(client: Client, job: str) -> dict[str, Any]:
    """Ask for a job until it has ended."""
    while True:
        found = structure_of(await client.call_tool("job", {"id": job}))
        if found["status"] != "running":
            return found


def test_a_reindex_in_the_background_is_a_job_that_can_be_asked_for(docs: Path, open_docs: Opener) -> None:
    many_documents(docs, 120)

    async def run(client: Client) -> None:
        started = await client.call_tool("reindex", {"background": True})
        job = structure_of(started)["job"]
        assert job in text_of(started)
        done = await wait_for_job(client, job)
        assert (done["status"], done["result"]["added"]) == ("done", 120)
        told = text_of(await client.call_tool("job", {"id": job}))
        assert "done" in told
        assert "120 added" in told
        again = structure_of(await client.call_tool("reindex", {"background": True}))["job"]
        assert again != job
        assert (await wait_for_job(client, again))["result"]["unchanged"] == 120

    talk(ToolRegistry(open_docs, folder=str(docs)), run)


@pytest.mark.slow
def test_a_job_can_be_cancelled_and_the_library_is_whole(docs: Path, open_docs: Opener) -> None:
    many_documents(docs, 600)
    library = open_docs()

    async def run(client: Client) -> None:
        job = structure_of(await client.call_tool("reindex", {"background": True}))["job"]
        await client.call_tool("job", {"id": job, "cancel": True})
        stopped = await wait_for_job(client, job)
        assert stopped["status"] == "cancelled"
        assert stopped["result"]["interrupted"] is True
        assert library.store.check() == ""
        assert structure_of(await client.call_tool("reindex"))["total_chunks"] == 600

    talk(ToolRegistry(lambda: library, folder=str(docs)), run)


def test_an_unknown_job_is_refused_with_the_known_ones(registry: ToolRegistry) -> None:
    async def run(client: Client) -> None:
        assert "Jobs of this server: none." in error_of(await client.call_tool("job", {"id": "reindex-7"}))
        job = structure_of(await client.call_tool("reindex", {"background": True}))["job"]
        assert f"Jobs of this server: {job}." in error_of(await client.call_tool("job", {"id": "x"}))
        await wait_for_job(client, job)

    talk(registry, run)


def test_a_job_that_fails_says_why_and_what_to_do(registry: ToolRegistry, docs: Path) -> None:
    call(registry, "reindex")
    for path in sorted(docs.rglob("*"), reverse=True):
        if ".rag-index" not in path.parts:
            path.rmdir() if path.is_dir() else path.unlink()
    (docs / ".rag-index").rename(docs.parent / "moved")
    library = open_library(
        locate_library(library=docs.parent / "moved", environ={}), environ={"BUNKO_SEARCH_FRESHNESS_SECONDS": "0"}
    )

    async def run(client: Client) -> None:
        job = structure_of(await client.call_tool("reindex", {"background": True}))["job"]
        failed = await wait_for_job(client, job)
        assert failed["status"] == "failed"
        assert "is missing or empty" in failed["error"]
        assert "Restore the folder" in failed["error"]
        assert failed["error"] in text_of(await client.call_tool("job", {"id": job}))

    talk(ToolRegistry(lambda: library), run)
    library.close()


def test_jobs_are_refused_while_too_many_run(docs: Path, open_docs: Opener) -> None:
    jobs, gate = Jobs(), threading.Event()

    def wait(_: ToolCall) -> ToolReply:
        gate.wait()
        return ToolReply("", {})

    started = [
        jobs.start("reindex", wait, ToolCall(LibraryAccess(open_docs(), local_caller("stdio")), {})) for _ in range(20)
    ]
    with pytest.raises(LibraryBusy, match="20 jobs are still running") as caught:
        jobs.start("reindex", wait, ToolCall(LibraryAccess(open_docs(), local_caller("stdio")), {}))
    assert started[0].id in caught.value.hint
    gate.set()
