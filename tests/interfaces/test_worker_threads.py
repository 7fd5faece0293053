"""Blocking functions of a server run in threads that are kept for the next one, unless they hang."""

from __future__ import annotations

import threading

import anyio
import pytest

from bunko.errors import LibraryBusy
from bunko.interfaces.worker_threads import Workers

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def workers(max_threads: int = 10) -> Workers:
    return Workers("calls", max_threads=max_threads, max_wait_seconds=0.05)


async def test_the_next_function_runs_in_the_same_thread() -> None:
    calls = workers()
    threads = [await calls.run(threading.get_ident) for _ in range(5)]
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


async def test_a_function_that_hangs_keeps_its_thread_to_itself() -> None:
    calls, release, hanging_thread = workers(), threading.Event(), 0

    def hang() -> None:
        nonlocal hanging_thread
        hanging_thread = threading.get_ident()
        release.wait()

    with anyio.move_on_after(0.05):
        await calls.run(hang)
    assert await calls.run(threading.get_ident) != hanging_thread
    release.set()
    calls.join(10)


async def test_more_functions_than_places_are_refused() -> None:
    calls, release = workers(max_threads=1), threading.Event()
    with anyio.move_on_after(0.05):
        await calls.run(release.wait)
    with pytest.raises(LibraryBusy, match="1 calls of this server are still running"):
        await calls.run(threading.get_ident)
    release.set()
    calls.join(10)


async def test_an_error_leaves_its_place_and_its_thread_to_the_next_function() -> None:
    calls = workers(max_threads=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await calls.run(lambda: 1 // 0)
    assert await calls.run(lambda: 7) == 7


async def test_only_a_few_threads_wait_for_the_next_functions() -> None:
    calls, together = workers(), threading.Barrier(10)
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(calls.run, together.wait)
    with anyio.fail_after(10):
        while sum(thread.name == "bunko-calls" for thread in threading.enumerate()) > 4:
            await anyio.sleep(0.01)
