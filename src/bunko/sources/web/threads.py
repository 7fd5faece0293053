"""Pieces of work in, their results out, from threads that keep no process alive: a page may never come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class Crew(Generic[T]):
    """So many threads. The standard library's pool is waited for at the end of the process, even after Ctrl-C."""

    def __init__(self, number: int) -> None:
        self.busy = 0  # pieces of work whose results were not taken yet
        self._work: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._ended: SimpleQueue[T | BaseException] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"bunko-web-{place}", daemon=True) for place in range(number)
        ]
        for thread in self._threads:
            thread.start()

    def begin(self, work: Callable[[], T]) -> None:
        """Begin a piece of work as soon as a thread is free."""
        self.busy += 1
        self._work.put(work)

    def results(self, seconds: float) -> list[T]:
        """Return the results that are there, after waiting at most so long for one; an error is raised."""
        found: list[T] = []
        with suppress(Empty):
            while True:
                one = self._ended.get(timeout=seconds) if not found else self._ended.get_nowait()
                self.busy -= 1
                if isinstance(one, BaseException):
                    raise one
                found.append(one)
        return found

    def dismiss(self) -> None:
        """Let the threads end; who still waits for a page is not waited for."""
        with suppress(Empty):
            while True:
                self._work.get_nowait()
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            if not self.busy:
                thread.join()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                self._ended.put(work())
            except BaseException as error:
                self._ended.put(error)
