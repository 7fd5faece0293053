"""What SQLite and the file system say in, what the user can do about it out."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bunko.errors import BunkoError, DiskFull, LibraryBusy, LibraryDamaged, LibraryError, LibraryReadOnly

# How long a write waits for another process's transaction.
BUSY_SECONDS = 30.0


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system say into what the user can do about it."""
    try:
        yield
    except BunkoError:
        raise
    except sqlite3.Error as error:
        raise _library_error(path, error) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full_error(path) from error
        raise LibraryReadOnly(
            f"{path} cannot be used: {error.strerror or error}", hint="Choose another place with --library."
        ) from error


def _library_error(path: Path, error: sqlite3.Error) -> BunkoError:
    name = getattr(error, "sqlite_errorname", "") or ""
    text = str(error)
    if name.startswith("SQLITE_FULL") or "disk is full" in text or _is_disk_full(path, name):
        return _disk_full_error(path)
    if name.startswith(("SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")):
        return DiskFull(
            f"{path} cannot grow: {text}",
            hint="Check for a quota, a limit on file size (ulimit -f) and the health of the disk, then run the same"
            " command again; what was there before is untouched.",
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LibraryBusy(
            f"Another process has been writing {path} for more than {BUSY_SECONDS:.0f} seconds",
            hint="Wait until it is done, then try again.",
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        if not path.exists() and "unable to open" in text and os.access(path.parent, os.W_OK):
            return LibraryError(f"There is no library at {path}", hint="Import something first: bunko reindex.")
        return LibraryReadOnly(
            f"{path} cannot be opened for writing: {text}",
            hint="Check who owns the folder, or choose another place with --library or --data-dir.",
        )
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return LibraryDamaged(
            f"{path} is not a readable library: {text}",
            hint="Move the file away and import again; your documents are untouched.",
        )
    return LibraryError(f"{path}: {text}", hint="Run bunko doctor to see what is wrong.")


def _disk_full_error(path: Path) -> DiskFull:
    return DiskFull(
        f"There is no room left to write {path}",
        hint="Free some space and run the same command again; what was there before is untouched.",
    )


def _is_disk_full(path: Path, name: str) -> bool:
    if not name.startswith("SQLITE_IOERR"):
        return False
    with suppress(OSError):
        return shutil.disk_usage(path.parent).free < 1_000_000
    return False
