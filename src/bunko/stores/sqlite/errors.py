"""Translate errors of SQLite and the file system into library errors."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import zlib
from contextlib import suppress
from pathlib import Path

from bunko.errors import (
    BunkoError,
    DiskFull,
    LibraryBusy,
    LibraryDamaged,
    LibraryError,
    LibraryReadOnly,
    rebuild_hint,
)

# How long a write waits for another process's transaction.
BUSY_SECONDS = 30.0
# Errors of damaged files that have no code of their own; the last two come from migrating a schema that is not old.
_DAMAGE_MESSAGES = (
    "no such table", "no such column", "Could not decode to UTF-8", "duplicate column name", "already exists",
)  # fmt: skip

_DECODING_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, zlib.error)
# A name in the file, which a stranger may have chosen.
_SCHEMA_NAME = re.compile(r"(?<=malformed database schema) \(.*", re.DOTALL)


class translate_errors:  # noqa: N801
    """Raise errors of SQLite and the file system inside the block as library errors."""

    # A class, because a search enters a dozen of these blocks, and a generator takes longer.
    __slots__ = ("_location", "_path")

    def __init__(self, path: Path, location: str) -> None:
        self._path, self._location = path, location

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Raise the translation of an error."""
        if error is not None and (translation := self._translate(error)) is not None:
            raise translation from error

    def _translate(self, error: BaseException) -> BunkoError | None:
        location = self._location
        if isinstance(error, sqlite3.Error):
            return _library_error(self._path, location, error)
        if isinstance(error, UnicodeDecodeError):  # the message of an error of SQLite quotes damaged names
            return LibraryDamaged(f"{location} is not a readable library: {error}", hint=rebuild_hint(location))
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _disk_full_error(location)
        if isinstance(error, OSError):
            return LibraryReadOnly(
                f"{location} cannot be used: {error.strerror or error}", hint="Choose another folder with --library."
            )
        return None


class translate_value_errors:  # noqa: N801
    """Raise errors of decoding stored values inside the block as damage of the library."""

    __slots__ = ("_location",)

    def __init__(self, location: str) -> None:
        self._location = location

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Raise an error of decoding as damage."""
        if isinstance(error, _DECODING_ERRORS):
            # Without the message, which quotes the value: an assistant would read the text of a stranger.
            raise LibraryDamaged(
                f"{self._location} has values that bunko did not write", hint=rebuild_hint(self._location)
            ) from error


def _library_error(path: Path, location: str, error: sqlite3.Error) -> BunkoError:
    name = getattr(error, "sqlite_errorname", "") or ""
    text = _SCHEMA_NAME.sub("", str(error))
    if name.startswith("SQLITE_FULL") or "disk is full" in text or _is_disk_full(path, name):
        return _disk_full_error(location)
    if name.startswith(("SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")):
        return DiskFull(
            f"{location} cannot grow: {text}",
            hint="Check the disk quota, the file size limit (ulimit -f) and the health of the disk, then run the same"
            " command again. Existing data is not affected.",
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LibraryBusy(
            f"Another process has been writing {location} for more than {BUSY_SECONDS:.0f} seconds",
            hint="Wait until it has finished, then try again.",
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        if not path.exists() and "unable to open" in text and os.access(path.parent, os.W_OK):
            return LibraryError(f"There is no library at {location}", hint="Import documents first: bunko reindex.")
        return LibraryReadOnly(
            f"{location} cannot be opened for writing: {text}",
            hint="Check the permissions of the folder, or choose another one with --library or --data-dir.",
        )
    if isinstance(error, sqlite3.ProgrammingError) and "closed database" in text:
        return LibraryError(f"{location} is closed", hint="Open the library again, and close it when you are done.")
    if name.startswith("SQLITE_NOTADB"):
        # The path may be a mistake, and the file one of the user's own.
        return LibraryDamaged(
            f"{location} is not a readable library: {text}",
            hint=f"If it is one of your own files, keep it and give another path. Otherwise: {rebuild_hint(location)}",
        )
    if name.startswith("SQLITE_CORRUPT") or any(message in text for message in _DAMAGE_MESSAGES):
        return LibraryDamaged(f"{location} is not a readable library: {text}", hint=rebuild_hint(location))
    # Any command can fail this way, `bunko doctor` too, so the hint must not name it.
    return LibraryError(
        f"{location}: {text}",
        hint=f"Check the disk and run the same command again. If it still fails, start over. {rebuild_hint(location)}",
    )


def _disk_full_error(location: str) -> DiskFull:
    return DiskFull(
        f"The disk is full: cannot write {location}",
        hint="Free some space, then run the same command again. Existing data is not affected.",
    )


def _is_disk_full(path: Path, name: str) -> bool:
    if not name.startswith("SQLITE_IOERR"):
        return False
    with suppress(OSError):
        return shutil.disk_usage(path.parent).free < 1_000_000
    return False
