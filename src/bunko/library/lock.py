"""A library's place in, the right to write into it out: one process at a time, and the next waits and says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bunko.errors import LibraryBusy, LibraryReadOnly
from bunko.home import Home

# How often one who waits looks again, so that it can be stopped meanwhile.
_LOOK_SECONDS = 0.2


@contextmanager
def held(home: Home, *, seconds: float, waiting: Callable[[str], None], stopped: Callable[[], bool]) -> Iterator[None]:
    """Hold the right to import, after at most so many seconds of waiting."""
    from filelock import FileLock, Timeout

    lock = FileLock(home.lock)
    deadline = time.monotonic() + seconds
    told = False
    try:
        while True:
            try:
                lock.acquire(timeout=_LOOK_SECONDS if told else 0)
                break
            except Timeout:
                if time.monotonic() >= deadline or stopped():
                    raise
                if not told:
                    waiting("Another process is importing into this library; waiting for it to finish.")
                    told = True
    except Timeout as error:
        raise LibraryBusy(
            "Another process is importing into this library",
            hint="Wait until it is done, then try again.",
        ) from error
    except OSError as error:
        raise LibraryReadOnly(
            f"{home.folder} cannot be written: {error.strerror or error}",
            hint="Check who owns the folder, or choose another place with --library or --data-dir.",
        ) from error
    try:
        yield
    finally:
        lock.release()
