"""Leave an engine that does not answer alone for a while, so that not every search waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bunko.errors import IndexFailure

PAUSE_SECONDS = 30.0


class EnginePause:
    """The time in which searches do not ask an engine; an import tries it at once, but only once for all its tools."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause: tuple[float, IndexFailure] | None = None  # when it ends, and what began it
        self._failed_tools: set[int] = set()  # whose sync met the failure

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask the engine inside the block; in a pause, raise the failure that began it instead."""
        try:
            self._raise_if_paused()
            yield
        except IndexFailure as failure:
            self._begin(failure)
            raise

    @contextmanager
    def syncing(self, tool_id: int) -> Iterator[None]:
        """Sync a tool inside the block, which ends a pause, unless the sync of another tool has just met a failure."""
        try:
            if self._failed_tools and tool_id not in self._failed_tools:
                self._raise_if_paused()
            self._failed_tools.clear()
            self._pause = None
            yield
        except IndexFailure as failure:
            self._begin(failure)
            if failure.is_away:
                self._failed_tools.add(tool_id)
            raise

    def _raise_if_paused(self) -> None:
        pause = self._pause  # read once: another thread may end it
        if pause is not None and self._clock() < pause[0]:
            raise pause[1]

    def _begin(self, failure: IndexFailure) -> None:
        """Begin a pause if the engine is away; a failure during a pause does not make it longer."""
        pause, now = self._pause, self._clock()
        if failure.is_away and (pause is None or now >= pause[0]):
            self._pause = now + PAUSE_SECONDS, failure
