"""Imports of one tool keep each other out on all machines; those of different tools run at the same time."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bunko import stores
from bunko.errors import LibraryBusy
from bunko.library.open import open_library
from bunko.library.opening.paths import paths_for_folder
from bunko.protocols import Store
from bunko.runtime.observer import Observer
from bunko.types import Tool
from bunko.types.records import DatabaseServer
from tests.contracts.documents import prepared
from tests.contracts.stores.test_locks import acquire_elsewhere
from tests.scale.postgres_server import environment

pytestmark = pytest.mark.scale

HOLDER = """
import sys
from pathlib import Path
from bunko import stores
from bunko.types.records import DatabaseServer
store = stores.build("postgres", Path(sys.argv[1]), DatabaseServer(sys.argv[2], sys.argv[3]))
lock = store.lock(tools=sys.argv[4:] or None)
assert lock.acquire(0)
print("held", flush=True)
sys.stdin.read()
"""

Open = Callable[[], Store]


@pytest.fixture
def open_store(server: DatabaseServer, tmp_path: Path) -> Iterator[Open]:
    """Open the same library as another machine would, with a folder of its own."""
    opened: list[Store] = []

    def opener() -> Store:
        folder = tmp_path / f"machine {len(opened)}"
        opened.append(stores.build("postgres", folder / "library.db", server))
        return opened[-1]

    yield opener
    for store in opened:
        store.close()


def hold_elsewhere(server: DatabaseServer, folder: Path, *tools: str) -> subprocess.Popen[str]:
    """Start a process that holds the lock of some tools until it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder / "library.db"), server.url, server.schema, *tools],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_different_tools_are_imported_at_the_same_time(open_store: Open) -> None:
    first, second = open_store(), open_store()
    docs, notes, all_tools = first.lock(tools=["docs"]), second.lock(tools=["notes"]), second.lock()
    assert docs.acquire(0)
    assert acquire_elsewhere(notes)
    assert not acquire_elsewhere(all_tools)
    docs.release()
    assert acquire_elsewhere(all_tools)


def test_a_busy_error_names_the_process_that_holds_the_lock(
    server: DatabaseServer, tmp_path: Path, docs: Path, open_store: Open
) -> None:
    with open_library(paths_for_folder(tmp_path / "library"), environ=environment(server)) as library:
        library.add(docs, name="docs")
        process = hold_elsewhere(server, tmp_path, "docs")
        try:
            waits: list[str] = []
            observer = Observer(on_wait=waits.append, is_cancelled=lambda: bool(waits))
            with pytest.raises(LibraryBusy) as raised:
                library.import_tools(["docs"], observer=observer)
        finally:
            process.kill()
            process.communicate()
        host = socket.gethostname().partition(".")[0][:20]
        assert raised.value.message.startswith(f"Process {process.pid} on {host}")
        assert "(since 2" in raised.value.message
        assert raised.value.message.endswith("is importing into this library")
        assert waits[0].startswith(f"Process {process.pid} on {host}")
        assert library.import_tools(["docs"]).total_chunks == 0


def test_a_tool_has_one_lock_whatever_name_it_is_called_by(server: DatabaseServer, tmp_path: Path, docs: Path) -> None:
    with open_library(paths_for_folder(tmp_path / "library"), environ=environment(server)) as library:
        library.add(docs, name="資料 docs")
        shown = library.assistant_names()["資料 docs"]
        assert shown != "資料 docs"
        process = hold_elsewhere(server, tmp_path, "資料 docs")
        try:
            cancelled = Observer(is_cancelled=lambda: True)
            for name in ("資料 docs", shown):
                with pytest.raises(LibraryBusy, match=f"Process {process.pid} on"):
                    library.import_tools([name], observer=cancelled)
            with pytest.raises(LibraryBusy, match=f"Process {process.pid} on"):
                library.rename_tool("資料 docs", "notes", observer=cancelled)
        finally:
            process.kill()
            process.communicate()
        assert library.rename_tool("資料 docs", "notes").name == "notes"
        assert [tool.name for tool in library.local_tools()] == ["notes"]


def test_the_lock_of_a_killed_process_is_released(server: DatabaseServer, tmp_path: Path, open_store: Open) -> None:
    store = open_store()
    process = hold_elsewhere(server, tmp_path, "docs")
    lock = store.lock(tools=["docs"])
    assert not lock.acquire(0)
    process.kill()
    process.communicate()
    assert lock.acquire(30)
    assert lock.holder() == ""
    lock.release()


def test_orphaned_vectors_stay_while_another_import_may_count_on_them(open_store: Open) -> None:
    first, second = open_store(), open_store()
    tool = first.tools.put(Tool("docs"))
    first.documents.write(tool.id, vectors={b"key": np.ones(4, np.float32)})
    lock, other = first.lock(tools=["docs"]), second.lock(tools=["notes"])
    assert lock.acquire(0)
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(other.acquire, 0).result()
    first.vectors.delete_orphans()
    assert first.vectors.missing([b"key"]) == set()
    other.release()
    first.vectors.delete_released(tool.id)  # at the end of any import
    assert first.vectors.missing([b"key"]) == {b"key"}
    lock.release()


def test_parallel_imports_of_different_tools_lose_no_generation(open_store: Open) -> None:
    machines = [open_store() for _ in range(4)]
    tools = [machines[0].tools.put(Tool(f"tool{number}")) for number in range(4)]

    def write_documents(number: int) -> list[int]:
        store, tool = machines[number], tools[number]
        lock = store.lock(tools=[tool.name])
        assert lock.acquire(10)
        try:
            return [store.documents.write(tool.id, upsert=[prepared(f"{n}.md", f"text {n}")]) for n in range(25)]
        finally:
            lock.release()

    with ThreadPoolExecutor(4) as threads:
        generations = [generation for written in threads.map(write_documents, range(4)) for generation in written]
    assert sorted(generations) == list(range(1, 101))
    for tool in tools:
        assert machines[0].stats.totals(tool.id).documents == 25


def test_a_follower_never_misses_a_document_of_a_parallel_import(open_store: Open) -> None:
    """Whoever sees a generation sees everything up to it, however the transactions of two writers mix."""
    first, second, reader = open_store(), open_store(), open_store()
    tools = [first.tools.put(Tool("docs")), first.tools.put(Tool("notes"))]

    def write_documents(store: Store, tool: Tool) -> None:
        for n in range(40):
            store.documents.write(tool.id, upsert=[prepared(f"{n}.md", f"text {n}")])

    seen: dict[int, set[int]] = {tool.id: set() for tool in tools}
    generation = 0
    with ThreadPoolExecutor(2) as threads:
        writers = [threads.submit(write_documents, *pair) for pair in zip((first, second), tools, strict=True)]
        is_finished = False
        while not is_finished:
            is_finished = all(writer.done() for writer in writers)
            with reader.read_transaction():
                for tool in tools:
                    seen[tool.id] |= {chunk.document_id for chunk in reader.changes.chunks_since(tool.id, generation)}
                generation = reader.generation()
        for writer in writers:
            writer.result()
    assert [len(documents) for documents in seen.values()] == [40, 40]


def test_each_machine_keeps_the_name_of_its_own_index_file(open_store: Open) -> None:
    first, second = open_store(), open_store()
    tool = first.tools.put(Tool("docs"))
    first.changes.set_index_file(tool.id, "of the first")
    second.changes.set_index_file(tool.id, "of the second")
    assert first.changes.index_file(tool.id) == "of the first"
    assert second.changes.index_file(tool.id) == "of the second"
    again = stores.build(*first.address)
    assert again.changes.index_file(tool.id) == "of the first"
    again.close()


def test_a_machine_that_prunes_removals_leaves_those_that_others_need(open_store: Open) -> None:
    first, second = open_store(), open_store()
    tool = first.tools.put(Tool("docs"))
    first.documents.write(tool.id, upsert=[prepared("a.md", "text")])
    generation = second.generation()
    first.documents.write(tool.id, remove=["a.md"])
    first.changes.prune_removals(tool.id, first.generation())
    assert len(second.changes.removed_since(tool.id, generation) or ()) == 1


def test_the_host_of_a_holder_is_cut_to_what_the_server_stores() -> None:
    from bunko.stores.postgres.connection import application_name, describe_application

    assert len(application_name()) <= 63
    assert f"Process {os.getpid()} on " in describe_application(application_name())
    assert describe_application("psql") == ""
