"""Run blocking functions in threads that a server can leave behind when they hang."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from bunko.errors import LibraryBusy

T = TypeVar("T")

_MAX_IDLE = 4  # threads of this process that wait for the next function, which is faster than starting one


class Workers:
    """A limited number of threads, one for each running function.

    A cancelled caller does not wait: its thread goes on, and its place is free when it ends. The threads are daemons,
    so that a process can end while they hang. They are not those that all parts of an asyncio program share: once these
    hang, nothing reads the client's next line.
    """

    def __init__(self, name: str, *, max_threads: int, max_wait_seconds: float) -> None:
        self._name, self._max_threads, self._max_wait_seconds = name, max_threads, max_wait_seconds
        self._free_places = asyncio.Semaphore(max_threads)
        self._running_count = 0
        self._has_ended = threading.Condition()

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a function returns; raise LibraryBusy if no thread is free in time."""
        await self._take_place()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()

        def finish(result: T | None, error: BaseException | None) -> None:
            self._free_places.release()
            if future.done():  # cancelled: the result is not awaited
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
            self._count_running(-1)
            _keep_current_thread()  # before the result is known, so that the next function finds it
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(finish, result, error)

        self._count_running(+1)
        try:
            _run_in_thread(work, f"bunko-{self._name}")
        except RuntimeError:  # the system has no thread left
            self._count_running(-1)
            self._free_places.release()
            raise
        return await future

    async def _take_place(self) -> None:
        if not self._free_places.locked():
            await self._free_places.acquire()  # at once
            return
        try:
            async with asyncio.timeout(self._max_wait_seconds):
                await self._free_places.acquire()
        except TimeoutError:
            raise LibraryBusy(
                f"{self._max_threads} {self._name} of this server are still running",
                hint="Wait until one of them ends, or restart the server.",
            ) from None

    def _count_running(self, change: int) -> None:
        with self._has_ended:
            self._running_count += change
            if not self._running_count:
                self._has_ended.notify_all()

    def join(self, seconds: float) -> None:
        """Wait at most this long for the running functions to end."""
        with self._has_ended:
            self._has_ended.wait_for(lambda: not self._running_count, seconds)


class _Thread(threading.Thread):
    """A thread that runs one function after another as long as it is kept."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.functions: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.is_kept = True

    def run(self) -> None:
        while self.is_kept:
            self.is_kept = False
            self.functions.get()()


_idle: list[_Thread] = []
_keeping = threading.Lock()


def _forget_threads() -> None:
    """Begin again in a forked child, which has none of its parent's threads."""
    global _keeping
    _idle.clear()
    _keeping = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def _run_in_thread(function: Callable[[], None], name: str) -> None:
    try:
        thread = _idle.pop()
    except IndexError:
        thread = _Thread(name)
        thread.functions.put(function)
        thread.start()
    else:
        thread.name = name
        thread.functions.put(function)


def _keep_current_thread() -> None:
    thread = threading.current_thread()
    with _keeping:
        if isinstance(thread, _Thread) and len(_idle) < _MAX_IDLE:
            thread.is_kept = True
            _idle.append(thread)
