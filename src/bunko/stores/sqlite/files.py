"""Name the files of a library in a SQLite file, and lock it with one of them."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import LibraryError, LibraryReadOnly
from bunko.runtime.package_errors import package_errors

if TYPE_CHECKING:
    from filelock import BaseFileLock

_FACTS = re.compile(r"\.tool\d+\.facts(\..+\.tmp)?")  # also a file that a killed process has not finished


def wal_files(database: Path) -> tuple[Path, Path]:
    """Return the write-ahead log and its index, which SQLite keeps beside a database that is open."""
    return database.with_name(f"{database.name}-wal"), database.with_name(f"{database.name}-shm")


class SqliteFiles:
    """The database, and the files whose names begin with its name: log, locks, facts and backups."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file_id = file_id(database)
        self._real_prefix = ""

    def paths(self) -> list[Path]:
        """Return the files of the library that exist now; SQLite deletes its own when the last reader closes."""
        name = self._database.name
        return [path for path in self._database.parent.glob("*") if path.name.startswith(name) and path.is_file()]

    def contain(self, real_path: str) -> bool:
        """Return whether a path without symbolic links names one of these files, existing or not."""
        if not self._real_prefix:
            self._real_prefix = str(Path(os.path.realpath(self._database.parent), self._database.name))
        return real_path.startswith(self._real_prefix)

    def still_exist(self) -> bool:
        """Return whether the library that was opened is still at its place."""
        return file_id(self._database) == self._file_id

    def mode(self) -> int | None:
        """Return the permissions for files with parts of the library: those of the database."""
        return file_mode(self._database)

    def lock_file(self, purpose: str = "import") -> Path:
        """Return the lock file for a purpose."""
        return self._database.with_name(f"{self._database.name}{'' if purpose == 'import' else f'.{purpose}'}.lock")

    def facts_file(self, tool_id: int) -> Path:
        """Return the file with the facts of a tool's documents, which is derived from the database."""
        return self._database.with_name(f"{self._database.name}.tool{tool_id}.facts")

    def facts_files(self) -> list[Path]:
        """Return the files with facts that exist now."""
        return [path for path in self.paths() if _FACTS.fullmatch(path.name.removeprefix(self._database.name))]


class LockFile:
    """A lock that one process at a time holds; that of a process that dies is released."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: BaseFileLock | None = None

    def acquire(self, seconds: float) -> bool:
        """Wait at most this long for the lock; return whether it is held now."""
        folder = self._path.parent
        if not folder.is_dir():  # FileLock would create it, in the way of a library that is moved back
            raise LibraryError(f"{folder} does not exist any more", hint="Move the library back, or open it anew.")
        with package_errors("filelock"):
            from filelock import FileLock, Timeout

            try:
                if self._lock is None:
                    self._lock = FileLock(self._path)
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


def file_mode(path: Path) -> int | None:
    """Return the permissions of a file, None if there is no file."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def file_id(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file, unlike that of another one in its place; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
