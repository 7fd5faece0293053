"""Run blocking functions in threads that a server can leave behind when they hang."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio

from bunko.errors import LibraryBusy

T = TypeVar("T")


class Workers:
    """A limited number of threads, one for each running function.

    A cancelled caller does not wait: its thread goes on, and its place is free when it ends. The threads are daemons,
    so that a process can end while they hang. They are not those that all parts of an asyncio program share: once these
    hang, nothing reads the client's next line.
    """

    def __init__(self, name: str, *, max_threads: int, max_wait_seconds: float) -> None:
        self._name, self._max_threads, self._max_wait_seconds = name, max_threads, max_wait_seconds
        self._free_places = anyio.Semaphore(max_threads)
        self._running: set[threading.Thread] = set()

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a function returns; raise LibraryBusy if no thread is free in time."""
        with anyio.move_on_after(self._max_wait_seconds) as waiting:
            await self._free_places.acquire()
        if waiting.cancelled_caught:
            raise LibraryBusy(
                f"{self._max_threads} {self._name} of this server are still running",
                hint="Wait until one of them ends, or restart the server.",
            )
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def finish(result: T | None, error: BaseException | None) -> None:
            self._free_places.release()
            if future.done():  # cancelled: nobody waits for the result
                return
            if error is None:
                future.set_result(result)  # type: ignore[arg-type]
            else:
                future.set_exception(error)

        def work() -> None:
            result, error = None, None
            try:
                result = context.run(function, *arguments)
            except BaseException as raised:
                error = raised
            self._running.discard(threading.current_thread())
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(finish, result, error)

        thread = threading.Thread(target=work, name=f"bunko-{self._name}", daemon=True)
        self._running.add(thread)
        try:
            thread.start()
        except RuntimeError:  # the system has no thread left
            self._running.discard(thread)
            self._free_places.release()
            raise
        return await future

    def join(self, seconds: float) -> None:
        """Wait at most this long for the running functions to end."""
        deadline = time.monotonic() + seconds
        for thread in list(self._running):
            thread.join(max(0.0, deadline - time.monotonic()))
