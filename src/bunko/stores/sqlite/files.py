"""Name the files of a library in a SQLite file."""

from __future__ import annotations

import os
import re
from pathlib import Path

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

    def lock_file(self, purpose: str = "import") -> Path:
        """Return the lock file for a purpose."""
        return self._database.with_name(f"{self._database.name}{'' if purpose == 'import' else f'.{purpose}'}.lock")

    def facts_file(self, tool_id: int) -> Path:
        """Return the file with the facts of a tool's documents, which is derived from the database."""
        return self._database.with_name(f"{self._database.name}.tool{tool_id}.facts")

    def facts_files(self) -> list[Path]:
        """Return the files with facts that exist now."""
        return [path for path in self.paths() if _FACTS.fullmatch(path.name.removeprefix(self._database.name))]


def file_id(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another one that takes its place; None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
