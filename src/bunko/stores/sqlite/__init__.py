"""Store a library in one SQLite file, which many processes can read while one writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunko.records import DatabaseServer
    from bunko.stores.sqlite.store import Sqlite


def build(location: Path, server: DatabaseServer | None = None, *, read_only: bool = False) -> Sqlite:
    """Open the store in a SQLite file, and create the file if it does not exist."""
    from bunko.stores.sqlite.store import Sqlite

    return Sqlite(location, read_only=read_only)


def exists(location: Path, server: DatabaseServer | None = None) -> bool:
    """Return whether there is a file with something in it; what that is, is checked when it is opened."""
    return location.exists() and location.stat().st_size > 0


def missing_paths(location: Path, server: DatabaseServer | None = None) -> tuple[Path, ...]:
    """Return the file and the parent folders that do not exist, innermost first."""
    return tuple(path for path in (location, *location.parents) if not path.exists())


def file_paths(location: Path, server: DatabaseServer | None = None) -> list[Path]:
    """Return what lies in the folder under names that begin with that of the file."""
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
