"""A library file and a generation in, what is gone since then out, and which derived file is true to the library."""

from __future__ import annotations

import sqlite3

from bunko.stores.sqlite.connection import Database

_SELECT_GENERATION = "SELECT value FROM meta WHERE key = 'generation'"


def read_generation(file: Database) -> int:
    """Return the generation of the state that is being read."""
    return int(file.rows(_SELECT_GENERATION)[0][0])


def generation_in_transaction(connection: sqlite3.Connection) -> int:
    """Return the generation inside a transaction."""
    return int(connection.execute(_SELECT_GENERATION).fetchone()[0])


def advance_generation(connection: sqlite3.Connection) -> int:
    """Begin a new generation, and return it."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    return generation_in_transaction(connection)


def removed_since(file: Database, tool_id: int, since: int) -> list[int] | None:
    """Return the ids of the documents removed after a generation, or None if those records were pruned."""
    forgotten = file.rows("SELECT value FROM meta WHERE key = ?", (f"forgotten {tool_id}",))
    if forgotten and since < int(forgotten[0][0]):
        return None
    rows = file.rows("SELECT document_id FROM removed WHERE tool_id = ? AND generation > ?", (tool_id, since))
    return [row[0] for row in rows]


def prune_removals(connection: sqlite3.Connection, tool_id: int, before: int) -> None:
    """Delete the records of removals up to a generation."""
    connection.execute("DELETE FROM removed WHERE tool_id = ? AND generation <= ?", (tool_id, before))
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"forgotten {tool_id}", str(before)))


def set_index_file(connection: sqlite3.Connection, tool_id: int, name: str) -> None:
    """Store the name of the tool's current index file."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"derived {tool_id}", name))


def index_file(file: Database, tool_id: int) -> str:
    """Return the name of the tool's current index file, or an empty string."""
    rows = file.rows("SELECT value FROM meta WHERE key = ?", (f"derived {tool_id}",))
    return str(rows[0][0]) if rows else ""
