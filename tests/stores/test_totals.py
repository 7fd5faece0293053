"""What a tool holds is known without reading its texts, also after another bunko has changed them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bunko.stores import sqlite
from bunko.stores.sqlite.connection import SqliteConnection
from bunko.stores.sqlite.store import Sqlite
from bunko.types import Tool
from bunko.types.records import PreparedDocument, Totals
from tests.contracts.documents import prepared

FEW = 100  # steps: a row takes several


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "library.db"


@pytest.fixture
def store(path: Path) -> Iterator[Sqlite]:
    opened = sqlite.build(path)
    yield opened
    opened.close()


def document(number: int) -> PreparedDocument:
    key = f"key {number}".encode()
    return replace(prepared(f"{number}.md", f"京都の寺 {number:06}", "奈良の鹿"), vector_keys=[key, b"same"])


def write(store: Sqlite, tool: Tool, numbers: range) -> None:
    documents = [document(number) for number in numbers]
    keys = {key for one in documents for key in one.vector_keys}
    store.documents.write(tool.id, upsert=documents, vectors={key: np.ones(2, np.float32) for key in keys})


def steps(connection: SqliteConnection, work: Callable[[], object]) -> int:
    """Return how many steps SQLite's machine takes for some work: at least one for each row and value that it reads."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    connection.set_progress_handler(step, 1)
    try:
        work()
    finally:
        connection.set_progress_handler(None, 0)
    return count


def steps_of_totals(store: Sqlite, tool: Tool) -> int:
    with store.read_transaction(), store._database._readers.connection() as reader:
        return steps(reader, lambda: store.stats.totals(tool.id))


def test_counting_a_large_tool_reads_as_few_rows_as_counting_a_small_one(store: Sqlite) -> None:
    small, large = store.tools.put(Tool("small")), store.tools.put(Tool("large"))
    write(store, small, range(2))
    write(store, large, range(400))
    assert store.stats.totals(large.id) == Totals(400, 800, 800, 400 * 16)
    assert max(steps_of_totals(store, large), steps_of_totals(store, small)) < FEW


def test_a_change_of_a_large_tool_reads_as_few_rows_as_that_of_a_small_one(store: Sqlite) -> None:
    taken = []
    for name, size in (("small", 2), ("large", 400)):
        tool = store.tools.put(Tool(name))
        write(store, tool, range(size))
        taken.append(steps(store._database._writer, lambda tool=tool: write(store, tool, range(1, 2))))  # type: ignore[misc]
        assert store.stats.totals(tool.id) == Totals(size, 2 * size, 2 * size, 16 * size)
    assert abs(taken[0] - taken[1]) < 400  # to read its rows takes more than one step each


def test_a_library_of_an_older_bunko_is_counted_once(store: Sqlite, path: Path) -> None:
    tool = store.tools.put(Tool("docs"))
    write(store, tool, range(100))
    with closing(sqlite3.connect(path)) as older, older:
        older.execute("DELETE FROM meta WHERE key LIKE 'totals %'")
    assert steps_of_totals(store, tool) > 500
    assert steps_of_totals(store, tool) < FEW
    with closing(sqlite3.connect(path)) as older, older:  # as an older bunko deletes a document
        older.execute("PRAGMA foreign_keys = ON")
        older.execute("UPDATE meta SET value = CAST(value AS INTEGER) + 1 WHERE key = 'generation'")
        older.execute(
            "INSERT INTO removed SELECT tool_id, id, (SELECT value FROM meta WHERE key = 'generation') FROM documents"
            " WHERE uri = '7.md'"
        )
        older.execute("DELETE FROM documents WHERE uri = '7.md'")
    assert store.stats.totals(tool.id) == Totals(99, 198, 198, 99 * 16)
    write(store, tool, range(7, 8))
    assert store.stats.totals(tool.id) == Totals(100, 200, 200, 1600)


def test_counts_stay_current_when_old_removals_are_forgotten(store: Sqlite) -> None:
    tool, other = store.tools.put(Tool("docs")), store.tools.put(Tool("other"))
    write(store, tool, range(50))
    write(store, other, range(1))
    store.changes.prune_removals(tool.id, store.generation())
    assert steps_of_totals(store, tool) < FEW


def test_a_library_that_may_only_be_read_is_counted_once_by_each_process(store: Sqlite, path: Path) -> None:
    tool = store.tools.put(Tool("docs"))
    write(store, tool, range(100))
    with closing(sqlite3.connect(path)) as older, older:
        older.execute("DELETE FROM meta WHERE key LIKE 'totals %'")
    reading = sqlite.build(path, read_only=True)
    first, second = steps_of_totals(reading, tool), steps_of_totals(reading, tool)
    assert (reading.stats.totals(tool.id), reading.stats.totals(tool.id + 9)) == (
        Totals(100, 200, 200, 1600), Totals(0, 0, 0, 0)
    )  # fmt: skip
    assert first > 500
    assert second < FEW
    reading.close()


def test_counts_do_not_travel_to_another_store(store: Sqlite, tmp_path: Path) -> None:
    tool = store.tools.put(Tool("docs"))
    write(store, tool, range(3))
    assert not [key for key in store.rows.values() if key.startswith("totals")]
