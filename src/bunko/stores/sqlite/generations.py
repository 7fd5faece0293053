"""Track generations, removed documents and index files."""

from __future__ import annotations

import sqlite3

from bunko.stores.sqlite.connection import Database

_SELECT_GENERATION = "SELECT value FROM meta WHERE key = 'generation'"


def read_generation(database: Database) -> int:
    """Return the generation of the current read transaction."""
    return int(database.rows(_SELECT_GENERATION)[0][0])


def generation_in_transaction(connection: sqlite3.Connection) -> int:
    """Return the generation inside a write transaction."""
    return int(connection.execute(_SELECT_GENERATION).fetchone()[0])


def advance_generation(connection: sqlite3.Connection) -> int:
    """Start a new generation and return it."""
    connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    return generation_in_transaction(connection)


def removed_since(database: Database, tool_id: int, since: int) -> list[int] | None:
    """Return the ids of the documents removed after a generation, or None if those records were pruned."""
    pruned = database.rows("SELECT value FROM meta WHERE key = ?", (f"forgotten {tool_id}",))
    if pruned and since < int(pruned[0][0]):
        return None
    rows = database.rows("SELECT document_id FROM removed WHERE tool_id = ? AND generation > ?", (tool_id, since))
    return [row[0] for row in rows]


def prune_removals(connection: sqlite3.Connection, tool_id: int, before: int) -> None:
    """Delete the records of removals up to a generation."""
    connection.execute("DELETE FROM removed WHERE tool_id = ? AND generation <= ?", (tool_id, before))
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"forgotten {tool_id}", str(before)))


def set_index_file(connection: sqlite3.Connection, tool_id: int, name: str) -> None:
    """Store the name of the tool's current index file."""
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"derived {tool_id}", name))


def index_file(database: Database, tool_id: int) -> str:
    """Return the name of the tool's current index file, or an empty string."""
    rows = database.rows("SELECT value FROM meta WHERE key = ?", (f"derived {tool_id}",))
    return str(rows[0][0]) if rows else ""
