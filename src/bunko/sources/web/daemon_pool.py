"""Run tasks in threads that end with the program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class DaemonPool(Generic[T]):
    """A pool of daemon threads. The pool of the standard library is joined at exit, even after Ctrl-C."""

    def __init__(self, thread_count: int) -> None:
        self.pending = 0  # tasks whose results were not returned yet
        self._queue: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._results: SimpleQueue[T | BaseException] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run_worker, name=f"bunko-web-{index}", daemon=True)
            for index in range(thread_count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, task: Callable[[], T]) -> None:
        """Run a task as soon as a thread is free."""
        self.pending += 1
        self._queue.put(task)

    def results(self, timeout: float) -> list[T]:
        """Return the available results, after waiting at most `timeout` for the first; raise the error of a task."""
        results: list[T] = []
        with suppress(Empty):
            while True:
                result = self._results.get(timeout=timeout) if not results else self._results.get_nowait()
                self.pending -= 1
                if isinstance(result, BaseException):
                    raise result
                results.append(result)
        return results

    def shut_down(self) -> None:
        """Stop the threads, without waiting for tasks that still run."""
        with suppress(Empty):
            while True:
                self._queue.get_nowait()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            if not self.pending:
                thread.join()

    def _run_worker(self) -> None:
        while (task := self._queue.get()) is not None:
            try:
                self._results.put(task())
            except BaseException as error:
                self._results.put(error)
