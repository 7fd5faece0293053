"""Mark a library as moved to another place, or as the unfinished copy of one, and refuse to write to it."""

from __future__ import annotations

from bunko.errors import moved_error, unfinished_error
from bunko.stores.sql.database import TEXT, Connection, Database

MOVED, COPYING = "moved", "copying"  # keys in `meta`
SELECT_MARKS = f"SELECT key, value FROM meta WHERE key IN ('{MOVED}', '{COPYING}')"


def read_mark(database: Database, key: str) -> str:
    """Return the value of a mark, or an empty string."""
    rows = database.rows("SELECT value FROM meta WHERE key = ?", (key,), types=(TEXT,))
    return str(rows[0][0]) if rows else ""


def check_marks(rows: list[tuple[str, str]], location: str) -> None:
    """Raise an error if the rows of `SELECT_MARKS` say that nobody may write to a library."""
    marks = dict(rows)
    if place := marks.get(MOVED):
        raise moved_error(location, place)
    if marks.get(COPYING):
        raise unfinished_error(location)


def check_writable(connection: Connection, location: str) -> None:
    """Raise an error if a library has moved, or is an unfinished copy."""
    check_marks(connection.execute(SELECT_MARKS).fetchall(), location)
