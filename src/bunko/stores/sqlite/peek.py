"""Read the tool names of a library for shell completion, without creating any file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_BUSY_SECONDS = 0.2  # the user waits at the keyboard


def tool_names(database: Path) -> list[str]:
    """Return all tool names; raise sqlite3.Error if there is no library."""
    wal_files = (database.with_name(f"{database.name}{suffix}") for suffix in ("-wal", "-shm"))
    # If these do not exist, SQLite would create them even to read. But then no process has the library open, and all
    # data is in the one file.
    mode = "mode=ro" if all(path.exists() for path in wal_files) else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?{mode}", uri=True, timeout=_BUSY_SECONDS)
    with closing(connection):
        return [str(row[0]) for row in connection.execute("SELECT name FROM tools ORDER BY name")]
