"""What load balancers and monitoring ask a server: does it live, can it answer, and what has it done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from prometheus_client.parser import text_string_to_metric_families

from bunko.errors import LibraryError
from bunko.interfaces.http import monitoring
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.library import Library
from bunko.types.access import Rights
from tests.conftest import Opener
from tests.http.server import BEARER, PATIENCE, ask, serve_app
from tests.mcp.mcp_client import write_document

SECRET_WORDS = "暗号鍵の保管場所"


@pytest.fixture
def port(registry: ToolRegistry) -> Iterator[int]:
    with serve_app(registry) as served:
        yield served


def read_metrics(port: int, **headers: str) -> dict[str, float]:
    """Return the samples by name and labels, as Prometheus would."""
    reply = ask(port, "/metrics", **(headers or BEARER))
    assert reply.status == 200, reply.text
    assert reply.headers["Content-Type"].startswith("text/plain; version=")
    return {
        sample.name + ",".join(f"{{{name}={value}}}" for name, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
    }


def call_search(port: int, *all_arguments: dict[str, Any]) -> None:
    async def main() -> None:
        address = f"http://127.0.0.1:{port}/mcp"
        with anyio.fail_after(PATIENCE):
            async with (
                httpx2.AsyncClient(headers=BEARER) as web,
                Client(streamable_http_client(address, http_client=web)) as client,
            ):
                for arguments in all_arguments:
                    await client.call_tool("search", arguments)

    anyio.run(main)


def test_a_living_server_says_so_without_a_token_and_without_its_library() -> None:
    def never() -> Library:
        raise AssertionError("the library is not needed")

    with serve_app(ToolRegistry(never)) as port:
        reply = ask(port, "/healthz")
        assert (reply.status, reply.text) == (200, "ok\n")
        assert reply.headers["Cache-Control"] == "no-store"
        assert ask(port, "/healthz", method="HEAD").status == 200


def test_a_server_whose_library_answers_is_ready(port: int) -> None:
    reply = ask(port, "/readyz")
    assert (reply.status, reply.text) == (200, "ready\n")


def test_a_server_that_cannot_open_its_library_says_so_and_tells_strangers_no_path(
    captured_log: pytest.LogCaptureFixture,
) -> None:
    def fail() -> Library:
        raise LibraryError("/srv/secret/library.db is broken", hint="Mend it.")

    with serve_app(ToolRegistry(fail)) as port:
        reply = ask(port, "/readyz")
        assert (reply.status, reply.text) == (503, "The library cannot be opened\n")
        assert ask(port, "/healthz").status == 200
        assert read_metrics(port)["bunko_ready"] == 0
    assert "This server is not ready: /srv/secret/library.db is broken. Mend it." in captured_log.messages


def test_a_library_that_hangs_is_given_up_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "MAX_SECONDS", 0.1)
    released = threading.Event()

    def hang() -> Library:
        released.wait(PATIENCE)
        raise LibraryError("too late")

    with serve_app(ToolRegistry(hang)) as port:
        for _ in range(3):  # each check joins the one that hangs, so that threads do not pile up
            reply = ask(port, "/readyz")
            assert reply.status == 503
            assert reply.text.startswith("The library has not answered within")
        assert [thread.name for thread in threading.enumerate()].count("bunko-checks") == 1
        assert ask(port, "/healthz").status == 200
        released.set()


def test_a_library_whose_file_was_deleted_is_not_ready(docs: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "CACHE_SECONDS", 0.0)
    assert ask(port, "/readyz").status == 200
    (docs / ".rag-index" / "library.db").unlink()
    reply = ask(port, "/readyz")
    assert (reply.status, reply.text) == (503, "The library does not answer\n")


def test_an_index_that_cannot_answer_is_not_ready(docs: Path, open_docs: Opener) -> None:
    write_document(docs, "a.md", "# 京都\n\n京都の寺を巡る旅。\n")
    open_docs().reindex()
    library = open_docs(BUNKO_INDEX_KIND="milvus", BUNKO_MILVUS_URI="http://127.0.0.1:9", BUNKO_MILVUS_TIMEOUT="0.5")
    for path in (docs / ".rag-index").rglob("*.segment"):  # they would answer
        path.unlink()
    with serve_app(ToolRegistry(lambda: library, folder=str(docs))) as port:
        reply = ask(port, "/readyz")
        assert (reply.status, reply.text) == (503, "The index does not answer\n")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_the_checks_of_host_and_origin_hold_here_too(path: str, port: int) -> None:
    assert ask(port, path, **BEARER, Host="evil.example").status == 421
    assert ask(port, path, **BEARER, Origin="https://evil.example").status == 403
    assert ask(port, path, **BEARER, Host=f"localhost:{port}").status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_nothing_but_reading_is_allowed(path: str, port: int) -> None:
    reply = ask(port, path, method="POST", body="{}", **BEARER)
    assert reply.status == 405
    assert reply.headers["Allow"] == "GET, HEAD"


def test_metrics_need_the_token_even_from_this_machine(port: int) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-Forwarded-For": "127.0.0.1"}):
        reply = ask(port, "/metrics", **headers)
        assert reply.status == 401
        assert "bunko_" not in reply.text


def test_metrics_are_for_those_who_may_read_all_tools(tool_library: Library) -> None:
    add = tool_library.tokens.add
    everything, one_tool = (add(name, Rights(read)) for name, read in (("a", ("*",)), ("b", ("recipes",))))
    with serve_app(ToolRegistry(lambda: tool_library)) as port:
        assert ask(port, "/metrics", Authorization=f"Bearer {everything}").status == 200
        reply = ask(port, "/metrics", Authorization=f"Bearer {one_tool}")
        assert reply.status == 403
        assert "bunko_" not in reply.text


def test_searches_are_counted_by_mode_and_result_and_timed_by_stage(port: int) -> None:
    call_search(
        port,
        {"query": "京都", "mode": "bm25"},
        {"query": "京都"},
        {"query": "zzzzqqqq", "mode": "bm25"},
        {"query": " "},
    )
    samples = read_metrics(port)
    assert samples["bunko_searches_total{mode=bm25},{result=hits}"] == 1
    assert samples["bunko_searches_total{mode=hybrid},{result=hits}"] == 1
    assert samples["bunko_searches_total{mode=bm25},{result=none}"] == 1
    assert samples["bunko_searches_total{mode=unknown},{result=error}"] == 1
    assert samples["bunko_stage_seconds_count{stage=answer}"] == 4
    for stage in ("answer", "file_scan", "search_total", "bm25_query", "vector_query", "query_embedding"):
        count = samples[f"bunko_stage_seconds_count{{stage={stage}}}"]
        assert samples[f"bunko_stage_seconds_bucket{{le=+Inf}},{{stage={stage}}}"] == count > 0
        assert samples[f"bunko_stage_seconds_sum{{stage={stage}}}"] > 0


def test_imports_and_the_state_of_the_index_are_published(port: int, docs: Path) -> None:
    call_search(port, {"query": "京都"})
    write_document(docs, "new.md", "# 奈良\n\n奈良の鹿。\n")
    call_search(port, {"query": "奈良"})
    samples = read_metrics(port)
    assert samples["bunko_imports_total{result=done}"] == 2
    assert samples["bunko_imported_documents_total"] == 3
    assert samples["bunko_library_generation"] > 0
    assert samples["bunko_index_lag_generations"] == 0
    assert samples["bunko_index_pending_documents"] == 0
    assert samples["bunko_ready"] == 1
    [info] = [name for name in samples if name.startswith("bunko_build_info")]
    assert "{store=sqlite}" in info
    assert "{index=embedded}" in info


def test_requests_are_counted_by_path_and_status_and_strange_paths_together(port: int) -> None:
    ask(port, "/healthz")
    ask(port, "/mcp")
    ask(port, "/api/v1/status")
    for number in range(3):
        ask(port, f"/{SECRET_WORDS.encode().hex()}/{number}", **BEARER)
    samples = read_metrics(port)
    assert samples["bunko_http_requests_total{path=/healthz},{status=200}"] == 1
    assert samples["bunko_http_requests_total{path=/mcp},{status=401}"] == 1
    assert samples["bunko_http_requests_total{path=/api},{status=401}"] == 1
    assert samples["bunko_http_requests_total{path=other},{status=404}"] == 3


def test_no_query_token_path_or_tool_name_is_published(port: int, docs: Path) -> None:
    write_document(docs, f"{SECRET_WORDS}.md", f"# {SECRET_WORDS}\n\n{SECRET_WORDS}について。\n")
    call_search(port, {"query": SECRET_WORDS}, {"query": SECRET_WORDS, "path": "旅/**"})
    text = ask(port, "/metrics", **BEARER).text
    for word in (SECRET_WORDS, BEARER["Authorization"].split()[1], str(docs), "documents{", "旅"):
        assert word not in text
