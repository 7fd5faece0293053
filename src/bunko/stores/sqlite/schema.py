"""Create the tables of a library in a file, migrate older ones, and refuse a file with anything else in it."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from bunko.errors import LibraryDamaged, LibraryTooNew, rebuild_hint
from bunko.stores.sql.tables import TABLES, VECTOR_INDEX

VERSION = 4
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
# What older versions had, and create again if they still run after a migration: a vector for each sentence.
_DROPPED_SCRIPTS = ("CREATE TABLE sentences (key BLOB PRIMARY KEY, vectors BLOB NOT NULL)",)


def _add_line_ranges(connection: sqlite3.Connection) -> None:
    """Add the lines that a document occupies in its file; until version 1 every document was a whole file."""
    connection.execute("ALTER TABLE documents ADD COLUMN first_line INTEGER NOT NULL DEFAULT 1")
    connection.execute("ALTER TABLE documents ADD COLUMN last_line INTEGER NOT NULL DEFAULT 0")


def _add_pages_and_answers(connection: sqlite3.Connection) -> None:
    """Add the tables for web pages and for answers of remote models."""
    connection.execute(_create_table("pages"))
    connection.execute(_create_table("answers"))


def _drop_sentence_vectors(connection: sqlite3.Connection) -> None:
    """Drop the vectors of sentences: a search compares their subwords."""
    connection.execute("DROP TABLE IF EXISTS sentences")


# From version n to n + 1, each in one transaction that also updates the version.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {
    1: _add_line_ranges,
    2: _add_pages_and_answers,
    3: _drop_sentence_vectors,
}


def create_schema(connection: sqlite3.Connection) -> None:
    """Create an empty library atomically."""
    connection.executescript(
        f"BEGIN IMMEDIATE;{';'.join(SCRIPTS)};"
        "INSERT INTO meta VALUES ('generation', '0'), ('id', lower(hex(randomblob(16)))), ('swept', '1');"
        f"PRAGMA application_id = {APPLICATION_ID};PRAGMA user_version = {VERSION};COMMIT;"
    )


def check_version(connection: sqlite3.Connection, location: str) -> None:
    """Raise an error if a newer bunko made the tables, or has changed them since this process opened the library."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise LibraryTooNew(
            f"{location} was made by a newer bunko (schema {version}, this one knows {VERSION})",
            hint="Upgrade bunko (pip install -U bunko), or name another library with --library.",
        )


# The last bytes of a journal that names a second journal file.
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_COMMENT = re.compile(r"--[^\n]*")
_BLANKS = re.compile(r"[ \t\r\n\f]+")  # not \s: SQLite takes other blank characters as parts of a name
_STATEMENT = re.compile(r"CREATE (TABLE|INDEX) (?:IF NOT EXISTS )?(\w+) (.*)")
_TABLE_BODY = re.compile(r"\((.*)\)([^()]*)")
_TOP_LEVEL_COMMA = re.compile(r",(?![^(]*\))")
# Tables that SQLite adds by itself, for AUTOINCREMENT and after ANALYZE.
_INTERNAL_TABLES = ("sqlite_sequence", "sqlite_stat1", "sqlite_stat4")

# The definitions of a table's columns and constraints, or the whole definition of an index.
_Definition = frozenset[str]


def harden(connection: sqlite3.Connection) -> None:
    """Let nothing in a file run code or change what a statement does."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def check_journal(path: Path) -> None:
    """Raise if opening a database would delete a file that its journal names, which SQLite does without asking."""
    journal = Path(f"{os.path.realpath(path)}-journal")
    try:
        if not stat.S_ISREG(journal.stat().st_mode):
            return
        with open(journal, "rb") as file:
            file.seek(-len(_JOURNAL_MAGIC), os.SEEK_END)
            end = file.read()
    except OSError:  # there is none, or it is too short
        return
    if end == _JOURNAL_MAGIC:
        raise LibraryDamaged(
            f"{journal} names another file for SQLite to delete, which bunko never does",
            hint=f"Delete {journal}, and do not use an index that came with somebody else's documents.",
        )


def check_schema(path: Path, connection: sqlite3.Connection, *, is_complete: bool = True) -> None:
    """Raise if a library has anything but the tables and indexes of bunko.

    A library of an older version is not complete: it may lack tables and columns, but has nothing else.
    """
    required, optional = _expected_objects()
    missing = set(required)
    for *texts, sql in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"):
        kind, name, table = map(str, texts)
        if _is_internal(kind, name, sql):
            continue
        expected = required.get((kind, name)) or optional.get((kind, name))
        if expected is None:
            # Without its name, which assistants would read and a stranger may have chosen.
            thing = f"a {kind}" if kind in ("table", "trigger", "view") else "an index"
            raise LibraryDamaged(f"{path} has {thing} that bunko does not create", hint=rebuild_hint(path))
        definition = _parse_statement(str(sql))
        if (
            definition is None
            or definition[0] != (kind, name)
            or (kind == "table" and table != name)
            or not (definition[1] == expected if is_complete else definition[1] <= expected)
        ):
            raise LibraryDamaged(
                f"{path} has the {kind} {name!r} in another form than bunko creates", hint=rebuild_hint(path)
            )
        missing.discard((kind, name))
    if missing and is_complete:
        kind, name = min(missing)
        raise LibraryDamaged(f"{path} lacks the {kind} {name!r}", hint=rebuild_hint(path))


def _is_internal(kind: str, name: str, sql: str | None) -> bool:
    if kind == "index":
        return sql is None and name.startswith("sqlite_autoindex_")
    return kind == "table" and name in _INTERNAL_TABLES and str(sql).startswith(f"CREATE TABLE {name}(")


@lru_cache(maxsize=1)
def _expected_objects() -> tuple[dict[tuple[str, str], _Definition], ...]:
    """Return the definitions that a library has, and those that it may have, by kind and name."""
    return tuple(
        dict(
            definition
            for script in scripts
            for statement in _COMMENT.sub("", script).split(";")
            if (definition := _parse_statement(statement)) is not None
        )
        for scripts in (SCRIPTS, (*OPTIONAL_SCRIPTS.values(), *_DROPPED_SCRIPTS))
    )


def _parse_statement(sql: str) -> tuple[tuple[str, str], _Definition] | None:
    """Return kind, name and definition of a table or index, without comments, blanks and the order of columns.

    A column that a migration added is the last one of an old library and in the middle of a new one.
    """
    text = _BLANKS.sub(" ", _COMMENT.sub("", sql)).strip()
    match = _STATEMENT.fullmatch(text)
    if match is None:
        return None
    key, rest = (match[1].lower(), match[2]), match[3]
    body = _TABLE_BODY.fullmatch(rest) if key[0] == "table" else None
    if body is None:
        return key, frozenset((rest,))
    return key, frozenset((*(part.strip() for part in _TOP_LEVEL_COMMA.split(body[1])), f"){body[2]}"))
