"""Wait for a lock of a library, so that one process at a time writes to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bunko.errors import LibraryBusy
from bunko.protocols import WriterLock
from bunko.runtime.observer import Observer

# How often a waiting process tries again, so that it can be cancelled in between.
_RETRY_SECONDS = 0.2


@contextmanager
def hold_lock(
    lock: WriterLock,
    *,
    wait_seconds: float,
    observer: Observer,
    activity: str = "importing into",
) -> Iterator[None]:
    """Hold a lock after waiting at most `wait_seconds` for it."""
    deadline = time.monotonic() + wait_seconds
    is_waiting = False
    while not lock.acquire(_RETRY_SECONDS if is_waiting else 0):
        holder = lock.holder() or "Another process"
        if time.monotonic() >= deadline or observer.is_cancelled():
            raise LibraryBusy(
                f"{holder} is {activity} this library", hint="Wait until it has finished, then try again."
            )
        if not is_waiting:
            observer.on_wait(f"{holder} is {activity} this library; waiting for it to finish.")
            is_waiting = True
    try:
        yield
    finally:
        lock.release()
