"""Let all reads of a process wait for a server that went away together, and not one after another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from bunko.errors import LibraryUnreachable

# While a server stays away, one read in so many seconds tries to reach it, and the others fail at once.
_REMEMBERED_SECONDS = 1.0
# A failure so long after the last one begins a new outage: no call has asked meanwhile.
_FORGOTTEN_SECONDS = 10.0


class Outage:
    """The beginning of a server's silence, and its last error."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._error: LibraryUnreachable | None = None
        self._began_at = self._failed_at = self._next_try_at = 0.0

    def check(self, seconds: float) -> None:
        """Raise the last failure again if the server has been away for so long, unless it is time to try again."""
        if self._error is None:
            return
        with self._lock:
            error, now = self._error, self._clock()
            if error is None or now - self._began_at < seconds:
                return
            if now >= self._next_try_at:
                self._next_try_at = now + _REMEMBERED_SECONDS
                return
        raise LibraryUnreachable(error.message, hint=error.hint)

    def note_failure(self, error: LibraryUnreachable) -> float:
        """Remember a failure; return for how long the server has been away."""
        with self._lock:
            now = self._clock()
            if self._error is None or now - self._failed_at > _FORGOTTEN_SECONDS:
                self._began_at = now
            self._error, self._failed_at = error, now
            self._next_try_at = now + _REMEMBERED_SECONDS
            return now - self._began_at

    def end(self) -> None:
        """Remember that the server answers."""
        if self._error is not None:
            with self._lock:
                self._error = None
