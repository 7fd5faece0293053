"""Store a library in one SQLite file, which many processes can read while one writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bunko.errors import BunkoError

if TYPE_CHECKING:
    from bunko.stores.sqlite.store import Sqlite
    from bunko.types.records import DatabaseServer

_PAGE_BYTES = 4096  # SQLite's usual page: a database without tables has one


def build(location: Path, server: DatabaseServer | None = None, *, read_only: bool = False) -> Sqlite:
    """Open the store in a SQLite file, and create the file if it does not exist."""
    from bunko.stores.sqlite.store import Sqlite

    return Sqlite(location, read_only=read_only)


def exists(location: Path, server: DatabaseServer | None = None) -> bool:
    """Return whether there is a file with something in it; what that is, is checked when it is opened."""
    try:
        size = location.stat().st_size  # an OSError of another kind does not say that there is none
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    if size > _PAGE_BYTES:
        return True
    import sqlite3

    from bunko.stores.sqlite.connection import read_without_traces

    try:  # a process that is killed while it creates a library leaves a database without tables
        return bool(size and read_without_traces(location, "SELECT 1 FROM sqlite_master LIMIT 1"))
    except (BunkoError, sqlite3.Error):
        return True


def missing_paths(location: Path, server: DatabaseServer | None = None) -> tuple[Path, ...]:
    """Return the file and the parent folders that do not exist, innermost first."""
    return tuple(path for path in (location, *location.parents) if not path.exists())


def file_paths(location: Path, server: DatabaseServer | None = None) -> list[Path]:
    """Return the files of the folder whose names begin with that of the file."""
    return [path for path in location.parent.glob("*") if path.name.startswith(location.name)]


def delete(location: Path, server: DatabaseServer | None = None) -> None:
    """Delete the file, the files that SQLite keeps beside it, facts, and the locks of imports and crawls."""
    from bunko.stores.sqlite.files import SqliteFiles, wal_files

    files = SqliteFiles(location)
    locks = map(files.lock_file, ("import", "web", "index"))
    for path in (location, *wal_files(location), *locks, *files.facts_files()):
        path.unlink(missing_ok=True)


def tool_names(location: Path, server: DatabaseServer | None = None) -> list[str]:
    """Return all tool names without creating or changing a file; raise sqlite3.Error if there is no library."""
    from bunko.stores.sqlite.connection import read_without_traces

    return [str(row[0]) for row in read_without_traces(location, "SELECT name FROM tools ORDER BY name")]


def display_location(location: Path, server: DatabaseServer | None = None) -> str:
    """Return the path of the file."""
    return str(location)
