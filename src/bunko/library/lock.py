"""Lock a library so that one process at a time writes to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bunko.errors import LibraryBusy, LibraryError, LibraryReadOnly
from bunko.observer import Observer

# How often a waiting process tries again, so that it can be cancelled in between.
_RETRY_SECONDS = 0.2


@contextmanager
def hold_lock(
    lock_file: Path,
    *,
    wait_seconds: float,
    observer: Observer,
    activity: str = "importing into",
) -> Iterator[None]:
    """Hold the lock in a file after waiting at most `wait_seconds` for it."""
    from filelock import FileLock, Timeout

    if not lock_file.parent.is_dir():  # FileLock would create it, in the way of a library that is moved back
        raise LibraryError(
            f"{lock_file.parent} does not exist any more", hint="Move the library back, or open it anew."
        )
    lock = FileLock(lock_file)
    deadline = time.monotonic() + wait_seconds
    is_waiting = False
    try:
        while True:
            try:
                lock.acquire(timeout=_RETRY_SECONDS if is_waiting else 0)
                break
            except Timeout:
                if time.monotonic() >= deadline or observer.is_cancelled():
                    raise
                if not is_waiting:
                    observer.on_wait(f"Another process is {activity} this library; waiting for it to finish.")
                    is_waiting = True
    except Timeout as error:
        raise LibraryBusy(
            f"Another process is {activity} this library",
            hint="Wait until it has finished, then try again.",
        ) from error
    except OSError as error:
        raise LibraryReadOnly(
            f"{lock_file.parent} cannot be written: {error.strerror or error}",
            hint="Check who owns the folder, or choose another one with --library or --data-dir.",
        ) from error
    try:
        yield
    finally:
        lock.release()
