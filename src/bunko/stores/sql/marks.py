"""Mark a library as moved to another place, or as the copy of one, and refuse to write where that would be lost."""

from __future__ import annotations

from collections.abc import Sequence

from bunko.errors import moved_error, unfinished_error
from bunko.stores.sql.database import TEXT, Connection, Database

# Keys in `meta`: the library is elsewhere now; it is an unfinished copy; it is a complete one without changes since.
MOVED, COPYING, ARRIVED = "moved", "copying", "arrived"
SELECT_MARKS = f"SELECT key, value FROM meta WHERE key IN ('{MOVED}', '{COPYING}', '{ARRIVED}')"


def read_marks(database: Database) -> dict[str, str]:
    """Return the marks of a library."""
    return dict(database.rows(SELECT_MARKS, types=(TEXT, TEXT)))


def check_writable(connection: Connection, marks: Sequence[tuple[str, str]], location: str) -> None:
    """Raise an error if the rows of `SELECT_MARKS` forbid all writes; a copy that is written to is none."""
    for key, value in marks:
        if key == MOVED:
            raise moved_error(location, value)
        if key == COPYING:
            raise unfinished_error(location)
        connection.execute("DELETE FROM meta WHERE key = ?", (key,))
