"""The shape of a library's file, and the way from each older shape to the present one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

VERSION = 3
APPLICATION_ID = 0x62756E6B  # "bunk", so that `file` and we can tell a library from any other database

_CREATE_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('generation', '0'), ('id', lower(hex(randomblob(16))));

CREATE TABLE tools (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT UNIQUE NOT NULL,
    kind TEXT NOT NULL,
    description TEXT NOT NULL,
    source TEXT NOT NULL,
    active INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    imported_at TEXT NOT NULL,
    checked_at TEXT NOT NULL,
    built TEXT NOT NULL,
    options TEXT NOT NULL
);

-- A replaced document gets a new id: what is newer than a generation, and what died since, is all a reader needs.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tool_id INTEGER NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    generation INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    seen_ns INTEGER NOT NULL,
    first_line INTEGER NOT NULL DEFAULT 1,  -- of its file; a last line of 0: it is the whole file
    last_line INTEGER NOT NULL DEFAULT 0,
    media_type TEXT NOT NULL,
    encoding TEXT NOT NULL,
    title TEXT NOT NULL,
    date TEXT NOT NULL,
    tags TEXT NOT NULL,
    body INTEGER NOT NULL,
    text TEXT NOT NULL,
    terms BLOB NOT NULL,
    UNIQUE (tool_id, uri)
);
CREATE INDEX documents_by_generation ON documents (tool_id, generation);

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    heading TEXT NOT NULL,
    heading_path TEXT NOT NULL,
    text TEXT,
    vector_key BLOB
);
CREATE INDEX chunks_by_document ON chunks (document_id);

CREATE TABLE failures (
    tool_id INTEGER NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    uri TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    seen_ns INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (tool_id, uri)
) WITHOUT ROWID;

CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL);

CREATE TABLE removed (tool_id INTEGER NOT NULL, document_id INTEGER NOT NULL, generation INTEGER NOT NULL);
CREATE INDEX removed_by_generation ON removed (tool_id, generation);
"""

# What was fetched from the web: the source of a tool's pages, so that cutting or embedding them anew fetches nothing.
_CREATE_PAGES = """
CREATE TABLE pages (
    tool_id INTEGER NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    state TEXT NOT NULL,  -- waiting: to be fetched; held; failed: never fetched; alias: held under another URL
    depth INTEGER NOT NULL,
    found_on TEXT NOT NULL,  -- where the crawl that found it began; of an alias: the URL it is held under
    status INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    charset TEXT NOT NULL,
    etag TEXT NOT NULL,
    last_modified TEXT NOT NULL,
    fetched_at TEXT NOT NULL,  -- when the content came
    checked_at TEXT NOT NULL,  -- when it was last asked for
    content_hash TEXT NOT NULL,
    problem TEXT NOT NULL,  -- of the last attempt; content from before it stays
    content BLOB,  -- as it came, compressed
    PRIMARY KEY (tool_id, url)
)
"""
# What a remote model said, for as long as that is worth something: a query in other words, a summary.
_CREATE_ANSWERS = """
CREATE TABLE answers (
    kind TEXT NOT NULL,
    key BLOB NOT NULL,
    value TEXT NOT NULL,
    until REAL NOT NULL,  -- seconds since 1970
    PRIMARY KEY (kind, key)
) WITHOUT ROWID
"""

# Made when the first search is kept, so that a library that keeps none has no place for them.
CREATE_ASKED = """
CREATE TABLE IF NOT EXISTS asked (
    query TEXT NOT NULL,
    tool TEXT NOT NULL,
    count INTEGER NOT NULL,
    last TEXT NOT NULL,
    PRIMARY KEY (query, tool)
) WITHOUT ROWID
"""

# Vectors that were paid for and that no chunk has yet; made when the first is kept.
CREATE_KEPT = """
CREATE TABLE IF NOT EXISTS kept (
    tool_id INTEGER NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    key BLOB NOT NULL,
    embedder TEXT NOT NULL,
    PRIMARY KEY (tool_id, key)
) WITHOUT ROWID
"""


def _add_line_ranges(connection: sqlite3.Connection) -> None:
    """Let a document be some lines of a file: until now each was a whole one."""
    connection.execute("ALTER TABLE documents ADD COLUMN first_line INTEGER NOT NULL DEFAULT 1")
    connection.execute("ALTER TABLE documents ADD COLUMN last_line INTEGER NOT NULL DEFAULT 0")


def _add_pages_and_answers(connection: sqlite3.Connection) -> None:
    """Make room for web pages and for what remote models answered."""
    connection.execute(_CREATE_PAGES)
    connection.execute(_CREATE_ANSWERS)


# From version n to n + 1, each in one transaction with the version's own change.
MIGRATIONS: dict[int, Callable[[sqlite3.Connection], None]] = {1: _add_line_ranges, 2: _add_pages_and_answers}


def create_schema(connection: sqlite3.Connection) -> None:
    """Make an empty library, whole or not at all."""
    connection.executescript(
        f"BEGIN IMMEDIATE;{_CREATE_TABLES};{_CREATE_PAGES};{_CREATE_ANSWERS};"
        f"PRAGMA application_id = {APPLICATION_ID};PRAGMA user_version = {VERSION};COMMIT;"
    )
