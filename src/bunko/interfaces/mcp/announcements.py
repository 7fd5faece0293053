"""Tell clients what has changed, each as fast as it reads, and the same thing only once."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager


class Listener:
    """The notifications that one client wants and has not got yet."""

    def __init__(self, methods: Collection[str]) -> None:
        self._methods = frozenset(methods)
        self._waiting: dict[str, None] = {}  # in the order in which they came
        self._is_filled = asyncio.Event()

    def note(self, method: str) -> None:
        """Remember a notification, unless it waits already: it only says that something is to be listed again."""
        if method in self._methods:
            self._waiting[method] = None
            self._is_filled.set()

    async def next(self) -> str:
        """Return the next notification, waiting for it if necessary."""
        while not self._waiting:
            self._is_filled.clear()
            await self._is_filled.wait()
        method = next(iter(self._waiting))
        del self._waiting[method]
        return method


class Announcements:
    """All clients that listen to a server."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()

    def __len__(self) -> int:
        return len(self._listeners)

    @contextmanager
    def listen(self, methods: Collection[str]) -> Iterator[Listener]:
        """Listen as long as the block runs."""
        listener = Listener(methods)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    def announce(self, method: str) -> None:
        """Let all know who want to."""
        for listener in self._listeners:
            listener.note(method)
