"""A library's file in, the names of its tools out, with no file touched: for whoever only wants to offer them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_BUSY_SECONDS = 0.2  # somebody waits at the keyboard


def tool_names(database: Path) -> list[str]:
    """Return all names; raise what SQLite raises if there is no library."""
    beside = (database.with_name(f"{database.name}{end}") for end in ("-wal", "-shm"))
    # Without these, SQLite would make them even to read. Then nobody has the library open, and all is in its one file.
    way = "mode=ro" if all(path.exists() for path in beside) else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?{way}", uri=True, timeout=_BUSY_SECONDS)
    with closing(connection):
        return [str(row[0]) for row in connection.execute("SELECT name FROM tools ORDER BY name")]
