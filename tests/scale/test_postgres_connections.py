"""A server that restarts, goes away or drops connections: tried again where that is safe, else one clear sentence."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from bunko import stores
from bunko.errors import LibraryBusy, LibraryError, LibraryUnreachable
from bunko.interfaces.mcp import server as mcp_server
from bunko.interfaces.tools.registry import ToolRegistry
from bunko.library.open import open_library
from bunko.library.opening.paths import locate_library, paths_for_folder
from bunko.protocols import Store
from bunko.stores.postgres import database as databases
from bunko.types import Tool
from bunko.types.records import DatabaseServer, PreparedDocument
from tests.contracts.documents import prepared
from tests.mcp.mcp_client import talk
from tests.scale.postgres_server import PostgresServer, environment

pytestmark = pytest.mark.scale

NOTE = "# 京都\n\n京都の寺を三日かけて巡った。庭園の紅葉がとても美しかったことを覚えている。"
DROP_CONNECTIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'bunko %'"


class OnceWhenRead(list[PreparedDocument]):
    """Documents that do something the first time a transaction reads them."""

    def __init__(self, documents: list[PreparedDocument], do: Callable[[], Any]) -> None:
        super().__init__(documents)
        self._do: Callable[[], Any] | None = do

    def __iter__(self) -> Iterator[PreparedDocument]:
        do, self._do = self._do, None
        if do is not None:
            do()
        return super().__iter__()


@pytest.fixture
def store(server: DatabaseServer, tmp_path: Path) -> Iterator[Store]:
    opened = stores.build("postgres", tmp_path / "library.db", server)
    yield opened
    opened.close()


@pytest.fixture
def tool(store: Store) -> Tool:
    return store.tools.put(Tool("docs"))


def test_a_read_transaction_sees_one_state_and_each_thread_has_its_own(store: Store, tool: Tool) -> None:
    with store.read_transaction():
        assert store.documents.uris(tool.id) == []
        store.documents.write(tool.id, upsert=[prepared("a.md", "text")])
        assert (store.documents.uris(tool.id), store.generation()) == ([], 0)
        with store.read_transaction(), ThreadPoolExecutor(1) as threads:
            assert threads.submit(store.documents.uris, tool.id).result() == ["a.md"]
            assert store.documents.uris(tool.id) == []
    assert (store.documents.uris(tool.id), store.generation()) == (["a.md"], 1)


def test_reads_after_a_restart_of_the_server_succeed(postgres: PostgresServer, store: Store, tool: Tool) -> None:
    store.documents.write(tool.id, upsert=[prepared("a.md", "text")])
    with store.read_transaction():
        assert store.documents.uris(tool.id) == ["a.md"]
    postgres.stop()
    postgres.start()
    assert store.documents.uris(tool.id) == ["a.md"]
    postgres.kill()
    postgres.start()
    with store.read_transaction():
        assert store.documents.uris(tool.id) == ["a.md"]
    assert store.files.still_exist()


def test_a_read_waits_for_a_server_that_is_starting(postgres: PostgresServer, store: Store, tool: Tool) -> None:
    store.documents.write(tool.id, upsert=[prepared("a.md", "text")])
    postgres.stop()
    starting = threading.Thread(target=postgres.start)
    starting.start()
    try:
        assert store.documents.uris(tool.id) == ["a.md"]
    finally:
        starting.join()


def test_a_server_that_is_gone_is_one_clear_sentence(
    postgres: PostgresServer, store: Store, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "READ_RETRY_SECONDS", 0.1)
    postgres.stop()
    try:
        for work in (
            lambda: store.documents.uris(tool.id),
            lambda: store.tools.put(Tool("notes")),
            lambda: store.lock().acquire(0),
        ):
            with pytest.raises(LibraryError, match="Cannot connect to postgresql:") as raised:
                work()
            assert raised.value.hint
            assert "\n" not in raised.value.message
        assert not store.files.still_exist()
        assert not store.cache.log_search("query", "", "2024-01-01", limit=3)  # it may be lost
    finally:
        postgres.start()
    assert store.files.still_exist()
    assert [stored.name for stored in store.tools.all()] == ["docs"]


def test_a_snapshot_that_is_lost_is_an_error_and_never_a_mixture(
    postgres: PostgresServer, store: Store, tool: Tool
) -> None:
    with store.read_transaction():
        store.generation()
        postgres.execute(DROP_CONNECTIONS)
        with pytest.raises(LibraryUnreachable, match="was lost"):
            store.documents.uris(tool.id)
    assert store.documents.uris(tool.id) == []


def test_a_write_whose_connection_is_lost_before_its_commit_is_done_once(
    postgres: PostgresServer, store: Store, tool: Tool
) -> None:
    documents = OnceWhenRead([prepared("a.md", "text")], lambda: postgres.execute(DROP_CONNECTIONS))
    assert store.documents.write(tool.id, upsert=documents) == 1
    assert store.stats.totals(tool.id).documents == 1


def test_an_import_goes_on_after_a_restart_with_its_lock(
    postgres: PostgresServer, store: Store, tool: Tool, server: DatabaseServer, tmp_path: Path
) -> None:
    other = stores.build("postgres", tmp_path / "other" / "library.db", server)
    lock, other_lock = store.lock(tools=["docs"]), other.lock(tools=["docs"])
    assert lock.acquire(0)
    store.documents.write(tool.id, upsert=[prepared("a.md", "text")])
    postgres.kill()
    postgres.start()
    store.documents.write(tool.id, upsert=[prepared("b.md", "text")])
    with ThreadPoolExecutor(1) as threads:
        assert not threads.submit(other_lock.acquire, 0).result()
    lock.release()
    assert other_lock.acquire(0)
    other_lock.release()
    assert store.documents.uris(tool.id) == ["a.md", "b.md"]
    other.close()


def test_an_import_that_lost_its_lock_to_another_one_writes_nothing_more(
    postgres: PostgresServer, store: Store, tool: Tool, server: DatabaseServer, tmp_path: Path
) -> None:
    other = stores.build("postgres", tmp_path / "other" / "library.db", server)
    lock, other_lock = store.lock(tools=["docs"]), other.lock(tools=["docs"])
    assert lock.acquire(0)
    postgres.execute(DROP_CONNECTIONS)
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(other_lock.acquire, 10).result()
    with pytest.raises(LibraryBusy, match=r"was lost, and Process \d+ on .* is importing now"):
        store.documents.write(tool.id, upsert=[prepared("a.md", "text")])
    lock.release()
    other_lock.release()
    assert store.documents.uris(tool.id) == []
    other.close()


def test_more_threads_than_connections_wait_for_each_other(postgres: PostgresServer, tmp_path: Path) -> None:
    store = stores.build("postgres", tmp_path / "library.db", postgres.new_library(pool_size=2))
    tool = store.tools.put(Tool("docs"))
    store.documents.write(tool.id, upsert=[prepared("a.md", "text")])

    def read(_: int) -> list[str]:
        with store.read_transaction():
            return store.documents.uris(tool.id)

    with ThreadPoolExecutor(12) as threads:
        assert list(threads.map(read, range(100))) == [["a.md"]] * 100
    store.close()
    with pytest.raises(LibraryError, match="is closed"):
        store.documents.uris(tool.id)


def test_a_change_wakes_a_process_that_waits_for_one(store: Store, server: DatabaseServer, tmp_path: Path) -> None:
    other = stores.build("postgres", tmp_path / "other" / "library.db", server)
    assert other.wait_for_change(0)  # from now on it listens
    store.tools.put(Tool("docs"))
    assert other.wait_for_change(30)
    assert not other.wait_for_change(0.01)
    store.cache.cache_answer("kind", b"key", "answer", now=0.0, expires_at=1.0, limit=10)
    assert not other.wait_for_change(0.01)  # answers of models change no result
    other.close()
    assert other.wait_for_change(30)  # a closed store lets nobody wait


def test_a_listener_whose_connection_is_lost_listens_again(postgres: PostgresServer, store: Store, tool: Tool) -> None:
    store.wait_for_change(0)
    postgres.execute(DROP_CONNECTIONS)
    assert store.wait_for_change(0.01)  # something may have been missed
    while not store.wait_for_change(0.01):
        pass
    store.documents.write(tool.id, upsert=[prepared("a.md", "text")])
    assert store.wait_for_change(30)


def test_a_server_announces_a_tool_that_another_machine_added(
    server: DatabaseServer, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_server, "POLL_SECONDS", 60.0)  # longer than the client waits: it must be told
    told = anyio.Event()

    async def listen(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    with open_library(paths_for_folder(tmp_path / "served"), environ=environment(server)) as library:
        library.store.wait_for_change(0)

        async def follow(client: Client) -> None:
            assert "fresh" not in {tool.name for tool in (await client.list_tools()).tools}
            store.tools.put(Tool("fresh", "folder", "New notes"))
            await told.wait()
            assert "fresh" in {tool.name for tool in (await client.list_tools()).tools}

        registry = ToolRegistry(lambda: library)
        registry.library()
        talk(registry, follow, "legacy", message_handler=listen)


def test_a_library_on_a_server_is_searched_like_one_in_a_file(
    server: DatabaseServer, docs: Path, tmp_path: Path
) -> None:
    for number in range(12):
        (docs / f"{number}.md").write_text(f"{NOTE} 場所 {number} garden temple.", encoding="utf-8")
    (docs / "nul.md").write_text(f"{NOTE}\n\nzero \0 character", encoding="utf-8")
    answers: list[list[tuple[str, str, float]]] = []
    for environ in ({}, environment(server)):
        paths = locate_library(docs_dir=docs, data_dir=tmp_path / f"data {len(answers)}", environ={})
        with open_library(paths, environ=environ) as library:
            library.reindex(workers=1)
            answers.append(
                [
                    (hit.uri, hit.chunk.text, round(hit.score, 6))
                    for query in ("紅葉の庭園", "garden", "zero", "場所 7")
                    for hit in library.search(query, top_k=20).hits
                ]
            )
    assert answers[0] == answers[1]
    assert answers[0]
