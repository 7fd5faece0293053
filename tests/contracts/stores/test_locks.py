"""What every store promises about its locks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from bunko.protocols import Store, WriterLock


def acquire_elsewhere(lock: WriterLock) -> bool:
    """Try to get a lock in another thread, which stands for another process; give it back at once."""

    def attempt() -> bool:
        acquired = lock.acquire(0)
        if acquired:
            lock.release()
        return acquired

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(attempt).result()


def test_one_import_of_a_tool_runs_at_a_time(store: Store) -> None:
    lock = store.lock(tools=["docs"])
    assert lock.acquire(0)
    try:
        assert not acquire_elsewhere(store.lock(tools=["docs"]))
        assert not acquire_elsewhere(store.lock(tools=["notes", "docs"]))
        assert not acquire_elsewhere(store.lock())
    finally:
        lock.release()
    assert acquire_elsewhere(store.lock(tools=["docs"]))


def test_the_lock_of_all_tools_keeps_every_import_out(store: Store) -> None:
    lock = store.lock()
    assert lock.acquire(0)
    try:
        assert not acquire_elsewhere(store.lock(tools=["docs"]))
    finally:
        lock.release()
    assert acquire_elsewhere(store.lock(tools=["docs"]))


def test_each_purpose_has_its_own_lock(store: Store) -> None:
    crawl, importing = store.lock("web"), store.lock(tools=["docs"])
    assert crawl.acquire(0)
    assert importing.acquire(0)
    assert not acquire_elsewhere(store.lock("web"))
    importing.release()
    assert not acquire_elsewhere(store.lock("web"))
    assert acquire_elsewhere(store.lock(tools=["docs"]))
    crawl.release()
    assert acquire_elsewhere(store.lock("web"))
