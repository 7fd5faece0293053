"""Create the tables of a library in a file, and migrate those of older versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from bunko.stores.sql.tables import TABLES, VECTOR_INDEX

VERSION = 3
APPLICATION_ID = 0x62756E6B  # "bunk", so that `file` and bunko can tell a library from any other database

_TYPES = {"ID": "INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT": "INTEGER", "NAME": "TEXT", "PACKED": "BLOB"}
_REQUIRED = ("meta", "tools", "documents", "chunks", "failures", "vectors", "removed", "pages", "answers")


def _create_table(name: str, *, if_missing: str = "") -> str:
    """Return the statements for a table and its indexes."""
    table = TABLES[name]
    statements = [f"CREATE TABLE {if_missing}{name} {table.render(_TYPES)}"]
    statements += [f"CREATE INDEX {index} ON {name} ({columns})" for index, columns in table.indexes.items()]
    return ";\n".join(statements)


# A library has exactly these tables; anything else in the file is refused, so a new column needs a new version.
SCRIPTS = tuple(map(_create_table, _REQUIRED))
# What only some libraries have is created with its first row.
OPTIONAL_SCRIPTS = {name: _create_table(name, if_missing="IF NOT EXISTS ") for name in TABLES if name not in _REQUIRED}
OPTIONAL_SCRIPTS["chunks_by_vector"] = VECTOR_INDEX


def _add_line_ranges(connection: sqlite3.Connection) -> None:
    """Add the lines that a document occupies in its file; until version 1 every document was a whole file."""
    connection.execute("ALTER TABLE documents ADD COLUMN first_line INTEGER NOT NULL DEFAULT 1")
    connection.execute("ALTER TABLE documents ADD COLUMN last_line INTEGER NOT NULL DEFAULT 0")


def _add_pages_and_answers(connection: sqlite3.Connection) -> None:
    """Add the tables for web pages and for answers of remote models."""
    connection.execute(_create_table("pages"))
    connection.execute(_create_table("answers"))


# From version n to n + 1, each in one transaction that also updates the version.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _add_line_ranges, 2: _add_pages_and_answers}


def create_schema(connection: sqlite3.Connection) -> None:
    """Create an empty library atomically."""
    connection.executescript(
        f"BEGIN IMMEDIATE;{';'.join(SCRIPTS)};"
        "INSERT INTO meta VALUES ('generation', '0'), ('id', lower(hex(randomblob(16)))), ('swept', '1');"
        f"PRAGMA application_id = {APPLICATION_ID};PRAGMA user_version = {VERSION};COMMIT;"
    )
