"""A thread that reads an older state of the store than others gets the index of its own state."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bunko.indexes.embedded.index import EmbeddedIndex
from bunko.stores import sqlite
from bunko.stores.sqlite.store import Sqlite
from bunko.types import Tool
from tests.contracts.documents import prepared

PATIENCE = 20.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Sqlite]:
    opened = sqlite.build(tmp_path / "library.db")
    yield opened
    opened.close()


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def indexed_chunks(store: Sqlite, index: EmbeddedIndex, tool: Tool) -> list[int]:
    """Return the chunks that a search of this thread would rank."""
    with store.read_transaction():
        generation = store.generation()
        view = index.view([tool.id])
        assert view.generation == generation
        return sorted(view.chunk_ids(view.rows()))


def stored_chunks(store: Sqlite, tool: Tool) -> list[int]:
    return sorted(store.changes.chunk_ids(tool.id))


@pytest.mark.parametrize("changes", [1, 10])
@pytest.mark.parametrize("has_file", [False, True])
def test_an_older_reader_sees_its_own_state_and_leaves_the_newer_one_as_it_is(
    changes: int, has_file: bool, store: Sqlite, thread: ThreadPoolExecutor, tmp_path: Path
) -> None:
    tool = store.tools.put(Tool("docs"))
    index = EmbeddedIndex(store, tmp_path / "index")
    store.documents.write(tool.id, upsert=[prepared(f"{n}.md", f"検索の話 {n}") for n in range(20)])
    if has_file:
        index.sync(tool.id)

    def change(number: int) -> list[int]:
        store.documents.write(tool.id, upsert=[prepared(f"new {number}.md", "奈良の鹿")], remove=[f"{number}.md"])
        return indexed_chunks(store, index, tool)

    with store.read_transaction():
        before = stored_chunks(store, tool)
        for number in range(changes):
            assert thread.submit(change, number).result(PATIENCE) != before
        assert indexed_chunks(store, index, tool) == before
        newest = thread.submit(stored_chunks, store, tool).result(PATIENCE)
        assert thread.submit(indexed_chunks, store, index, tool).result(PATIENCE) == newest
    assert indexed_chunks(store, index, tool) == newest
    index.sync(tool.id)
    assert index.check(tool.id) == ""
