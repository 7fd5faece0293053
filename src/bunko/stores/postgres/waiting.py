"""Notice a server that no longer answers, which a network that swallows packets never reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import psycopg

RV = TypeVar("RV")

# A statement may take longer than this; then the server is asked on a second connection whether it still runs.
SILENT_SECONDS = 15.0
# A server that waits for its client, while the client waits for it, has sent an answer that got lost.
_IS_RUNNING = (
    "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND wait_event_type IS DISTINCT FROM 'Client'"
)


class WatchedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed if the server does not work on its statement any more."""

    open_another: Callable[[], psycopg.Connection[tuple[Any, ...]] | None] | None = None

    def wait(self, gen: Generator[Any, Any, RV], *args: Any, **options: Any) -> RV:
        """Wait for the server; raise OperationalError if it is gone."""
        return super().wait(self._watch(gen), *args, **options)

    def _watch(self, steps: Generator[Any, Any, RV]) -> Generator[Any, Any, RV]:
        """Pass on what psycopg waits for, which gets a false value whenever a moment passed without an answer."""
        heard_at = time.monotonic()
        try:
            state = next(steps)
            while True:
                ready = yield state
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > SILENT_SECONDS:
                    self._check_running()
                    heard_at = time.monotonic()
                state = steps.send(ready)
        except StopIteration as stop:
            value: RV = stop.value
            return value

    def _check_running(self) -> None:
        if self.open_another is None:
            return
        pid = self.info.backend_pid
        try:
            other = self.open_another()
            if other is None:
                return
            with other:
                if other.execute(_IS_RUNNING, (pid,)).fetchone():
                    return
        except psycopg.Error:
            pass
        self.close()  # without waiting: the next statement opens another one
        raise psycopg.OperationalError(f"the server has not answered for {SILENT_SECONDS:.0f} seconds")
