"""Threads that read one file at the same time: each has a state of its own, and none waits for another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from bunko.errors import LibraryError
from bunko.stores import sqlite
from bunko.stores.sqlite.connection import MAX_IDLE
from bunko.stores.sqlite.store import Sqlite
from bunko.types import Tool

PATIENCE = 20.0
T = TypeVar("T")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Sqlite]:
    opened = sqlite.build(tmp_path / "library.db")
    yield opened
    opened.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(20) as pool:
        yield pool


def names(store: Sqlite) -> list[str]:
    return [tool.name for tool in store.tools.all()]


def in_transaction(store: Sqlite, read: Callable[[], T], barrier: threading.Barrier) -> T:
    with store.read_transaction():
        barrier.wait(PATIENCE)
        return read()


def test_a_read_does_not_wait_for_the_read_transaction_of_another_thread(
    store: Sqlite, threads: ThreadPoolExecutor
) -> None:
    store.tools.put(Tool("docs"))
    with store.read_transaction():
        assert names(store) == ["docs"]
        assert threads.submit(names, store).result(PATIENCE) == ["docs"]


def test_each_thread_reads_from_a_state_of_its_own(store: Sqlite, threads: ThreadPoolExecutor) -> None:
    store.tools.put(Tool("first"))
    with store.read_transaction():
        generation = store.generation()
        threads.submit(store.tools.put, Tool("second")).result(PATIENCE)
        with store.read_transaction():  # the same transaction, not a new one
            assert names(store) == ["first"]
        assert names(store) == ["first"]
        assert store.generation() == generation
        assert threads.submit(names, store).result(PATIENCE) == ["first", "second"]
    assert names(store) == ["first", "second"]


def test_a_transaction_that_an_interrupt_kept_from_ending_ends_with_its_object(
    store: Sqlite, threads: ThreadPoolExecutor
) -> None:
    transaction = store.read_transaction()
    transaction.__enter__()
    assert names(store) == []
    threads.submit(store.tools.put, Tool("docs")).result(PATIENCE)
    assert names(store) == []
    del transaction
    assert names(store) == ["docs"]


def test_many_threads_read_at_the_same_time_and_few_connections_stay_open(
    store: Sqlite, threads: ThreadPoolExecutor
) -> None:
    barrier = threading.Barrier(20)
    reads = [threads.submit(in_transaction, store, store.generation, barrier) for _ in range(20)]
    assert len({read.result(PATIENCE) for read in reads}) == 1
    assert len(store._database._readers._idle) == MAX_IDLE


def test_a_file_that_takes_the_place_of_the_opened_one_is_never_read(
    store: Sqlite, threads: ThreadPoolExecutor, tmp_path: Path
) -> None:
    store.tools.put(Tool("opened"))
    other = sqlite.build(tmp_path / "other.db")
    other.tools.put(Tool("other"))
    other.close()
    with store.read_transaction():
        names(store)
        (tmp_path / "other.db").replace(tmp_path / "library.db")
        reading = threads.submit(names, store)
        with pytest.raises(TimeoutError):  # it waits for the connection to the old file
            reading.result(0.2)
    assert reading.result(PATIENCE) == ["opened"]


def test_a_library_that_is_closed_while_a_thread_reads_is_closed_for_the_next_read(
    tmp_path: Path, threads: ThreadPoolExecutor
) -> None:
    store = sqlite.build(tmp_path / "library.db")
    with store.read_transaction():
        generation = store.generation()
        threads.submit(store.close).result(PATIENCE)
        assert store.generation() == generation
    with pytest.raises(LibraryError, match="is closed"):
        store.generation()
    assert not (tmp_path / "library.db-wal").exists()  # the last connection is closed too
