"""A library's place in, the right to write into it out: one process at a time, and the next waits and says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bunko.errors import LibraryBusy, LibraryReadOnly
from bunko.library.paths import LibraryPaths

# How often one who waits looks again, so that it can be stopped meanwhile.
_RETRY_SECONDS = 0.2


@contextmanager
def hold_lock(
    paths: LibraryPaths,
    *,
    wait_seconds: float,
    waiting: Callable[[str], None],
    stopped: Callable[[], bool],
    lock_file: Path | None = None,
    activity: str = "importing into",
) -> Iterator[None]:
    """Hold the right to import, or another one that goes by its own lock, after at most so many seconds of waiting."""
    from filelock import FileLock, Timeout

    file = FileLock(lock_file or paths.lock_file)
    deadline = time.monotonic() + wait_seconds
    told = False
    try:
        while True:
            try:
                file.acquire(timeout=_RETRY_SECONDS if told else 0)
                break
            except Timeout:
                if time.monotonic() >= deadline or stopped():
                    raise
                if not told:
                    waiting(f"Another process is {activity} this library; waiting for it to finish.")
                    told = True
    except Timeout as error:
        raise LibraryBusy(
            f"Another process is {activity} this library",
            hint="Wait until it is done, then try again.",
        ) from error
    except OSError as error:
        raise LibraryReadOnly(
            f"{paths.folder} cannot be written: {error.strerror or error}",
            hint="Check who owns the folder, or choose another place with --library or --data-dir.",
        ) from error
    try:
        yield
    finally:
        file.release()
