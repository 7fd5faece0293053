"""Pieces of work in, their results out, from threads that keep no process alive: a page may never come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class DaemonPool(Generic[T]):
    """So many threads. The standard library's pool is waited for at the end of the process, even after Ctrl-C."""

    def __init__(self, thread_count: int) -> None:
        self.pending = 0  # pieces of work whose results were not taken yet
        self._queue: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._results: SimpleQueue[T | BaseException] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run_worker, name=f"bunko-web-{place}", daemon=True)
            for place in range(thread_count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], T]) -> None:
        """Begin a piece of work as soon as a thread is free."""
        self.pending += 1
        self._queue.put(work)

    def results(self, timeout: float) -> list[T]:
        """Return the results that are there, after waiting at most so long for one; an error is raised."""
        found: list[T] = []
        with suppress(Empty):
            while True:
                one = self._results.get(timeout=timeout) if not found else self._results.get_nowait()
                self.pending -= 1
                if isinstance(one, BaseException):
                    raise one
                found.append(one)
        return found

    def shut_down(self) -> None:
        """Let the threads end; who still waits for a page is not waited for."""
        with suppress(Empty):
            while True:
                self._queue.get_nowait()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            if not self.pending:
                thread.join()

    def _run_worker(self) -> None:
        while (work := self._queue.get()) is not None:
            try:
                self._results.put(work())
            except BaseException as error:
                self._results.put(error)
