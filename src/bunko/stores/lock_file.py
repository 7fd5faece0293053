"""Lock a library with a file that one process at a time holds; the lock of a process that dies is released."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import LibraryError, LibraryReadOnly

if TYPE_CHECKING:
    from filelock import BaseFileLock


class LockFile:
    """A lock in a file beside the library."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: BaseFileLock | None = None

    def acquire(self, seconds: float) -> bool:
        """Wait at most this long for the lock; return whether it is held now."""
        from filelock import FileLock, Timeout

        folder = self._path.parent
        if not folder.is_dir():  # FileLock would create it, in the way of a library that is moved back
            raise LibraryError(f"{folder} does not exist any more", hint="Move the library back, or open it anew.")
        if self._lock is None:
            self._lock = FileLock(self._path)
        try:
            self._lock.acquire(timeout=seconds)
        except Timeout:
            return False
        except OSError as error:
            raise LibraryReadOnly(
                f"{folder} cannot be written: {error.strerror or error}",
                hint="Check who owns the folder, or choose another one with --library or --data-dir.",
            ) from error
        return True

    def release(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.release()

    def holder(self) -> str:
        """Return an empty string: the file does not say who holds it."""
        return ""
